// What was said before the part of a conversation that is shown: read as one scrolls up, and drawn above the rest, which
// stays as it is. Parts begin and end where turns do, so that each is a fold of its own.

import { h } from "./dom.js";
import { closes } from "./log.js";
import { say } from "./say.js";

const PART = 30; // entries: few enough to be drawn, and laid out, between two frames

/** The entries of a turn that began earlier, and those of whole turns. */
export function whole(entries) {
  if (!entries.length || entries[0].seq <= 1) return [[], entries];
  let closed = false;
  for (const [i, entry] of entries.entries()) {
    if (closed && entry.kind === "user_said") return [entries.slice(0, i), entries.slice(i)];
    if (closes(entry)) closed = true;
    else if (["user_said", "model_called"].includes(entry.kind)) closed = false;
  }
  return [[], entries]; // one turn that is longer than this: it is shown as far as it goes
}

export class Past {
  /** `read(before, limit)` resolves to {entries}. */
  constructor(newLog, read) {
    this.newLog = newLog;
    this.read = read;
    this.waiting = h("p.note", { hidden: true, role: "status" }, say.loadingEarlier);
    this.node = h("div.past", {}, this.waiting);
    this.open([], 0);
  }

  /** `rest` are entries that are read and belong to a turn whose beginning is not; `first` is the first that is shown. */
  open(rest, first) {
    this.rest = rest;
    this.first = rest[0]?.seq ?? first;
    this.node.replaceChildren(this.waiting);
  }

  get more() { return (this.first > 1 || this.rest.length > 0) && !this.loading; }

  /** Resolves to the entries that were read, and shows those of whole turns; `ready` is called just before that. */
  async load(ready) {
    this.loading = true;
    this.waiting.hidden = false;
    try {
      const { entries } = this.first > 1 ? await this.read(this.first, PART) : { entries: [] };
      const [before, now] = whole([...entries, ...this.rest]);
      this.rest = before;
      this.first = entries[0]?.seq ?? 1;
      ready();
      this.draw(now);
      return entries;
    } finally {
      this.loading = false;
      this.waiting.hidden = true;
    }
  }

  draw(entries) {
    const log = this.newLog();
    for (const entry of entries) log.add(entry);
    for (const last of [log.lastUser, log.lastAnswer]) last?.classList.remove("last");
    log.node.removeAttribute("role");
    log.node.removeAttribute("aria-live");
    log.node.removeAttribute("aria-label");
    this.waiting.after(log.node);
  }
}
