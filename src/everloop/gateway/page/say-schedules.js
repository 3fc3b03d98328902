// The words of the view of schedules.

import { spoken } from "./say.js";

export const told = spoken({
  none: "Nothing is scheduled", noneHint: "Make a schedule below, or say it in a chat: “every weekday at 8, summarise my inbox”.",
  yours: "Your schedules", make: "Make a schedule", does: "What it does", when: "When", text: "Text", where: "Where it answers", name: "Name (optional)", zone: "Time zone", zoneHint: "Europe/Berlin; empty: as the gateway has it",
  kinds: { message: "Tell me this text (costs nothing)", turn: "Ask the agent", command: "Run a command in the sandbox" },
  done: { message: "tells", turn: "asks", command: "runs" },
  whenHint: "at 08:00, at 2027-01-31 08:00, after 20m, every 2h, cron 0 8 * * 1-5", textHint: "What is told, asked or run",
  add: "Make it", made: (name, cost) => [`${name} is scheduled.`, cost].filter(Boolean).join(" "), noPlace: "There is no conversation yet in which it could answer: begin one first.",
  next: (times) => `next ${times.join(", ")}`, disabled: "stopped", over: (why) => `over: ${why}`, ran: (count) => count === 1 ? "ran once" : `ran ${count} times`,
  run: "Run now", runNamed: (name) => `Run ${name} now`, stop: "Stop", stopNamed: (name) => `Stop ${name}`, go: "Let it run", goNamed: (name) => `Let ${name} run again`,
  remove: "Remove", removeNamed: (name) => `Remove ${name}`, removeTitle: (name) => `Remove ${name}?`, removeText: "It goes with what is known of its runs.",
  runs: "Last runs", noRuns: "It has not run yet.", states: { running: "running", done: "done", failed: "failed", skipped: "left out", asked: "asked about", barred: "not allowed" },
  heartbeat: "Heartbeat", heartRun: "Look now", heartAllow: "Let these checks run", heartUnknown: "How it stands is not known.",
  heartHint: "What stands in HEARTBEAT.md in your workspace is looked after by itself; you are written to only if that is worth a message.",
  heartChecks: (checks) => `Its checks run only as far as the settings allow them without asking: ${checks.join("; ")}`,
  cost: (dollars) => `$${dollars.toFixed(4)}`, inSession: (title) => `in “${title}”`, poll: (what, condition) => `looks at ${what} until it ${condition}`,
});
