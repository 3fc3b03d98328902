// The words of budgets.

import { spoken } from "./say.js";

export const told = spoken({
  budget: "Budget", own: "What you may spend", none: "No limit is set.", house: "Everyone together", guests: "All guests together", together: "Budgets of all",
  per: { month: "this month", day: "today", session: "in each conversation", job: "in each run of a job" }, perLabel: (name) => `Budget of ${name}: in what time`,
  tokens: (used, limit) => `${used} of ${limit} tokens`, money: (used, limit) => `${used} of ${limit}`, free: "no limit", resets: (time) => `begins anew ${time}`, byRole: "by role",
  tokensLabel: (name) => `Budget of ${name}: tokens`, moneyLabel: (name) => `Budget of ${name}: US dollars`, tokensHint: "Tokens (empty: no limit)", moneyHint: "US dollars (empty: no limit)",
  save: "Set", saveNamed: (name) => `Set the budget of ${name}`, usual: "By role", usualNamed: (name) => `Let the budget of ${name} be as it goes with the role`, done: (name) => `The budget of ${name} is set.`,
  anew: "Begin anew", anewNamed: (name) => `Let the budget of ${name} begin anew: nothing of it is spent`, begun: (name) => `The budget of ${name} begins anew.`,
});
