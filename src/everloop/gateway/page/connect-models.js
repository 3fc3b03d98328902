// Which of the models that a provider lists: a field that searches them, and what each can read and costs, where known.

import { h } from "./dom.js";
import { words } from "./say-connect.js";
import { count } from "./words.js";

const MOST = 60; // that are shown at once; a gateway has hundreds
const FEW = 6; // that are seen without a search

export class ModelChoice {
  /** `changed(name)` is told which one it is now. */
  constructor({ models, usual }, changed) {
    this.models = [...models].sort((one, other) => (other.name === usual) - (one.name === usual));
    this.changed = changed;
    this.value = usual;
    this.field = h("input", { type: "text", "aria-label": models.length ? words.searchModels(models.length) : words.nameModel, placeholder: models.length ? words.searchModels(models.length) : words.nameModel, autocomplete: "off", spellcheck: "false", oninput: () => this.search() });
    this.list = h("div.models-found", { role: "listbox", "aria-label": words.model, tabindex: "-1" });
    this.node = h("div.choice", {}, (models.length > FEW || !models.length) && this.field, models.length ? this.list : h("p.hint", {}, words.noModels));
    this.draw(this.models);
    changed(this.value);
  }

  search() {
    const text = this.field.value.trim();
    const fitting = this.models.filter((each) => each.name.toLowerCase().includes(text.toLowerCase()));
    this.value = this.models.find((each) => each.name === text)?.name ?? fitting[0]?.name ?? text; // what is not listed may be there all the same
    this.draw(fitting);
    this.changed(this.value);
  }

  draw(models) {
    const rows = models.slice(0, MOST).map((each) => h("button.offered-model", { type: "button", role: "option", "aria-selected": String(each.name === this.value), onclick: () => { this.value = each.name; this.draw(models); this.changed(this.value); } },
      h("b.name", {}, each.name), h("small", {}, facts(each))));
    this.list.replaceChildren(...(rows.length || !this.models.length ? rows : [h("p.hint", {}, words.noneCalled)]));
  }
}

const facts = ({ window, input, output }) => [window && words.reads(count(window)), input !== null && words.price(input, output)].filter(Boolean).join(" · ");
