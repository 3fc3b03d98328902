// Settings as forms: those of one page in its sections, and all of them with a filter.

import { ask, h, toast } from "./dom.js";
import { placeOf } from "./pages.js";
import { told } from "./say-manage.js";
import { isKey, labelOf, nameIn, quoted, settingField } from "./setup.js";

const FIRST = { models: "model", providers: "api_base", prices: "input" }; // what one of each cannot be without

const isThere = (row) => !row.key.includes("<name>") && (!isKey(row) || row.is_set);

/** Rows by what `of` says of each, in the order in which they come. */
function grouped(rows, of) {
  const groups = new Map();
  for (const row of rows) groups.set(of(row), [...(groups.get(of(row)) ?? []), row]);
  return groups;
}

/** A section of settings; a table of named ones can be added to and taken from. */
function section(sheet, save, heading, table, rows, changes = true) {
  const waits = new Set(sheet.told.restart_needed);
  const names = changes && table in FIRST ? [...new Set(rows.map((row) => nameIn(row.key)))].filter((name) => name !== "embedded" || table !== "providers") : [];
  const set = (key, value) => save({ [key]: value });
  return h("section.group", {}, h("h2", {}, heading),
    rows.length ? h("div.sheet", {}, rows.map((row) => settingField({ ...row, waits: waits.has(row.key) }, set))) : h("p.hint", {}, told.noneYet),
    names.map((name) => h("button.small", { type: "button", onclick: () => forget(save, table, name) }, told.removeNamed(name))), changes && table in FIRST && adding(save, table));
}

function adding(save, table) {
  const [label, naming, worth] = told.adding[table];
  const first = FIRST[table];
  const name = h("input", { "aria-label": told.itsName(label), placeholder: naming, maxlength: 100, required: true });
  const value = h("input", { "aria-label": `${label}: ${first}`, placeholder: worth, required: true });
  const wrong = h("p.wrong", { role: "alert" });
  const submit = async (event) => {
    event.preventDefault();
    wrong.textContent = (await save({ [`${table}.${quoted(name.value.trim())}.${first}`]: table === "prices" ? Number(value.value) : value.value.trim() })) ?? "";
  };
  return h("form.adding", { onsubmit: submit }, name, value, h("button.small", { type: "submit" }, label), wrong);
}

async function forget(save, table, name) {
  if (!await ask({ title: told.removeTitle(name), text: told.removeText(`${table}.${name}`), yes: told.remove })) return;
  const refused = await save({ [`${table}.${quoted(name)}`]: null });
  if (refused) toast(refused, "bad");
}

/** The settings that stand on one page, as pages.js says; but for those that something above shows already. */
export class SettingsPage {
  constructor(sheet, save, name, above = () => []) {
    Object.assign(this, { sheet, save, name, above });
    this.body = h("div.groups");
    this.node = h("div.tab", {}, this.body);
    this.draw();
  }

  draw() {
    const shown = new Set(this.above());
    const here = this.sheet.told.rows.filter((row) => placeOf(row.key)[0] === this.name);
    const sections = grouped(here, (row) => placeOf(row.key)[1]);
    this.body.replaceChildren(...[...sections].map(([id, rows]) => {
      const left = rows.filter((row) => isThere(row) && !shown.has(row.key));
      const changes = !rows.some((row) => shown.has(row.key)); // else there is a better way to do it above
      return left.length || (changes && id in FIRST) ? section(this.sheet, this.save, told.sections[id], id, left, changes) : "";
    }));
  }
}

/** Who answers, and below it all else that is set of models. */
export class ModelsPage {
  constructor(sheet, save, ModelsTab) {
    const page = this;
    this.models = new (class extends ModelsTab { draw() { const done = super.draw(); page.rest?.draw(); return done; } })(sheet, save);
    this.rest = new SettingsPage(sheet, save, "models", () => [...this.models.node.querySelectorAll("[data-key]")].map((node) => node.dataset.key));
    this.node = h("div.tab", {}, this.models.node, this.rest.node);
  }

  draw() { this.models.draw(); }
}

export class AllPage {
  constructor(sheet, save) {
    Object.assign(this, { sheet, save });
    this.body = h("div.groups");
    this.field = h("input", { type: "search", placeholder: told.filter, "aria-label": told.filter, oninput: () => this.draw() });
    this.node = h("div.tab", {}, h("p.hint", {}, told.writtenInto, " ", h("code", {}, sheet.told.file), " ", told.nextTurn, " ", h("code", {}, "EVERLOOP_…"), " ", told.changedThere), this.field, this.body);
    this.draw();
  }

  draw() {
    const words = this.field.value.trim().toLowerCase();
    const fits = (row) => isThere(row) && (!words || `${row.key} ${labelOf(row.key)} ${row.about} ${row.secret ? "" : JSON.stringify(row.value)}`.toLowerCase().includes(words));
    const tables = [...grouped(this.sheet.told.rows, (row) => row.key.split(".")[0])].map(([table, rows]) => [table, rows.filter(fits)]);
    const shown = tables.filter(([table, rows]) => rows.length || (!words && table in FIRST)).map(([table, rows]) => section(this.sheet, this.save, table, table, rows, !words));
    this.body.replaceChildren(...(shown.length ? shown : [h("p.hint", {}, told.nothingFits)]));
  }
}
