// Who answers here, and what that costs.

import { get } from "./api.js";
import { h, icon } from "./dom.js";
import { chosenFor } from "./drafts.js";
import { say } from "./say.js";
import { rate } from "./words.js";

export class ModelPicker {
  constructor(chat) {
    this.chat = chat;
    this.choices = [];
    this.pending = chosenFor(chat.session); // before the first message, with which it goes
    this.node = this.opener(say.modelHere, h("span.name"));
    this.node.classList.add("models");
    this.node.append(icon("fold"));
    this.cost = h("p.cost");
  }

  /** Resolves to why nobody can answer, if so. */
  async load() {
    ({ choices: this.choices, missing: this.missing } = await get("/api/models").catch(() => this));
    return this.missing;
  }

  /** `chosen` is what the log says. */
  show(chosen) {
    const { fresh } = this.chat;
    const usual = this.choices.find((each) => each.default);
    const now = (fresh && this.pending) || this.choices.find((each) => each.name === chosen) || (chosen ? { name: chosen } : usual);
    this.now = now;
    this.node.hidden = !usual;
    this.cost.hidden = !fresh || !usual || this.missing;
    if (!now) return;
    this.node.firstChild.textContent = now.default ? now.model : now.name;
    this.node.ariaLabel = `${say.modelHere}: ${now.name}`;
    this.cost.textContent = `${now.model ?? now.name} · ${now.local ? say.free : now.input == null ? say.noPrice : say.price(rate(now.input), rate(now.output))}`;
  }

  opener(label, face, again = false) {
    return h(face.localName === "svg" ? "button.ghost" : "button", { type: "button", "aria-label": label, title: label, "aria-haspopup": "dialog", onclick: async () => (await import("./model-list.js")).chooseModel(this, label, again) }, face);
  }

  /** Another model for the same question. */
  others(label, face = h("span", {}, label)) {
    return this.choices.length ? this.opener(label, face, true) : null;
  }
}
