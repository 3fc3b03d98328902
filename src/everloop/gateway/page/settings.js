// The settings: models, all the rest of them, and who may come in. Secrets never come here; of them one sees whether
// they are set.

import { AccessTab } from "./access.js";
import { get, patch } from "./api.js";
import { ask, h, toast } from "./dom.js";
import { ModelsTab } from "./models.js";
import { told } from "./say-manage.js";
import { isKey, quoted, settingField } from "./setup.js";

const FIRST = { models: "model", providers: "api_base", prices: "input" }; // what one of each cannot be without

/** The settings as the gateway has them, and the way to change them that loses nobody else's change. */
class Sheet {
  async load() {
    this.told = await get("/api/settings");
  }

  async change(changes) {
    this.told = await patch("/api/settings", changes, { "If-Match": `"${this.told.version}"` });
  }

  row(key) { return this.told.rows.find((row) => row.key === key); }
}

export class SettingsView {
  constructor(house, tab) {
    this.tab = tab in told.tabs ? tab : "models";
    this.house = house;
    this.sheet = new Sheet();
    this.body = h("div.tab");
    const links = Object.entries(told.tabs).map(([name, label]) => h("a.button", { href: `#/settings/${name}`, ...(name === this.tab ? { "aria-current": "page" } : {}) }, label));
    this.notes = h("div.notes");
    this.node = h("section.page", { "aria-label": told.settings },
      h("header.bar", {}, house.menuButton(), h("h1.title", {}, told.settings)),
      h("div.scroller", { tabindex: "0" }, h("div.column.wide", {}, h("nav.segments", { "aria-label": told.kinds }, links), this.notes, this.body)));
    this.load();
  }

  async load() {
    if (this.tab === "access") { this.body.replaceChildren(new AccessTab(this.house.me).node); return; }
    try {
      await this.sheet.load();
    } catch (error) {
      this.body.replaceChildren(h("p.hint", {}, error.status === 403 ? told.onlyAdmins : error.message));
      return;
    }
    this.view = this.tab === "models" ? new ModelsTab(this.sheet, this.save) : new AllTab(this.sheet, this.save);
    this.body.replaceChildren(this.view.node);
    this.note();
  }

  /** What is set but waits for the next start. */
  note() {
    const waiting = this.sheet.told.restart_needed;
    this.notes.replaceChildren(...(waiting.length ? [h("p.callout", { role: "status" }, told.afterRestart, " ", waiting.flatMap((key, i) => [i ? ", " : "", h("code", {}, key)]))] : []));
  }

  /** Resolves to nothing, or to the sentence that says why not. */
  save = async (changes) => {
    try {
      await this.sheet.change(changes);
      toast(told.saved(this.sheet.told.file));
    } catch (error) {
      if (error.status !== 412) return error.message;
      await this.sheet.load();
      toast(error.message, "bad");
    }
    this.note();
    this.view.draw();
    return undefined;
  };

  frame() {}
  reconnected() {}
}

class AllTab {
  constructor(sheet, save) {
    this.sheet = sheet;
    this.save = save;
    this.body = h("div.groups");
    this.field = h("input", { type: "search", placeholder: told.filter, "aria-label": told.filter, oninput: () => this.draw() });
    this.node = h("div.tab", {}, h("p.hint", {}, told.writtenInto, " ", h("code", {}, sheet.told.file), " ", told.nextTurn, " ", h("code", {}, "EVERLOOP_…"), " ", told.changedThere), this.field, this.body);
    this.draw();
  }

  draw() {
    const words = this.field.value.trim().toLowerCase();
    const fits = (row) => !row.key.includes("<name>") && (!isKey(row) || row.is_set) && (!words || `${row.key} ${row.about} ${row.secret ? "" : JSON.stringify(row.value)}`.toLowerCase().includes(words));
    const groups = new Map();
    for (const row of this.sheet.told.rows) {
      const table = row.key.split(".")[0];
      if (!groups.has(table)) groups.set(table, []);
      if (fits(row)) groups.get(table).push(row);
    }
    const shown = [...groups].filter(([table, rows]) => rows.length || (!words && table in FIRST)).map(([table, rows]) => this.group(table, rows, words));
    this.body.replaceChildren(...(shown.length ? shown : [h("p.hint", {}, told.nothingFits)]));
  }

  group(table, rows, words) {
    const save = (key, value) => this.save({ [key]: value });
    const names = table in FIRST ? [...new Set(rows.map((row) => nameIn(row.key)))].filter((name) => name !== "embedded" || table !== "providers") : [];
    return h("section.group", {}, h("h2", {}, table), rows.length ? h("div.sheet", {}, rows.map((row) => settingField(row, save))) : h("p.hint", {}, told.noneYet),
      words ? null : names.map((name) => h("button.small", { type: "button", onclick: () => this.forget(table, name) }, told.removeNamed(name))), !words && table in FIRST && this.adding(table));
  }

  adding(table) {
    const [label, naming, worth] = told.adding[table];
    const first = FIRST[table];
    const name = h("input", { "aria-label": told.itsName(label), placeholder: naming, maxlength: 100, required: true });
    const value = h("input", { "aria-label": `${label}: ${first}`, placeholder: worth, required: true });
    const wrong = h("p.wrong", { role: "alert" });
    const submit = async (event) => {
      event.preventDefault();
      wrong.textContent = (await this.save({ [`${table}.${quoted(name.value.trim())}.${first}`]: table === "prices" ? Number(value.value) : value.value.trim() })) ?? "";
    };
    return h("form.adding", { onsubmit: submit }, name, value, h("button.small", { type: "submit" }, label), wrong);
  }

  async forget(table, name) {
    if (!await ask({ title: told.removeTitle(name), text: told.removeText(`${table}.${name}`), yes: told.remove })) return;
    const refused = await this.save({ [`${table}.${quoted(name)}`]: null });
    if (refused) toast(refused, "bad");
  }
}

/** The second part of a key, which may stand in quotes. */
function nameIn(key) {
  const rest = key.slice(key.indexOf(".") + 1);
  return rest.startsWith('"') ? JSON.parse(rest.match(/^"(?:\\.|[^"\\])*"/)[0]) : rest.split(".")[0];
}
