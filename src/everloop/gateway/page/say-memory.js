// The words of Memory.

import { spoken } from "./say.js";

export const told = spoken({
  show: "What to show", tabs: { memory: "What it is told", facts: "Facts", history: "History", versions: "Versions" },
  known: (facts, marked) => `${facts} ${facts === 1 ? "fact is" : "facts are"} remembered for you${marked ? `, ${marked} of them from strangers' words` : ""}. Nobody else sees ${facts === 1 ? "it" : "them"}.`,
  leftOut: (lines) => `${lines} lines do not fit into what the agent is told; those that matter least are left out, and it finds them when they are meant.`,
  documents: {
    memory: "The agent is told this in every conversation. Each bullet is a fact: one that you remove is true no longer, one that you add is remembered.",
    history: "What happened when. It is for you to read and stands in no prompt.",
  },
  empty: "Nothing yet", save: "Save", saved: "Saved as a new version.",
  leave: "Leave without saving?", leaveText: "What you have changed is lost.", leaveYes: "Leave",
  search: "Search what is remembered", find: "Search", alsoEnded: "Also what is true no longer", more: "Earlier facts",
  nothing: "Nothing is remembered yet", nothingHint: "What you tell the agent about yourself and your work is remembered here, with where it was said.",
  notFound: "Nothing like that is remembered", notFoundHint: "Try other words.",
  source: "Where it was said", sourceNamed: (fact) => `The conversation in which it was said: ${fact}`, deleted: "From a conversation that is deleted", byHand: "Written by hand",
  marked: "strangers' words", until: (day) => `true until ${day}`,
  forget: "Forget", forgetNamed: (fact) => `Forget: ${fact}`, forgetTitle: "Forget this for good?",
  forgetText: (fact) => `“${fact}” goes, also from earlier versions, and no search finds where it was said. There is no way back.`,
  forgotten: "It is forgotten.", stillThere: (talks) => `It is forgotten. The conversation keeps its words until you delete it: ${talks}`,
  version: (number) => `Version ${number}`, itself: "everloop", compare: "What changed", compareNamed: (number) => `What version ${number} changed`, first: "With this the memory began.",
  restore: "Restore", restoreNamed: (number) => `Restore version ${number}`, restoreTitle: (number) => `Go back to version ${number}?`,
  restoreText: "What the agent is told becomes what it was then, as a new version. Facts follow.", restored: (number) => `It is as in version ${number} again.`, same: "It is so already.",
});
