// A run of tool calls between two things that were said. When the turn is over, a long one is folded into a line that
// says how many there were and how long they took.

import { h } from "./dom.js";
import { say } from "./say.js";
import { lasted } from "./words.js";

const FEW = 3; // from so many on they are folded

export class Steps {
  constructor() {
    this.cards = [];
    this.line = h("summary", { hidden: true });
    this.node = h("details.steps", { open: true }, this.line);
  }

  /** Further calls, after what was thought before them. */
  add(seq, cards, thought) {
    this.cards.push(...cards);
    this.node.append(h("div.step", { "data-seq": seq }, thought, cards.map((card) => card.node)));
  }

  fold() {
    if (this.cards.length < FEW) return;
    const took = Math.max(...this.cards.map((card) => card.ended ?? 0)) - Math.min(...this.cards.map((card) => card.began));
    const failed = this.cards.filter((card) => card.failed).length;
    this.line.replaceChildren([say.steps(this.cards.length), took > 0 && lasted(took), failed && say.failedSteps(failed)].filter(Boolean).join(" · "));
    this.line.hidden = false;
    if (!this.cards.some((card) => card.details.open)) this.node.open = false; // whoever is reading goes on
  }
}
