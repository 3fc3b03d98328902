// The words of Attachments.

import { spoken } from "./say.js";

export const told = spoken({
  yours: "What was attached to messages, and made in answer. It lies here until it is removed, and each file counts as 4 kB at least; what is in the workspace is another matter.",
  whose: "Whose files", yourself: "Your own", list: "Files, the latest first",
  usedOf: (used, quota) => `${used} of ${quota} are used`, used: (used) => `${used} are used; there is no limit`, room: "Room that is used",
  nothing: "There are no files", nothingHint: "What is attached to messages, and made in answer, is listed here.",
  download: "Download", downloadNamed: (name) => `Download ${name}`, remove: "Remove", removeNamed: (name) => `Remove ${name}`,
  removeTitle: (name) => `Remove ${name}?`, removeText: "It goes for good, also where a conversation tells of it.", removed: (name) => `${name} is removed.`,
  talk: "Conversation", talkNamed: (name) => `The conversation that tells of ${name}`, noTalk: "No conversation of yours tells of it.",
  more: "Earlier files",
});
