// What is offered where a turn came to nothing, and where most of what somebody may spend is gone.

import { h, icon, iconButton } from "./dom.js";
import { say } from "./say.js";
import { told } from "./say-ways.js";

const SETUP = new Set(["key", "credit", "model"]); // what is mended where models are set up
const SHOWN = new Set(["spent", "window", "own_summary"]); // warnings of what is not in the log

/** Buttons for the end of a turn without an answer; `acts` are those of the log. */
export function waysOut(entry, acts) {
  const button = (act, ...face) => h("button", { type: "button", onclick: act }, ...face);
  const again = button(() => acts.regenerate(), icon("again"), say.tryAgain);
  const ways = entry.reason === "budget" ? [toBudget(acts.me), again] : [
    again,
    entry.cut && button(() => acts.speak(say.goOnSaid), say.goOn),
    entry.reason === "context" && button(() => acts.speak("/compact"), say.compact),
    entry.reason === "own_key" && h("a.button", { href: "#/settings/access" }, told.ownKeys),
    acts.others(told.askAnother),
    manages(acts.me) && h("a.button", { href: "#/settings/models" }, SETUP.has(entry.reason) ? told.connectModel : told.modelSettings)];
  return ways.filter(Boolean);
}

/** A sentence of the gateway, above the conversation until it is closed. */
export function warn({ banner, house }, { reason, text }) {
  if (!SHOWN.has(reason)) return; // the others end the turn, and are told as its end
  banner.hidden = false;
  banner.replaceChildren(...[h("span", {}, text[0].toUpperCase() + text.slice(1)), reason === "spent" && toBudget(house.me, "a.button.small"),
    iconButton("close", told.dismiss, () => { banner.hidden = true; })].filter(Boolean));
}

const manages = ({ role }) => role === "admin" || role === "owner";

/** Where budgets are set, for whoever may; else where one's own is shown. */
function toBudget(me, tag = "a.button") {
  if (manages(me)) return h(tag, { href: "#/settings/people" }, told.budgets);
  return me.role === "user" ? h(tag, { href: "#/settings/access" }, told.mySpending) : null;
}
