// The words of ways out.

import { spoken } from "./say.js";

export const told = spoken({
  ownKeys: "Your keys", askAnother: "Ask another model …", connectModel: "Connect a model", modelSettings: "Model settings",
  mySpending: "What you may spend", budgets: "Budgets", dismiss: "Close this note",
});
