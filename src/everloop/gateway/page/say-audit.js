// The words of Audit.

import { spoken } from "./say.js";

export const told = spoken({
  filter: "Filter", who: "Who", whoHint: "a name or an id", what: "What", anything: "Anything", since: "Since", any: "any time", days: (n) => `${n} days`, day: "a day",
  lines: "Lines, the latest first", by: (who, authority) => `by ${who} (${authority})`, nobody: "nobody",
  more: "Earlier lines", nothing: "Nothing of the kind", nothingHint: "Whatever changes who may do what, and every tool that has effects, is noted here.",
  check: "Check the chain", checking: "Checking …", sound: (n, head) => `All ${n} lines are as they were written. The last is ${head}`,
  broken: (line, why) => `Line ${line} is not sound: ${why}.`,
  kinds: {
    person: "People", account: "Accounts", budget: "Budgets", approval: "Approvals", grant: "Allowed ahead", persona: "Personas", file: "Prompt files", tool: "Tools that ran", settings: "Settings", secret: "Keys",
    token: "Tokens", password: "Passwords", link: "Links to log in", login: "Logins", conversation: "Conversations", outbox: "Outbox", backup: "Backups",
  },
});
