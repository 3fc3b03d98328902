// What is seen of a conversation: its log, what was said before it, and where in it one reads. Whoever reads along at the
// end stays there, and so does whoever has scrolled up.

import { h, iconButton, toast } from "./dom.js";
import { Past, whole } from "./past.js";
import { say } from "./say.js";

const NEAR = 120; // pixels from the end that still count as reading along

export class Transcript {
  /** `newLog()` makes an empty log, `read(before, limit)` resolves to {entries} of earlier, `below` stands at the end. */
  constructor(newLog, read, below) {
    this.newLog = newLog;
    this.log = newLog();
    this.entries = [];
    this.past = new Past(newLog, read);
    this.empty = h("div.empty", { hidden: true });
    this.node = h("div.scroller", { onscroll: () => this.scrolled(), ongrown: () => this.follow(), tabindex: "-1" },
      h("div.column", {}, this.past.node, this.empty, this.log.node, below));
    this.growing = new ResizeObserver(() => this.follow()); // pictures, and what is opened, come later than their entry
    this.growing.observe(this.node.firstChild);
    this.toEnd = iconButton("down", say.toEnd, () => this.follow(true), { hidden: true, class: "ghost to-end" });
  }

  /** In place of a conversation: a greeting, or why there is none. */
  fill(nodes) {
    this.empty.hidden = false;
    this.empty.replaceChildren(...nodes);
  }

  show(entries) {
    const [before, rest] = whole(entries);
    this.past.open(before, rest[0]?.seq ?? 0);
    this.entries = entries;
    const log = this.newLog();
    for (const entry of rest) log.add(entry);
    this.log.node.replaceWith(log.node);
    this.log = log;
  }

  /** Those of the entries that were not here yet. */
  append(entries) {
    const fresh = entries.filter((entry) => entry.seq > this.log.seq);
    if (fresh.length) this.empty.hidden = true;
    for (const entry of fresh) this.log.add(entry);
    this.entries.push(...fresh);
    this.versions?.mark(this.node);
    return fresh;
  }

  async loadEarlier() {
    const shown = this.past.node.querySelector(".log") ?? this.log.node;
    let before = 0;
    const earlier = await this.past.load(() => { before = shown.getBoundingClientRect().top; });
    this.entries = [...earlier, ...this.entries];
    this.node.scrollTop += shown.getBoundingClientRect().top - before; // what one reads stays where it is
    this.top = this.node.scrollTop;
    this.versions?.mark(this.node);
  }

  async showVersions(about, go) {
    const { Versions } = await import("./versions.js");
    const versions = new Versions(about, go);
    await versions.load();
    versions.mark(this.node);
    this.versions = versions;
  }

  point(seq) {
    this.left = true;
    const found = [...this.node.querySelectorAll("[data-seq]")].filter((node) => Number(node.dataset.seq) <= seq).at(-1);
    const folded = found?.closest("details");
    if (folded) folded.open = true;
    found?.scrollIntoView({ block: "center" });
    found?.classList.add("found");
  }

  along() { return this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight < NEAR; }

  follow(always = false) {
    if (always) this.left = false;
    if (!this.left && this.empty.hidden) this.node.scrollTop = this.node.scrollHeight;
  }

  /** Whoever scrolls up wants to stay there; that the end moves away is no scrolling. */
  scrolled() {
    const top = this.node.scrollTop;
    if (this.along()) this.left = false;
    else if (top < (this.top ?? 0) - 2) this.left = true;
    this.top = top;
    this.toEnd.hidden = !this.left;
    if (this.left && top < this.node.clientHeight && this.past.more) this.loadEarlier().catch((error) => toast(error.message, "bad"));
  }

  /** What people have said here. */
  said() {
    return this.entries.filter((each) => each.kind === "user_said").map((each) => each.parts.find((part) => part.type === "text")?.text ?? "").filter(Boolean);
  }

  /** The files that this conversation tells of, the latest first. */
  paths() {
    const found = new Set();
    for (const entry of this.entries.toReversed()) {
      for (const each of [...(entry.changes ?? []), ...(entry.made ?? []), ...(entry.links ?? [])]) found.add(each.path ?? each.name);
    }
    return [...found].filter(Boolean);
  }

  close() { this.growing.disconnect(); }
}
