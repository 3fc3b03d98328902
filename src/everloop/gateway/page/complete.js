// What can be completed while one writes: slash commands, with what they do, and `@` with the files that are known here.

import { get } from "./api.js";
import { h } from "./dom.js";
import { say } from "./say.js";

const MOST = 8; // that are offered at once
let commands = null; // they are the same for every conversation

async function allCommands() {
  commands ??= get("/api/commands").then(({ commands: found }) => found).catch(() => { commands = null; return []; });
  return commands;
}

export class Completion {
  /** `paths()` resolves to the files that can be named. */
  constructor(field, paths) {
    this.field = field;
    this.paths = paths;
    this.found = [];
    this.node = h("ul.completion", { id: "completion", role: "listbox", "aria-label": say.completions, hidden: true });
  }

  /** Look what fits to the word at the cursor. */
  async look() {
    const before = this.field.value.slice(0, this.field.selectionStart);
    const asked = (this.asked = (this.asked ?? 0) + 1);
    const found = await this.fitting(before);
    if (asked === this.asked) this.offer(found, before);
  }

  async fitting(before) {
    const command = /^\s*(\/[a-z_-]*)$/i.exec(before);
    if (command) return (await allCommands()).filter((each) => each.name.startsWith(command[1].toLowerCase())).map((each) => offered(command[1], each.name, each));
    const word = /^\s*(\/[a-z_-]+)\s+([a-z]*)$/i.exec(before);
    if (word) {
      const { words = [] } = (await allCommands()).find((each) => each.name === word[1].toLowerCase()) ?? {};
      return words.filter((each) => each.name.startsWith(word[2].toLowerCase())).map((each) => offered(word[2], each.name, each));
    }
    const path = /(?:^|\s)@([^\s@]*)$/.exec(before);
    if (!path) return [];
    const sought = path[1].toLowerCase();
    return (await this.paths()).filter((each) => each.toLowerCase().includes(sought)).map((each) => offered(`@${path[1]}`, each, {}));
  }

  offer(found, before) {
    const whole = found.length === 1 && before.endsWith(found[0].text) && !found[0].takes;
    this.found = whole ? [] : found.slice(0, MOST);
    this.node.hidden = !this.found.length;
    this.node.replaceChildren(...this.found.map((each, i) => h("li", { role: "option", id: `completion-${i}`, onmousedown: (event) => { event.preventDefault(); this.take(i); } },
      h("b", {}, each.text), h("span.takes", {}, each.takes), h("span", {}, each.help))));
    this.choose(0);
  }

  choose(at) {
    this.at = (at + this.found.length) % (this.found.length || 1);
    [...this.node.children].forEach((each, i) => each.setAttribute("aria-selected", String(i === this.at)));
    if (this.found.length) this.field.setAttribute("aria-activedescendant", `completion-${this.at}`); else this.field.removeAttribute("aria-activedescendant");
    this.node.children[this.at]?.scrollIntoView({ block: "nearest" });
  }

  take(at) {
    const { text, typed } = this.found[at];
    const end = this.field.selectionStart;
    this.field.setRangeText(`${text} `, end - typed.length, end, "end");
    this.close();
    this.field.dispatchEvent(new Event("input"));
  }

  /** Whether the key was meant for what is offered. */
  typed(event) {
    if (this.node.hidden) return false;
    const whole = this.found[this.at].text === this.found[this.at].typed; // nothing is left to complete, so Enter sends
    if (event.key === "ArrowDown") this.choose(this.at + 1);
    else if (event.key === "ArrowUp") this.choose(this.at - 1);
    else if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey && !whole)) this.take(this.at);
    else if (event.key === "Escape") this.close();
    else return false;
    event.preventDefault();
    return true;
  }

  close() {
    this.asked = (this.asked ?? 0) + 1;
    this.offer([], "");
  }
}

const offered = (typed, text, { takes = "", help = "" }) => ({ typed, text, takes, help });
