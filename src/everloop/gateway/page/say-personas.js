// The words of Personas.

import { spoken } from "./say.js";

export const told = spoken({
  personas: "Personas", intro: "Who the agent is at some places: words of its own, fewer tools, another model. A persona never gives anybody a tool that their role does not. Where several places fit, the most specific decides.",
  none: "There are none: the agent answers as itself everywhere.", add: "Add a persona", addIt: "Add persona", save: "Save", edit: "Edit", remove: "Remove", cancel: "Cancel",
  editNamed: (name) => `Edit ${name}`, removeNamed: (name) => `Remove ${name}`, removeTitle: (name) => `Remove ${name}?`, removeText: "Its words and files go. Its places are answered by whoever comes next, and conversations that had chosen it are told so.",
  name: "Name", nameHint: "support: small letters, digits, - and _", prompt: "Words (prompt)", promptHint: "You answer customers of …",
  tools: "Tools", allTools: "All that the role allows", someTools: "Only these", toolsHint: "web_search, web_fetch; empty: none",
  model: "Model", modelHint: "the usual", most: "Maximum answer length (tokens)", mostHint: "as in the settings",
  openTo: "May be chosen with /persona by", roles: { user: "users and above", admin: "administrators and the owner", owner: "the owner" },
  places: "Places", placesHint: "one in each line: default, channel:webhook, server:slack/T012, chat:webhook:42, thread:webhook:42:7", nowhere: "nowhere yet",
  files: "Files of its own", filesText: "Told to whoever speaks with the persona, each in place of your own file of that name. Empty: none.", of: (what, name) => `${what} of ${name}`, newOne: "the new persona",
  facts: { tools: (text) => `Tools: ${text}`, all: "all that the role allows", no: "none", model: (text) => `Model: ${text}`, most: (number) => `At most ${number} tokens`, open: (text) => `Chosen by: ${text}`, files: (text) => `Files: ${text}` },
  added: (name) => `${name} is added.`, saved: (name) => `${name} is saved; the next turn knows it.`, onlyOwner: "Only the owner changes personas.",
});
