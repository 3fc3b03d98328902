// The words of MCP servers.

import { spoken } from "./say.js";
import { many } from "./words.js";

const roles = { owner: "the owner", admin: "administrators", user: "users", guest: "guests" };

export const told = spoken({
  intro: "Servers of the Model Context Protocol bring further tools. Each is a stranger: you see what it offers before it counts, and a tool that changes afterwards is not offered until you have seen the difference.",
  onlyOwner: "Only the owner sets up servers and allows tools.", none: "No MCP server is set up.",
  states: { off: "off", wrong: "wrong", idle: "not running", starting: "starting", running: "running", waiting: "failing", login: "needs a login" },
  todo: { off: "It is switched off in the settings.", wrong: "Mend it in the settings file, or set it up anew.", login: "Log in to use it.", waiting: "It is tried again when one of its tools is called, less and less often.", idle: "It is started when one of its tools is first called." },
  since: (text) => `since ${text}`, restarts: (number) => many(number, "restart", "restarts"), forRole: (role) => `for ${roles[role]}`, reaches: (hosts) => `reaches ${hosts}`, workspace: "sees your workspace", unconfined: "runs without a sandbox",
  readable: (name) => `what it has to read (${name})`, resources: (state) => `what it has to read: ${state}`, loggedIn: "a login is kept",
  counts: (allowed, changed, added) => [`${many(allowed, "tool", "tools")} allowed`, changed && `${changed} changed`, added && `${added} new`].filter(Boolean).join(", "),
  tools: "Tools", toolsOf: (name) => `Tools of ${name}`,
  toolStates: { allowed: "allowed", changed: "changed since it was allowed", setup: "the server is set up otherwise", gone: "gone", new: "not allowed", hidden: "left out by the settings", collides: "has the name of another tool" },
  effects: { read: "read: changes nothing", idempotent: "idempotent: may be repeated", unsafe: "unsafe: never repeated unasked" }, effectOf: (name) => `Effect of ${name}`,
  hints: { readOnlyHint: ["reads", "writes"], destructiveHint: ["destroys", "destroys nothing"], idempotentHint: ["can be repeated", ""], openWorldHint: ["reaches others", "stays inside"] }, hinted: (text) => `It says itself: ${text}`,
  difference: (name) => `What has changed in ${name}`, definition: (name) => `Whole description of ${name}`, whole: "Whole description", used: (number) => `used ${many(number, "time", "times")}`,
  allow: "Allow", allowNamed: (name) => `Allow ${name}`, allowAll: "Allow all that is new or changed", deny: "Deny", denyNamed: (name) => `Deny ${name}`, allowed: (name) => `${name} is allowed.`, denied: (name) => `${name} is not allowed any more.`,
  test: "Try it", testNamed: (name) => `Try ${name}`, args: (name) => `Arguments of ${name} as JSON`, run: "Call it", notJson: "The arguments are not one JSON object.", answered: (name) => `${name} has answered`, pictures: (number) => `and ${many(number, "picture", "pictures")}`,
  ask: "Ask it again", askNamed: (name) => `Ask ${name} again what it offers`, logIn: "Log in", logInNamed: (name) => `Log in to ${name}`, logInHint: "The login opens in another window; come back here afterwards.", logOut: "Log out", logOutNamed: (name) => `Log out of ${name}`, loggedOut: "The login is forgotten.", noLogin: "There is no login.",
  remove: "Remove", removeNamed: (name) => `Remove ${name}`, removeTitle: (name) => `Remove ${name}?`, removeText: "It is taken out of the settings, with what was allowed of it, its secrets, its login and its folder.", removed: (name) => `${name} is removed.`, left: (names) => `These secrets may be others', too, and stay in the vault: ${names}.`,
  add: "Add a server", addText: "A command runs here in the sandbox; an address is spoken with over HTTP. It is looked at first, and nothing is kept until you have seen its tools.",
  name: "Name", kind: "Kind", command: "A command", address: "An address", commandLine: "Command, with its arguments", url: "Address", env: "Variables, one KEY=VALUE in each line", headers: "HTTP headers, one Name: value in each line", network: "Hosts that it may reach, separated by spaces", seesWorkspace: "Let it see your workspace", permission: "Who may use it", roles,
  secret: "Keys and tokens go to the vault and are never shown again.", look: "Look at it", looking: "Looking …", install: "Fetch it?", fetch: "Fetch it", cancel: "Cancel",
  offers: (name) => `What ${name} offers`, calls: (title, version) => `It calls itself ${title} ${version}`, loginFirst: "It wants a login before it tells what it offers.", keep: (number, reads) => (number ? `Set it up and allow ${many(number, "tool", "tools")}` : reads ? "Set it up and allow what it has to read" : "Set it up"), kept: (name) => `${name} is set up.`, vault: (names) => `Kept in the vault: ${names}`, badLine: (line) => `“${line}” is not understood; write a name and its value.`,
});
