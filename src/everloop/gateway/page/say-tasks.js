// The words of the view of tasks.

import { spoken } from "./say.js";

export const told = spoken({
  none: "Nothing is in the background", noneHint: "While an answer comes, the button beside Stop sends it there; or say /bg and what is to be done. What the agent hands on to sub-agents is shown here too.",
  yours: "Your tasks", untitled: "Untitled", number: (number) => `Task ${number}`, agent: "Sub-agent",
  stages: { queued: "waits for its turn", running: "running", waiting: "waits for an answer", done: "done", failed: "failed", stopped: "stopped" },
  steps: (count) => count === 1 ? "1 step" : `${count} steps`, noPrice: "price not known",
  transcript: "What was said and done", nothingYet: "Nothing yet.", who: { user: "Asked", agent: "Agent", tool: "Tool" },
  front: "Take back", frontNamed: (title) => `Take back: ${title}`, chat: "Its chat", chatNamed: (title) => `The chat of: ${title}`,
  stop: "Stop", stopNamed: (title) => `Stop: ${title}`, stopTitle: (title) => `Stop “${title}”?`, stopText: "What it has done so far stays. All that works for it ends as well.",
  stopped: (count) => count === 1 ? "It is stopped." : `It is stopped, with ${count - 1} that worked for it.`,
  inBackground: (number) => `It goes on in the background as task ${number}. You are told here when it is done; Manage, Tasks shows it.`,
});
