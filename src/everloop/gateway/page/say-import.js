// The words of Import.

import { spoken } from "./say.js";
import { many } from "./words.js";

export const told = spoken({
  kinds: { chatgpt: "ChatGPT", claude: "Claude", nanobot: "nanobot", openclaw: "OpenClaw" },
  from: "From where", file: "The export that the service has sent you", path: "A path on the gateway's machine", orPath: "Or a path on the gateway's machine",
  places: { chatgpt: "~/Downloads/export.zip", claude: "~/Downloads/export.zip", nanobot: "~/.nanobot", openclaw: "~/.openclaw" },
  hints: {
    chatgpt: "In ChatGPT: Settings, Data controls, Export data. Conversations come with their pictures, and no model is asked.",
    claude: "In Claude: Settings, Privacy, Export data. Conversations and projects come, and no model is asked.",
    nanobot: "Its home, as ~/.nanobot. Stop nanobot first. Settings, keys (into the vault), memory, files, skills, jobs and conversations come; channels are switched off and jobs paused until you say so.",
    openclaw: "Its home, as ~/.openclaw. Stop OpenClaw first. Settings, keys (into the vault), memory, files, skills, jobs and conversations come; channels are switched off and jobs paused until you say so.",
  },
  enable: " Let its jobs run at once", grown: " Take what has grown there since as another conversation",
  look: "Look what would come", doIt: "Take it over", sending: (name) => `${name} is being sent …`,
  looking: (done) => `Being looked at … ${done}`, doing: (done) => `Being taken over … ${done}. You can leave this page; it goes on.`,
  all: (number) => many(number, "thing", "things"),
  wouldCome: (things, messages, kind) => `${things} with ${many(messages, "message", "messages")} would come from ${kind}. Nothing was written yet.`,
  came: (things, messages, kind) => `${things} with ${many(messages, "message", "messages")} came from ${kind}.`, listed: "Conversations stand in the list, at the times when they were held.",
  nothing: "There is nothing to take over.", nothingNew: "There is nothing new to take over: all of it is here already.",
  things: {
    setting: (number) => many(number, "setting", "settings"), memory: (number) => many(number, "memory file", "memory files"), file: (number) => many(number, "file of the workspace", "files of the workspace"),
    skill: (number) => many(number, "skill", "skills"), job: (number) => many(number, "job", "jobs"), conversation: (number) => many(number, "conversation", "conversations"),
  },
  there: (number) => `, ${number} here already`, left: (number) => `Not taken over, and what to do: ${number}`, more: (number) => `… and ${number} more`,
});
