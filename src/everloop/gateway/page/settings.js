// The settings as they are in force. Secrets never come here; of them one sees whether they are set.

import { get } from "./api.js";
import { h } from "./dom.js";

export class SettingsView {
  constructor(house) {
    this.body = h("div");
    this.field = h("input", { type: "search", placeholder: "Filter settings", "aria-label": "Filter settings", oninput: () => this.draw() });
    this.node = h("section.page", { "aria-label": "Settings" },
      h("header.bar", {}, house.menuButton(), h("h1.title", {}, "Settings")),
      h("div.scroller", {}, h("div.column.wide", {}, h("p.hint", {},
        "These are in force now. They come from config.toml in the home, from EVERLOOP_… variables, and from defaults; change them there and start the gateway again. ",
        "To let another model answer in one conversation, write ", h("code", {}, "/model NAME"), " in it."),
      this.field, this.body)));
    this.load();
  }

  async load() {
    try {
      [this.models, { settings: this.settings }] = await Promise.all([get("/api/models"), get("/api/settings")]);
      this.draw();
    } catch (error) {
      this.body.replaceChildren(h("p.hint", {}, error.status === 403 ? "Only administrators see the settings." : error.message));
    }
  }

  draw() {
    if (!this.settings) return;
    const wanted = this.field.value.trim().toLowerCase();
    const groups = Object.entries(this.settings).map(([name, value]) => [name, flat(name, value).filter(([key, text]) => `${key} ${text}`.toLowerCase().includes(wanted))]);
    const shown = groups.filter(([, rows]) => rows.length).map(([name, rows]) => h("section.group", {}, h("h2", {}, name),
      h("dl", {}, rows.map(([key, text]) => h("div", {}, h("dt", {}, key), h("dd", {}, text === "" ? h("span.unset", {}, "not set") : text))))));
    this.body.replaceChildren(...(wanted ? [] : [this.modelCards()]), ...(shown.length ? shown : [h("p.hint", {}, "No setting has that in it.")]));
  }

  modelCards() {
    return h("section.group", {}, h("h2", {}, "models that can answer"), this.models.notice && h("p.hint", {}, this.models.notice),
      h("div.tiles", {}, this.models.choices.map((each) => h("div.tile", {}, h("span", {}, each.default ? "the usual one" : "/model"), h("b", {}, each.name), h("small", {}, each.model !== each.name ? each.model : "")))));
  }

  frame() {}
  reconnected() {}
}

function flat(key, value) {
  if (value && typeof value === "object" && !Array.isArray(value)) {
    const rows = Object.entries(value).flatMap(([name, each]) => flat(`${key}.${name}`, each));
    return rows.length ? rows : [[key, ""]];
  }
  if (Array.isArray(value)) return [[key, value.map((each) => (typeof each === "object" ? JSON.stringify(each) : String(each))).join(", ")]];
  return [[key, value === null ? "" : String(value)]];
}
