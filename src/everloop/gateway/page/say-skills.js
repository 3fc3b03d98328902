// The words of Skills.

import { spoken } from "./say.js";
import { many } from "./words.js";

export const told = spoken({
  intro: "What the agent knows how to do. It sees what each is for, and reads the rest when it fits; /skill NAME has it use one. New conversations know of a change.",
  none: "There are none.", states: { available: "available", missing: "not available", wrong: "wrong", held: "held back" },
  sources: { workspace: "from your workspace", installed: "installed", shared: "shared by the owner", "built-in": "comes with everloop" },
  hides: (source) => `in place of one that is ${source}`, always: "all of its text is told in every conversation", pin: (pin, origin) => `known by ${pin}, from ${origin}`,
  more: "Look at it", moreOf: (name) => `Look at ${name}`, files: (names) => `Files: ${names}`, asks: "It asks for", look: "Look at this first", text: (name) => `The text of ${name}`,
  remove: "Remove", removeNamed: (name) => `Remove ${name}`, removeTitle: (name) => `Remove ${name}?`, removeText: "Its files go. Conversations that know it already may still speak of it.",
  heldBack: "A change waits for you: strangers' words were read where it was made, or a command made it.", changeOf: (name) => `The change of ${name}`, accept: "Accept it", refuse: "Put back what was there", acceptNamed: (name) => `Accept the change of ${name}`, refuseNamed: (name) => `Put back what was accepted of ${name}`,
  add: "Install a skill", addText: "A folder with a SKILL.md as zip or tar file. You see what it asks for before it counts, and nothing of it is run. From a folder or a git repository: everloop skills install SOURCE, in a terminal.",
  choose: "Archive of the skill", review: "See what it asks for", path: "Its folder in the archive, if there are several", reading: "Reading it …", size: (files, bytes) => `${many(files, "file", "files")}, ${bytes} bytes`,
  install: (name) => `Install ${name}`, replace: (name) => `Replace ${name} by this`, differs: "Differs from what is installed", cancel: "Cancel", pinned: "Known by",
});
