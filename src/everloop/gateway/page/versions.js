// The versions of a question or an answer. To edit or to ask again is to branch: the threads of a session that part at the
// same entry are versions of what follows it.

import { get } from "./api.js";
import { h, iconButton } from "./dom.js";
import { told } from "./say-manage.js";

export class Versions {
  constructor(about, go) {
    this.about = about;
    this.go = go;
    this.points = new Map(); // after which entry threads part, and which
  }

  async load() {
    const { sessions } = await get("/api/sessions", { session: this.about.session, archived: true, limit: 500 });
    const known = new Map(sessions.map((each) => [each.id, each]));
    let [here, until] = [known.get(this.about.id), Infinity];
    while (here) { // each part of the line is a thread's own, up to where the next one left it
      for (const child of sessions.filter((each) => each.parent === here.id && each.parent_seq < until)) this.part(child.parent_seq, [here, ...family(child, sessions)]);
      until = here.parent_seq;
      const parent = known.get(here.parent);
      if (parent) this.part(until, [parent, ...family(here, sessions)]);
      here = parent;
    }
  }

  part(seq, threads) {
    const found = this.points.get(seq) ?? new Map();
    for (const each of threads) found.set(each.id, each);
    this.points.set(seq, found);
    this.line ??= new Set([this.about.id]);
  }

  /** Put ‹ 2/3 › below what follows each point, where it is shown. */
  mark(node) {
    for (const [seq, threads] of this.points) {
      const sorted = [...threads.values()].sort((one, other) => one.created - other.created);
      const at = sorted.findIndex((each) => each.id === this.ours(sorted));
      const block = [...node.querySelectorAll(".said[data-seq]")].find((each) => Number(each.dataset.seq) > seq);
      const acts = block?.querySelector(":scope > .acts");
      if (sorted.length < 2 || at < 0 || !acts || acts.querySelector(".versions")) continue;
      const turn = (step) => iconButton(step < 0 ? "left" : "right", step < 0 ? told.versionBefore : told.versionAfter, () => this.go(sorted[at + step].id), { disabled: !sorted[at + step] });
      acts.prepend(h("span.versions", {}, turn(-1), h("span.facts", {}, told.version(at + 1, sorted.length)), turn(1)));
    }
  }

  /** Which of them leads to the thread that is shown. */
  ours(threads) {
    const ids = new Set(threads.map((each) => each.id));
    if (ids.has(this.about.id)) return this.about.id;
    return threads.find((each) => each.id === this.about.parent)?.id;
  }
}

/** A thread and those that have left it where it began: further versions of the same thing. */
function family(thread, all) {
  const found = [thread];
  for (const one of found) found.push(...all.filter((each) => each.parent === one.id && each.parent_seq === thread.parent_seq && !found.includes(each)));
  return found;
}
