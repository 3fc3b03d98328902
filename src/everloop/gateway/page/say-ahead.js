// The words of what else a yes may allow.

import { spoken } from "./say.js";

export const told = spoken({
  alsoAllow: "Allow the like too …", whatElse: "What is allowed too", howLong: "For how long", sameCall: "the same call again", allOf: (host) => `all addresses of ${host}`, fitting: "commands that fit a pattern", anyOf: (tool) => `anything of ${tool}`,
  pattern: "Pattern of the commands", folder: "Folder", onlyFolder: "only in this folder of the workspace", onlyHere: "only in this conversation", howOften: "How often", anyTimes: "as often as it comes", allowLike: "Allow, and the like",
  times: { 3600: "for an hour", 28800: "for 8 hours", 86400: "for a day", 604800: "for a week" }, runs: { 1: "once more", 5: "5 times", 20: "20 times" },
});
