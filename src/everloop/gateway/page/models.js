// Who answers: the usual model and those that take its place, presets, keys, and a trial with timings.

import { get, post, put, remove } from "./api.js";
import { ask, h, iconButton, toast } from "./dom.js";
import { told } from "./say-manage.js";
import { quoted, settingField } from "./setup.js";
import { dollars, lasted } from "./words.js";

const MAIN = ["model", "fallbacks", "small_model", "reasoning_effort"].map((name, i) => [`agents.defaults.${name}`, told.main[i]]);

export class ModelsTab {
  constructor(sheet, save) {
    this.sheet = sheet;
    this.save = save;
    this.known = h("datalist", { id: "known-models" });
    this.warning = h("div");
    this.main = h("div.sheet");
    this.presets = h("div.presets");
    this.keys = h("div.keys");
    this.connect = h("div");
    this.node = h("div.tab", {}, this.known, this.warning, this.connect,
      h("section.group", {}, h("h2", {}, told.whoAnswers), this.main, this.trial("")),
      h("section.group", {}, h("h2", {}, told.presets), h("p.hint", {}, told.presetsHint, " ", h("code", {}, "/model NAME"), " ", told.presetsHint2), this.presets),
      h("section.group", {}, h("h2", {}, told.keys), this.keys));
    this.draw();
    this.offer();
  }

  async offer() {
    const { ConnectCard } = await import("./connect.js");
    const card = new ConnectCard(async () => { await this.sheet.load(); this.draw(); });
    await card.ready; // then it is known whether there is anything to choose
    if (card.providers.length || card.wrong.textContent) this.connect.replaceChildren(card.node);
  }

  async draw() {
    const save = (key, value) => this.save({ [key]: value });
    this.main.replaceChildren(...MAIN.map(([key, label]) => settingField({ ...this.sheet.row(key), list: "known-models" }, save, { label, plain: true })));
    this.drawPresets();
    const [models, kept] = await Promise.all([get("/api/models").catch(() => null), get("/api/keys").catch((error) => ({ refused: error.message }))]);
    if (models) this.drawModels(models);
    this.drawKeys(kept);
  }

  drawModels({ missing, notice, choices }) {
    const why = h("details.callout.bad", {}, h("summary", { role: "alert" }, told.nobodyAnswers), missing);
    this.warning.replaceChildren(...(missing ? [why] : notice ? [h("p.callout", {}, notice)] : []));
    this.known.replaceChildren(...["auto", "embedded", ...choices.map((each) => each.name)].map((name) => h("option", { value: name })));
  }

  drawPresets() {
    const rows = this.sheet.told.rows.filter((row) => row.key.startsWith("models.") && row.key.endsWith(".model") && !row.key.includes("<name>"));
    const name = h("input", { "aria-label": told.presetName, placeholder: told.presetExample, maxlength: 60, required: true });
    const model = h("input", { "aria-label": told.presetModel, placeholder: told.adding.models[2], list: "known-models", required: true });
    const wrong = h("p.wrong", { role: "alert" });
    const submit = async (event) => {
      event.preventDefault();
      wrong.textContent = (await this.save({ [`models.${quoted(name.value.trim())}.model`]: model.value.trim() })) ?? "";
    };
    this.presets.replaceChildren(...rows.map((row) => this.preset(row)),
      h("form.adding", { onsubmit: submit }, name, model, h("button.small", { type: "submit" }, told.addPreset), wrong));
  }

  preset(row) {
    const name = row.key.slice("models.".length, -".model".length).replace(/^"|"$/g, "");
    const save = (key, value) => this.save({ [key]: value });
    return h("div.preset", {}, settingField({ ...row, about: "", list: "known-models" }, save, { label: name, plain: true, resets: false }),
      h("div.row", {}, this.trial(name), iconButton("close", told.removePreset(name), () => this.forgetPreset(name))));
  }

  async forgetPreset(name) {
    if (!await ask({ title: told.removePresetTitle(name), text: told.removePresetText, yes: told.remove })) return;
    const refused = await this.save({ [`models.${quoted(name)}`]: null });
    if (refused) toast(refused, "bad");
  }

  /** A button that asks a model for an answer and a tool call, and tells how long that took. */
  trial(name) {
    const shown = h("ul.trial", { role: "status" });
    const button = h("button.small", { type: "button", onclick: async () => {
      button.disabled = true;
      shown.replaceChildren(h("li", {}, told.asking));
      try {
        const { model, checks } = await post("/api/models/test", { name });
        shown.replaceChildren(h("li.soft", {}, model), ...checks.map((each) => h(each.ok ? "li.good" : "li.bad", {}, checked(each))));
      } catch (error) { shown.replaceChildren(h("li.bad", {}, error.message)); }
      button.disabled = false;
    } }, told.test(name));
    return h("div.try", {}, button, shown);
  }

  drawKeys({ keys, refused }) {
    if (!keys) { this.keys.replaceChildren(h("p.hint", {}, refused)); return; }
    const found = keys.filter((each) => each.where || each.in_vault || each.problem);
    const select = h("select", { "aria-label": told.provider, required: true }, keys.filter((each) => each.needs_key).map((each) => h("option", { value: each.name }, each.name)));
    const field = h("input", { type: "password", "aria-label": told.key, placeholder: told.pasteKey, autocomplete: "off", required: true });
    const wrong = h("p.wrong", { role: "alert" });
    const submit = async (event) => {
      event.preventDefault();
      try {
        const { name, notes } = await put(`/api/keys/${encodeURIComponent(select.value)}`, { key: field.value });
        field.value = "";
        toast([told.keyKept(name), ...notes].join(" "));
        this.draw();
      } catch (error) { wrong.textContent = error.message; }
    };
    this.keys.replaceChildren(h("p.hint", {}, told.keyHint),
      ...(found.length ? [h("ul.held", {}, found.map((each) => h("li", {}, h("b", {}, each.name), h("span", {}, each.problem || where(each)),
        each.in_vault && iconButton("close", told.forgetKey(each.name), () => this.forgetKey(each.name)))))] : []),
      h("form.adding", { onsubmit: submit }, select, field, h("button.small", { type: "submit" }, told.saveKey), wrong));
  }

  async forgetKey(name) {
    if (!await ask({ title: told.forgetKeyTitle(name), text: told.forgetKeyText, yes: told.forget })) return;
    try { await remove(`/api/keys/${encodeURIComponent(name)}`); toast(told.keyForgotten(name)); } catch (error) { toast(error.message, "bad"); }
    this.draw();
  }
}

const where = (each) => told.where[each.where] ?? (each.where ? told.whereElse(each.where) : told.whereUnused);

function checked(each) {
  if (!each.ok) return `${each.name}: ${each.why}`;
  const first = each.first === null ? "" : told.began(lasted(each.first));
  const size = each.dimensions ? told.dimensions(each.dimensions) : told.tokens(each.input, each.output);
  return `${each.name}: ${first}${told.ended(lasted(each.total))} · ${size}${each.cost === null ? "" : ` · ${dollars(each.cost)}`}`;
}
