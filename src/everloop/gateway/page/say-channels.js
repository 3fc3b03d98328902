// The words of Channels.

import { spoken } from "./say.js";

export const told = spoken({
  intro: "Where people speak with the agent. What you set up here is open within seconds, without a restart; secrets go to the vault and are never shown again.",
  states: { unset: "not set up", off: "off", wrong: "wrong", stopped: "not running", starting: "starting", listening: "listening", failed: "failing" },
  since: (text) => `since ${text}`, lastIn: (text) => `Last message in: ${text}`, lastOut: (text) => `Last message out: ${text}`, never: "never",
  waiting: (number) => `${number} waiting to be sent`, givenUp: (number) => `${number} given up`, outbox: "See the outbox",
  todo: {
    off: "It is switched off in the settings. Set it up anew to switch it on.", wrong: "Nothing listens there until this is mended: set it up anew, or change the settings file.",
    stopped: "The gateway has not opened it yet.", failed: "It is tried again by itself, less and less often.", unset: "", starting: "", listening: "",
    nobody: "No package brings such a channel: take it out of the settings file, or install one that does.",
  },
  setUp: "Set up", setUpNamed: (name) => `Set up ${name}`, again: "Set up anew", againNamed: (name) => `Set up ${name} anew`, test: "Try it", testNamed: (name) => `Try ${name}`, remove: "Remove", removeNamed: (name) => `Remove ${name}`,
  removeTitle: (name) => `Remove ${name}?`, removeText: "It is taken out of the settings, with its secrets. Its conversations stay.", removed: (name) => `${name} is removed.`,
  left: (names) => `These secrets may be others', too, and stay in the vault: ${names}.`,
  save: "Try it and keep it", saving: "Trying …", logIn: "Log in", byLogin: "Log in instead", byToken: "Give a token instead", cancel: "Cancel", close: "Close", optional: "may be left out", untested: "Keep it without trying it first",
  saved: (name) => `${name} is set up.`, answers: (who) => `It answers: ${who}.`, cannotTry: "It cannot be tried beforehand; the state above tells how it goes.", missing: "What is missing:", link: "Open it",
  next: "Now write to it there. Whoever is not known yet is told a code, with which you let them in under People.",
  by: (name) => `from ${name}`, onlyOwner: "Only the owner sets up channels.", of: (what, name) => `${what} (${name})`, noFields: "This package does not say what it asks for. Write its settings into the settings file.",
});
