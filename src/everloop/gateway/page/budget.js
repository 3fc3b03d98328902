// Budgets: what somebody may spend and has spent, in their tile and in one's own; set by whoever may.

import { get, post, put, remove } from "./api.js";
import { h, toast } from "./dom.js";
import { told } from "./say-budget.js";
import { count, dollars, moment } from "./words.js";

/** What holds for somebody, to be looked at and set; asked for when it is opened. `id` may be house or guests. */
export function budgetOf(id, name) {
  const at = `/api/users/${encodeURIComponent(id)}/budget`;
  const body = h("div.allotment", { "aria-live": "polite" });
  const draw = async () => {
    try {
      const { budgets } = await get(at);
      body.replaceChildren(...lines(budgets), form(at, name, budgets, draw));
    } catch (error) { body.replaceChildren(h("p.hint", {}, error.message)); }
  };
  return h("details", { ontoggle: (event) => { if (event.target.open) draw(); } }, h("summary", {}, told.budget), body);
}

/** What all spend together, as tiles. */
export const together = (isOwner) => [...(isOwner ? [["house", told.house]] : []), ["guests", told.guests]]
  .map(([id, name]) => h("article.tile", { "data-budget": id }, h("b", {}, name), budgetOf(id, name)));

/** One's own, as a tile; nothing where there is no limit. */
export async function ownBudget() {
  const { budgets } = await get("/api/budget").catch(() => ({ budgets: [] }));
  return budgets.length > 0 && h("section.tile.allotment", { "aria-label": told.own }, h("b", {}, told.own), ...lines(budgets));
}

function lines(budgets) {
  return budgets.length ? budgets.map(line) : [h("small", {}, told.none)];
}

function line(each) {
  const counted = each.spent_tokens !== null; // what holds in each conversation is counted in each
  const spent = (amount, shown) => (counted ? shown(amount) : "–");
  const parts = [
    each.tokens !== null && told.tokens(spent(each.spent_tokens, count), count(each.tokens)),
    each.money !== null && told.money(spent(each.spent_money, dollars), dollars(each.money)),
  ].filter(Boolean);
  const further = [told.per[each.per], each.resets > 0 && told.resets(moment(each.resets)), !each.set && told.byRole].filter(Boolean);
  const share = Math.max(each.tokens === null ? 0 : ratio(each.spent_tokens, each.tokens), each.money === null ? 0 : ratio(each.spent_money, each.money));
  return h("div", { "data-per": each.per }, h("span", {}, parts.length ? parts.join(", ") : told.free), h("br"), h("small", {}, further.join(" · ")),
    counted && parts.length > 0 && h("progress", { max: 1, value: Math.min(1, share), "aria-label": parts.join(", ") }));
}

const ratio = (used, limit) => (limit ? used / limit : 1);

function form(at, name, budgets, draw) {
  const tokens = h("input", { type: "number", min: 0, step: 1, "aria-label": told.tokensLabel(name), placeholder: told.tokensHint });
  const money = h("input", { type: "number", min: 0, step: "any", "aria-label": told.moneyLabel(name), placeholder: told.moneyHint });
  const per = h("select", { "aria-label": told.perLabel(name) }, Object.entries(told.per).map(([value, text]) => h("option", { value }, text)));
  const fill = () => {
    const known = budgets.find((each) => each.per === per.value);
    tokens.value = known?.tokens ?? "";
    money.value = known?.money ?? "";
  };
  per.addEventListener("change", fill);
  fill();
  const act = async (deed, said = told.done) => {
    try { toast([said(name), ...(await deed()).notes].join(" ")); } catch (error) { toast(error.message, "bad"); }
    await draw();
  };
  const submit = (event) => {
    event.preventDefault();
    act(() => put(at, { per: per.value, tokens: tokens.value === "" ? null : Number(tokens.value), money: money.value === "" ? null : Number(money.value) }));
  };
  return h("form.allotting", { onsubmit: submit }, per, tokens, money, h("div.row", {},
    h("button.small.primary", { type: "submit", "aria-label": told.saveNamed(name) }, told.save),
    h("button.small", { type: "button", "aria-label": told.usualNamed(name), onclick: () => act(() => remove(`${at}?per=${per.value}`)) }, told.usual),
    h("button.small", { type: "button", "aria-label": told.anewNamed(name), onclick: () => act(() => post(`${at}/anew`, { per: per.value }), told.begun) }, told.anew)));
}
