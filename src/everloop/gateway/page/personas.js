// Personas: who the agent is at which place, made, changed and removed by the owner.

import { get, patch, post, remove } from "./api.js";
import { ask, h, toast } from "./dom.js";
import { line } from "./lines.js";
import { told } from "./say-personas.js";

const OPEN = ["user", "admin", "owner"];

export class PersonasPage {
  constructor(role) {
    this.isOwner = role === "owner";
    this.list = h("div.people");
    this.adding = h("div");
    this.node = h("div.tab", {}, h("p.hint", {}, told.intro), this.list,
      this.isOwner ? h("section.group", {}, h("h2", {}, told.add), this.adding) : h("p.hint", {}, told.onlyOwner));
    this.draw();
  }

  async draw() {
    try {
      const found = await get("/api/personas");
      this.names = found.files;
      this.list.replaceChildren(...(found.personas.length ? found.personas.map((each) => this.tile(each)) : [h("p.hint", {}, told.none)]));
      if (this.isOwner && !this.adding.firstChild) this.adding.append(this.form());
    } catch (error) { this.list.replaceChildren(h("p.hint", {}, error.message)); }
  }

  tile(each) {
    const facts = [
      told.facts.tools(each.tools === null ? told.facts.all : each.tools.join(", ") || told.facts.no),
      each.model && told.facts.model(each.model), each.max_tokens && told.facts.most(each.max_tokens), told.facts.open(told.roles[each.open_to]),
      Object.keys(each.files).length > 0 && told.facts.files(Object.keys(each.files).join(", ")),
    ].filter(Boolean);
    const tile = h("article.tile", { "data-persona": each.name },
      h("b", {}, each.name), each.prompt && h("p.text", { dir: "auto" }, each.prompt),
      h("ul.facts", {}, facts.map((text) => h("li", {}, text))),
      h("ul.facts", { "aria-label": told.of(told.places, each.name) }, each.places.length ? each.places.map((place) => h("li", {}, h("code", {}, place))) : h("li", {}, told.nowhere)),
      this.isOwner && h("div.row", {},
        h("button.small", { type: "button", "aria-label": told.editNamed(each.name), onclick: () => { const form = this.form(each); tile.replaceWith(form); form.querySelector("textarea").focus(); } }, told.edit),
        h("button.small", { type: "button", "aria-label": told.removeNamed(each.name), onclick: () => this.forget(each) }, told.remove)));
    return tile;
  }

  /** Of a persona, or of one that is to be. */
  form(each) {
    const named = (what) => told.of(what, each?.name ?? told.newOne);
    const name = each ? null : h("input", { "aria-label": told.name, placeholder: told.nameHint, maxlength: 40, required: true, autocapitalize: "off", spellcheck: "false" });
    const prompt = area(named(told.prompt), each?.prompt, 5, told.promptHint);
    const all = h("select", { "aria-label": named(told.tools), onchange: () => { tools.hidden = all.value === "all"; } }, h("option", { value: "all" }, told.allTools), h("option", { value: "some" }, told.someTools));
    const tools = h("input", { "aria-label": named(told.someTools), placeholder: told.toolsHint, value: (each?.tools ?? []).join(", "), hidden: (each?.tools ?? null) === null });
    all.value = tools.hidden ? "all" : "some";
    const model = h("input", { "aria-label": named(told.model), placeholder: told.modelHint, value: each?.model ?? "", maxlength: 200 });
    const most = h("input", { type: "number", min: 1, "aria-label": named(told.most), placeholder: told.mostHint, value: each?.max_tokens ?? "" });
    const open = h("select", { "aria-label": named(told.openTo) }, OPEN.map((role) => h("option", { value: role }, told.roles[role])));
    open.value = each?.open_to ?? "admin";
    const places = area(named(told.places), (each?.places ?? []).join("\n"), 2, told.placesHint);
    const files = this.names.map((file) => [file, area(named(file), each?.files[file], 3)]);
    const wrong = h("p.wrong", { role: "alert" });
    const read = () => ({
      prompt: prompt.value, tools: all.value === "all" ? null : words(tools.value, ","), model: model.value.trim(), max_tokens: most.value ? Number(most.value) : null,
      open_to: open.value, places: words(places.value, "\n"), files: Object.fromEntries(files.filter(([file, field]) => field.value !== (each?.files[file] ?? "")).map(([file, field]) => [file, field.value])),
    });
    const submit = async (event) => {
      event.preventDefault();
      wrong.textContent = "";
      try {
        const { persona } = each ? await patch(at(each), read()) : await post("/api/personas", { name: name.value.trim(), ...read() });
        toast((each ? told.saved : told.added)(persona.name));
        if (!each) this.adding.replaceChildren();
        await this.draw();
        this.list.querySelector(`[data-persona="${persona.name}"]`)?.scrollIntoView({ block: "nearest" });
      } catch (error) { wrong.textContent = error.message; }
    };
    return h("form.tile.persona", { onsubmit: submit },
      each ? h("b", {}, each.name) : line(told.name, name), line(told.prompt, prompt), line(told.tools, all), tools,
      line(told.model, model), line(told.most, most), line(told.openTo, open), line(told.places, places),
      h("details", {}, h("summary", {}, told.files), h("p.hint", {}, told.filesText), files.map(([file, field]) => line(h("code", {}, file), field))), wrong,
      h("div.row", {}, h("button.primary", { type: "submit" }, each ? told.save : told.addIt), each && h("button", { type: "button", onclick: () => this.draw() }, told.cancel)));
  }

  async forget(each) {
    if (!await ask({ title: told.removeTitle(each.name), text: told.removeText, yes: told.remove, grave: true })) return;
    try { toast((await remove(at(each))).told); } catch (error) { toast(error.message, "bad"); }
    await this.draw();
  }

  reconnected() {} // what is being written stays
}

const at = (each) => `/api/personas/${encodeURIComponent(each.name)}`;

const words = (text, between) => text.split(between).map((each) => each.trim()).filter(Boolean);

const area = (label, value = "", rows, placeholder) => h("textarea", { "aria-label": label, value, rows, placeholder });
