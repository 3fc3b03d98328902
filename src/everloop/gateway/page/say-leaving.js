// The words of taking along what is a person's, and of erasing somebody.

import { spoken } from "./say.js";

export const told = spoken({
  export: "Export", exportNamed: (name) => `Export all that is ${name}'s`, erase: "Erase", eraseNamed: (name) => `Erase ${name}`,
  mine: "What is kept of you", mineHint: "Your conversations, files, workspace and the rest, as a zip of files that you can read. There are no passwords or tokens in it.", takeMine: "Download everything of mine",
  eraseTitle: (name) => `Erase ${name}?`, typeName: "Their name", eraseNow: "Erase for good", otherName: "That is not their name, so nobody was erased.",
  eraseText: (name) => `All that is ${name}'s goes for good: conversations, files, workspace, tokens, jobs, and their words in groups with the answers to them. What others said stays. There is no way back: export it first if they want it. Type ${name} to go on.`,
  erased: (name) => `${name} is erased`, went: "This was removed:", done: "Done", erasing: "being erased",
  kinds: {
    person: "Person", accounts: "Accounts", codes: "Codes", tokens: "Tokens", "ways to log in": "Ways to log in", "browsers logged in": "Browsers logged in", secrets: "Secrets", conversations: "Conversations", entries: "Entries",
    "entries in the search index": "Entries in the search index", snapshots: "Snapshots", letters: "Letters", "answers in the outbox": "Answers in the outbox", jobs: "Jobs", schedules: "Schedules", grants: "Grants",
    "messages in groups": "Messages in groups", files: "Files", "files in the workspace": "Files in the workspace", "copies of the store": "Copies of the store",
  },
});
