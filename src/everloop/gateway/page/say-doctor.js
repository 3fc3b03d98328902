// The words of Doctor.

import { spoken } from "./say.js";

export const told = spoken({
  again: "Look again", fix: "Mend what is safe", looking: "Looking at everything …", mending: "Mending …",
  mended: (n) => (n === 1 ? "One thing is mended." : `${n} things are mended.`),
  todo: "What to do:", goTo: (name) => `Open ${name}`, others: (n) => `What is well or was skipped (${n})`,
  words: { ok: "Well", advice: "To consider", broken: "Broken", skipped: "Skipped" },
  verdicts: {
    ok: () => "All is well.", advice: (n) => (n === 1 ? "Nothing is broken. One thing could be better." : `Nothing is broken. ${n} things could be better.`),
    broken: (n) => (n === 1 ? "Something is broken." : `${n} findings, and something is broken.`),
  },
  log: "Log", level: "At least so serious", filter: "Words in it", live: "Live", connecting: "Connecting …",
  levels: { debug: "Debug", info: "Info", warning: "Warning", error: "Error", critical: "Critical" },
  noneFits: "Nothing in the log fits.", noneYet: "The log is empty: it is written when there is something to tell.", detail: "Details",
});
