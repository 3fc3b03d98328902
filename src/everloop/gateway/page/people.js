// People: who waits to be let in, who is known, their roles and accounts.

import { get, patch, post, remove } from "./api.js";
import { budgetOf, together } from "./budget.js";
import { ask, copy, h, iconButton, toast } from "./dom.js";
import { told as budgets } from "./say-budget.js";
import { leaving } from "./leaving.js";
import { told as leave } from "./say-leaving.js";
import { told } from "./say-people.js";
import { moment, when } from "./words.js";

const GIVEN = ["guest", "user", "admin"];

export class PeoplePage {
  constructor(role) {
    this.isOwner = role === "owner";
    this.waiting = h("div", { "aria-live": "polite" });
    this.known = h("div.people");
    this.node = h("div.tab", {}, this.waiting,
      h("section.group", {}, h("h2", {}, told.people), this.known),
      h("section.group", {}, h("h2", {}, told.add), h("div.people", {}, this.adding())),
      h("section.group", {}, h("h2", {}, budgets.together), h("div.people", {}, together(this.isOwner))));
    this.draw();
  }

  async draw() {
    try {
      const { users, waiting } = await get("/api/users");
      this.waiting.replaceChildren(...(waiting.length ? [h("section.group", {}, h("h2", {}, told.waiting), h("p.hint", {}, told.waitingHint), h("div.people", {}, waiting.map((each) => this.stranger(each))))] : []));
      this.known.replaceChildren(...users.map((each) => this.person(each)));
    } catch (error) { this.known.replaceChildren(h("p.hint", {}, error.message)); }
  }

  stranger(each) {
    const name = h("input", { "aria-label": told.callWhom(each.account), placeholder: told.called, maxlength: 100 });
    const role = roles(told.roleOf(each.account), "user");
    const submit = (event) => {
      event.preventDefault();
      const called = name.value.trim();
      this.act(() => post("/api/pairings", { code: each.code, role: role.value, ...(called ? { name: called } : {}) }), (person) => told.isIn(person.name));
    };
    return h("form.tile", { onsubmit: submit, "data-code": each.code },
      h("div.row.spread", {}, h("b", {}, each.account), h("code", {}, each.code)),
      h("small", {}, told.asked(when(each.at), moment(each.until))), name, role,
      h("div.row", {}, h("button.primary", { type: "submit", "aria-label": told.letInNamed(each.account) }, told.letIn)));
  }

  person(each) {
    const mine = each.role === "owner";
    if (each.erasing) return h("article.tile", { "data-person": each.id }, h("div.row.spread", {}, h("b", { dir: "auto" }, each.name), h("small", {}, leave.erasing)));
    const role = mine ? h("small", {}, told.roles.owner) : roles(told.roleOf(each.name), each.role, () => this.change(each, { role: role.value }));
    return h("article.tile", { "data-person": each.id },
      h("div.row.spread", {}, h("b", { dir: "auto" }, each.name), h("small", {}, each.blocked ? told.blocked : told.since(moment(each.at)))),
      h("small", {}, told.id, h("code", {}, each.id)), role, this.accounts(each), budgetOf(each.id, each.name),
      h("div.row", {}, this.isOwner && !mine && !each.blocked && each.role !== "guest" && h("button.small", { type: "button", "aria-label": told.inviteNamed(each.name), onclick: () => this.invite(each) }, told.invite),
        h("button.small", { type: "button", "aria-label": told.renameNamed(each.name), onclick: () => this.rename(each) }, told.rename),
        !mine && h("button.small", { type: "button", "aria-label": (each.blocked ? told.unblockNamed : told.blockNamed)(each.name), onclick: () => this.block(each) }, each.blocked ? told.unblock : told.block),
        leaving(each, this.isOwner, () => this.draw())));
  }

  accounts(each) {
    const field = h("input", { "aria-label": told.account(each.name), placeholder: told.accountExample, maxlength: 300, required: true });
    const submit = (event) => {
      event.preventDefault();
      this.act(() => post(`${at(each)}/accounts`, { account: field.value.trim() }), (person) => told.done(person.name));
    };
    return h("details", { open: !each.accounts.length && each.role !== "owner" }, h("summary", {}, `${told.accounts}: ${each.accounts.length ? each.accounts.join(", ") : told.noAccounts}`),
      each.accounts.map((account) => h("div.row.spread", {}, h("span", {}, account), this.isOwner && iconButton("close", told.unlink(account), () => this.unlink(each, account)))),
      this.isOwner && h("form.adding", { onsubmit: submit }, field, h("button.small", { type: "submit", "aria-label": told.linkNamed(each.name) }, told.link)));
  }

  adding() {
    const name = h("input", { "aria-label": told.name, placeholder: told.name, maxlength: 100, required: true });
    const account = h("input", { "aria-label": told.addAccount, placeholder: told.addAccountHint, maxlength: 300 });
    const role = roles(told.role, "user");
    const submit = async (event) => {
      event.preventDefault();
      const from = account.value.trim();
      if (await this.act(() => post("/api/users", { name: name.value.trim(), role: role.value, ...(from ? { account: from } : {}) }), (person) => told.added(person.name))) event.target.reset();
    };
    return h("form.tile", { onsubmit: submit }, name, account, role, h("div.row", {}, h("button", { type: "submit" }, told.addThem)));
  }

  async invite(each) {
    try {
      const { link } = await post(`${at(each)}/invite`, {});
      await copy(`${location.origin}${link}`);
      await ask({ title: told.inviteTitle(each.name), text: told.inviteText, label: told.inviteLink, value: `${location.origin}${link}`, yes: told.close });
    } catch (error) { toast(error.message, "bad"); }
  }

  async rename(each) {
    const name = await ask({ title: told.renameTitle(each.name), label: told.name, value: each.name, yes: told.save });
    if (name?.trim()) await this.change(each, { name: name.trim() });
  }

  async block(each) {
    if (!each.blocked && !await ask({ title: told.blockTitle(each.name), text: told.blockText, yes: told.block })) return;
    await this.change(each, { blocked: !each.blocked });
  }

  async unlink(each, account) {
    if (!await ask({ title: told.unlinkTitle(account), text: told.unlinkText(each.name), yes: told.remove })) return;
    await this.act(() => remove(`${at(each)}/accounts?account=${encodeURIComponent(account)}`), (person) => told.done(person.name));
  }

  change(each, changes) { return this.act(() => patch(at(each), changes), (person) => told.done(person.name)); }

  /** Whether it was done; what was refused is said, and drawn as it is. */
  async act(deed, say) {
    let done = true;
    try { toast(say((await deed()).person)); } catch (error) { toast(error.message, "bad"); done = false; }
    await this.draw();
    return done;
  }

  reconnected() { this.draw(); }
}

const at = (each) => `/api/users/${encodeURIComponent(each.id)}`;

function roles(label, chosen, onchange) {
  const select = h("select", { "aria-label": label, ...(onchange ? { onchange } : {}) }, GIVEN.map((role) => h("option", { value: role }, told.roles[role])));
  for (const option of select.options) option.defaultSelected = option.value === chosen; // also after the form is emptied
  return select;
}
