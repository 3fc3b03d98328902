// The settings: models, all the rest of them, and who may come in. Secrets never come here; of them one sees whether
// they are set.

import { AccessTab } from "./access.js";
import { get, patch } from "./api.js";
import { ask, h, toast } from "./dom.js";
import { ModelsTab } from "./models.js";
import { isKey, quoted, settingField } from "./setup.js";

const TABS = { models: "Models", all: "All settings", access: "Access" };
const NAMED = { models: ["Add a preset", "model", "Name of the preset, such as quick", "provider/model"], providers: ["Add a provider", "api_base", "Name, such as mine", "Its address, such as http://127.0.0.1:8080/v1"], prices: ["Add a price", "input", "Pattern of models, such as mine/*", "Dollars for a million tokens that are read"] };

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
    this.tab = tab in TABS ? tab : "models";
    this.house = house;
    this.sheet = new Sheet();
    this.body = h("div.tab");
    const links = Object.entries(TABS).map(([name, label]) => h("a.button", { href: `#/settings/${name}`, ...(name === this.tab ? { "aria-current": "page" } : {}) }, label));
    this.notes = h("div.notes");
    this.node = h("section.page", { "aria-label": "Settings" },
      h("header.bar", {}, house.menuButton(), h("h1.title", {}, "Settings")),
      h("div.scroller", { tabindex: "0" }, h("div.column.wide", {}, h("nav.segments", { "aria-label": "Kinds of settings" }, links), this.notes, this.body)));
    this.load();
  }

  async load() {
    if (this.tab === "access") { this.body.replaceChildren(new AccessTab(this.house.me).node); return; }
    try {
      await this.sheet.load();
    } catch (error) {
      this.body.replaceChildren(h("p.hint", {}, error.status === 403 ? "Only administrators see the settings." : error.message));
      return;
    }
    this.view = this.tab === "models" ? new ModelsTab(this.sheet, this.save) : new AllTab(this.sheet, this.save);
    this.body.replaceChildren(this.view.node);
    this.note();
  }

  /** What is set but waits for the next start. */
  note() {
    const waiting = this.sheet.told.restart_needed;
    this.notes.replaceChildren(...(waiting.length ? [h("p.callout", { role: "status" }, "In force after the gateway is started again: ", waiting.flatMap((key, i) => [i ? ", " : "", h("code", {}, key)]))] : []));
  }

  /** Resolves to nothing, or to the sentence that says why not. */
  save = async (changes) => {
    try {
      await this.sheet.change(changes);
      toast(`Saved in ${this.sheet.told.file}`);
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
    this.field = h("input", { type: "search", placeholder: "Filter settings", "aria-label": "Filter settings", oninput: () => this.draw() });
    this.node = h("div.tab", {}, h("p.hint", {}, "Changes are written into ", h("code", {}, sheet.told.file), " in the home, and the next turn knows them. What an ", h("code", {}, "EVERLOOP_…"), " variable says is changed there."), this.field, this.body);
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
    const shown = [...groups].filter(([table, rows]) => rows.length || (!words && table in NAMED)).map(([table, rows]) => this.group(table, rows, words));
    this.body.replaceChildren(...(shown.length ? shown : [h("p.hint", {}, "No setting has that in it.")]));
  }

  group(table, rows, words) {
    const save = (key, value) => this.save({ [key]: value });
    const names = table in NAMED ? [...new Set(rows.map((row) => nameIn(row.key)))].filter((name) => name !== "embedded" || table !== "providers") : [];
    return h("section.group", {}, h("h2", {}, table), rows.length ? h("div.sheet", {}, rows.map((row) => settingField(row, save))) : h("p.hint", {}, "None yet."),
      words ? null : names.map((name) => h("button.small", { type: "button", onclick: () => this.forget(table, name) }, `Remove ${name}`)), !words && table in NAMED && this.adding(table));
  }

  adding(table) {
    const [label, first, naming, worth] = NAMED[table];
    const name = h("input", { "aria-label": `${label}: its name`, placeholder: naming, maxlength: 100, required: true });
    const value = h("input", { "aria-label": `${label}: ${first}`, placeholder: worth, required: true });
    const wrong = h("p.wrong", { role: "alert" });
    const submit = async (event) => {
      event.preventDefault();
      wrong.textContent = (await this.save({ [`${table}.${quoted(name.value.trim())}.${first}`]: table === "prices" ? Number(value.value) : value.value.trim() })) ?? "";
    };
    return h("form.adding", { onsubmit: submit }, name, value, h("button.small", { type: "submit" }, label), wrong);
  }

  async forget(table, name) {
    if (!await ask({ title: `Remove ${name}?`, text: `${table}.${name} is taken out of the file, with all that is set in it.`, yes: "Remove" })) return;
    const refused = await this.save({ [`${table}.${quoted(name)}`]: null });
    if (refused) toast(refused, "bad");
  }
}

/** The second part of a key, which may stand in quotes. */
function nameIn(key) {
  const rest = key.slice(key.indexOf(".") + 1);
  return rest.startsWith('"') ? JSON.parse(rest.match(/^"(?:\\.|[^"\\])*"/)[0]) : rest.split(".")[0];
}
