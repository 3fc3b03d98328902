// Who answers: the usual model and those that take its place, presets, keys, and a trial with timings.

import { get, post, put, remove } from "./api.js";
import { ask, h, iconButton, toast } from "./dom.js";
import { quoted, settingField } from "./setup.js";
import { dollars, lasted } from "./words.js";

const MAIN = [["agents.defaults.model", "Usual model"], ["agents.defaults.fallbacks", "When it cannot answer"], ["agents.defaults.small_model", "For summaries"], ["agents.defaults.reasoning_effort", "Reasoning effort"]];

export class ModelsTab {
  constructor(sheet, save) {
    this.sheet = sheet;
    this.save = save;
    this.known = h("datalist", { id: "known-models" });
    this.warning = h("div");
    this.main = h("div.sheet");
    this.presets = h("div.presets");
    this.keys = h("div.keys");
    this.node = h("div.tab", {}, this.known, this.warning,
      h("section.group", {}, h("h2", {}, "Who answers"), this.main, this.trial("")),
      h("section.group", {}, h("h2", {}, "Presets"), h("p.hint", {}, "A model under a name of your own, for the usual model and for ", h("code", {}, "/model NAME"), " in one conversation."), this.presets),
      h("section.group", {}, h("h2", {}, "Keys"), this.keys));
    this.draw();
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
    const link = h("p.callout.bad", { role: "alert" }, missing);
    this.warning.replaceChildren(...(missing ? [link] : notice ? [h("p.callout", {}, notice)] : []));
    this.known.replaceChildren(...["auto", "embedded", ...choices.map((each) => each.name)].map((name) => h("option", { value: name })));
  }

  drawPresets() {
    const rows = this.sheet.told.rows.filter((row) => row.key.startsWith("models.") && row.key.endsWith(".model") && !row.key.includes("<name>"));
    const name = h("input", { "aria-label": "Name of the preset", placeholder: "Name, such as quick", maxlength: 60, required: true });
    const model = h("input", { "aria-label": "Model of the preset", placeholder: "provider/model", list: "known-models", required: true });
    const wrong = h("p.wrong", { role: "alert" });
    const submit = async (event) => {
      event.preventDefault();
      wrong.textContent = (await this.save({ [`models.${quoted(name.value.trim())}.model`]: model.value.trim() })) ?? "";
    };
    this.presets.replaceChildren(...rows.map((row) => this.preset(row)),
      h("form.adding", { onsubmit: submit }, name, model, h("button.small", { type: "submit" }, "Add a preset"), wrong));
  }

  preset(row) {
    const name = row.key.slice("models.".length, -".model".length).replace(/^"|"$/g, "");
    const save = (key, value) => this.save({ [key]: value });
    return h("div.preset", {}, settingField({ ...row, about: "", list: "known-models" }, save, { label: name, plain: true, resets: false }),
      h("div.row", {}, this.trial(name), iconButton("close", `Remove the preset ${name}`, () => this.forgetPreset(name))));
  }

  async forgetPreset(name) {
    if (!await ask({ title: `Remove the preset ${name}?`, text: "Conversations that use it go on with the usual model.", yes: "Remove" })) return;
    const refused = await this.save({ [`models.${quoted(name)}`]: null });
    if (refused) toast(refused, "bad");
  }

  /** A button that asks a model for an answer and a tool call, and tells how long that took. */
  trial(name) {
    const told = h("ul.trial", { role: "status" });
    const button = h("button.small", { type: "button", onclick: async () => {
      button.disabled = true;
      told.replaceChildren(h("li", {}, "asking …"));
      try {
        const { model, checks } = await post("/api/models/test", { name });
        told.replaceChildren(h("li.soft", {}, model), ...checks.map((each) => h(each.ok ? "li.good" : "li.bad", {}, checked(each))));
      } catch (error) { told.replaceChildren(h("li.bad", {}, error.message)); }
      button.disabled = false;
    } }, name ? `Test ${name}` : "Test the usual model");
    return h("div.try", {}, button, told);
  }

  drawKeys({ keys, refused }) {
    if (!keys) { this.keys.replaceChildren(h("p.hint", {}, refused)); return; }
    const found = keys.filter((each) => each.where || each.in_vault || each.problem);
    const select = h("select", { "aria-label": "Provider", required: true }, keys.filter((each) => !each.login).map((each) => h("option", { value: each.name }, each.name)));
    const field = h("input", { type: "password", "aria-label": "Key", placeholder: "Paste the key", autocomplete: "off", required: true });
    const wrong = h("p.wrong", { role: "alert" });
    const submit = async (event) => {
      event.preventDefault();
      try {
        const { name, notes } = await put(`/api/keys/${encodeURIComponent(select.value)}`, { key: field.value });
        field.value = "";
        toast([`The key of ${name} is kept in the vault.`, ...notes].join(" "));
        this.draw();
      } catch (error) { wrong.textContent = error.message; }
    };
    this.keys.replaceChildren(h("p.hint", {}, "A key is kept in the vault, encrypted, and never shown again."),
      ...(found.length ? [h("ul.held", {}, found.map((each) => h("li", {}, h("b", {}, each.name), h("span", {}, each.problem || where(each)),
        each.in_vault && iconButton("close", `Forget the key of ${each.name}`, () => this.forgetKey(each.name)))))] : []),
      h("form.adding", { onsubmit: submit }, select, field, h("button.small", { type: "submit" }, "Keep the key"), wrong));
  }

  async forgetKey(name) {
    if (!await ask({ title: `Forget the key of ${name}?`, text: "It cannot be shown again; you would need to paste it anew.", yes: "Forget" })) return;
    try { await remove(`/api/keys/${encodeURIComponent(name)}`); toast(`The key of ${name} is forgotten.`); } catch (error) { toast(error.message, "bad"); }
    this.draw();
  }
}

const where = (each) => (each.where === "vault" ? "in the vault" : each.where === "settings" ? "in the settings file" : each.where === "file" ? "in a file of its own" : each.where ? `from ${each.where}` : "in the vault, not used");

function checked(each) {
  if (!each.ok) return `${each.name}: ${each.why}`;
  const first = each.first === null ? "" : `began after ${lasted(each.first)}, `;
  const size = each.dimensions ? `${each.dimensions} dimensions` : `${each.input} tokens in, ${each.output} out`;
  return `${each.name}: ${first}ended after ${lasted(each.total)} · ${size}${each.cost === null ? "" : ` · ${dollars(each.cost)}`}`;
}
