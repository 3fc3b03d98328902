// Questions that are about no call: a change of a file that every prompt begins with, and a turn beyond a budget.

import { h, icon } from "./dom.js";
import { told } from "./say-held.js";
import { say } from "./say.js";

export const heldQuestion = (each, decide) => (each.kind === "budget" ? beyond(each, decide) : changed(each, decide));

/** What is said when it was answered. */
export const settled = (kind, allow) => (kind === "budget" ? (allow ? told.goesOn : told.ends) : allow ? told.itStays : told.itIsPutBack);

function changed(each, decide) {
  return [
    h("p", {}, h("strong", {}, told.heldBack(each.tool))),
    h("pre.exact", { tabindex: "0" }, each.text),
    h("p.note", {}, told.whyAsked(each.risk.why)),
    answers(decide, told.letItStay, told.putItBack)];
}

function beyond(each, decide) {
  return [
    h("p", {}, h("strong", {}, told.beyond)),
    h("p", {}, each.text),
    each.answerable ? answers(decide, told.goOn, told.stopHere) : h("p.note", {}, told.othersAnswer)];
}

const answers = (decide, yes, no) => h("div.row", { role: "group", "aria-label": say.yourAnswer },
  h("button.primary", { type: "button", onclick: () => decide(true) }, icon("check"), yes),
  h("button", { type: "button", onclick: () => decide(false) }, no));
