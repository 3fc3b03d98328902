// A running answer. What stands before the last blank line is drawn once, the rest anew with each frame.

import { h } from "./dom.js";
import { markdown } from "./markdown.js";
import { say } from "./say.js";

export class Draft {
  constructor(msg) {
    this.msg = msg;
    this.text = this.thoughts = "";
    this.n = 0;
    this.drawn = 0;
    this.stable = h("div");
    this.tail = h("div");
    this.thinking = h("details.reasoning.live", { hidden: true }, h("summary", {}, say.thinking), h("div.prose.plain", { dir: "auto" }));
    this.dots = h("div.dots", { role: "status", "aria-label": say.working }, h("i"), h("i"), h("i"));
    this.node = h("article.said.model.draft", { "aria-label": say.answering },
      this.thinking, h("div.prose", {}, this.stable, this.tail), this.dots);
  }

  /** The call whose answer it is, by its place in the log. */
  get called() { return Number(/(\d+)$/.exec(String(this.msg))?.[1] ?? 0); }

  take({ n, delta, reasoning: thought, progress }) {
    if (n !== undefined && n <= this.n) return; // we have it already
    this.n = n ?? this.n;
    if (progress || this.going) import("./going.js").then(({ goOn }) => goOn(this, progress));
    this.text += delta ?? "";
    this.thoughts += thought ?? "";
    this.planned ??= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.planned = undefined;
    if (this.thoughts) {
      this.thinking.hidden = false;
      this.thinking.lastChild.textContent = this.thoughts;
    }
    const until = lastBreak(this.text, this.drawn);
    if (until > this.drawn) {
      this.stable.append(markdown(this.text.slice(this.drawn, until)));
      this.drawn = until;
    }
    this.tail.replaceChildren(markdown(this.text.slice(this.drawn)));
    this.node.dispatchEvent(new CustomEvent("grown", { bubbles: true }));
  }

  settle() { this.dots.hidden = true; }
}

/** The end of the last whole block: a blank line that no fence is open around. */
function lastBreak(text, from) {
  let at = from;
  let open = false;
  let found = from;
  for (const line of text.slice(from).split("\n")) {
    if (/^\s*(```|~~~)/.test(line)) open = !open;
    at += line.length + 1;
    if (!open && !line.trim() && at <= text.length) found = at;
  }
  return found;
}
