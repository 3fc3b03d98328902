// Who answers in this conversation: seen before the first message, and chosen by `/model`, as anyone could type it.

import { get } from "./api.js";
import { h, menu } from "./dom.js";
import { say } from "./say.js";

export class ModelPicker {
  /** `command(text)` gives a command; `again()` asks for the last answer again. */
  constructor(command, again) {
    this.command = command;
    this.again = again;
    this.choices = [];
    this.node = h("select.models", { "aria-label": say.modelHere, hidden: true, onchange: () => command(`/model ${this.node.value}`) });
  }

  /** Resolves to the sentence that says why nobody can answer, if that is so. */
  async load() {
    const { choices, missing } = await get("/api/models").catch(() => ({ choices: [] }));
    this.choices = choices;
    this.node.hidden = !choices.length;
    this.node.replaceChildren(...choices.map((each) => h("option", { value: each.name }, each.name)));
    return missing;
  }

  show(chosen) {
    const name = chosen || this.choices.find((each) => each.default)?.name;
    if (!name) return;
    if (![...this.node.options].some((each) => each.value === name)) this.node.append(h("option", { value: name }, name));
    this.node.value = name;
    this.node.disabled = this.node.options.length < 2;
  }

  /** Another model for the same question: a menu, where there is one to choose. */
  others(label, face = h("span", {}, label)) {
    const names = () => this.choices.map((each) => each.name).filter((name) => name !== this.node.value);
    if (!names().length) return null;
    return menu(label, () => names().map((name) => ["again", name, async () => { await this.command(`/model ${name}`); await this.again(); }]), face);
  }
}
