// Who may come in: the password, and tokens for programs.

import { ownBudget } from "./budget.js";
import { grantsTile } from "./grants.js";
import { ownTile } from "./leaving.js";
import { begin, get, post, remove } from "./api.js";
import { ask, copy, h, iconButton, toast } from "./dom.js";
import { told } from "./say-manage.js";
import { hasTokens } from "./pages.js";
import { moment } from "./words.js";

export class AccessTab {
  constructor(me) {
    this.me = me;
    this.own = h("div.tiles.two");
    this.node = h("div.tab", {}, this.own);
    this.drawOwn();
  }

  async drawOwn() {
    const { tokens } = hasTokens(this.me.role) ? await get("/api/tokens").catch(() => ({ tokens: null })) : { tokens: null };
    const grants = await grantsTile(() => this.drawOwn());
    const budget = await ownBudget();
    const { ownSecrets } = await import("./own.js");
    this.own.replaceChildren(...[this.password(), budget, tokens && this.tokens(tokens), grants, ...ownSecrets(this.me), ownTile(this.me)].filter(Boolean));
  }

  password() {
    const has = this.me.has_password;
    const current = has && h("input", { type: "password", "aria-label": told.currentPassword, placeholder: told.currentPassword, autocomplete: "current-password", required: true });
    const fresh = h("input", { type: "password", "aria-label": told.newPassword, placeholder: told.newPasswordHint, autocomplete: "new-password", minlength: 8, required: true });
    const submit = async (event) => {
      event.preventDefault();
      try {
        await post("/auth/password", { password: fresh.value, ...(has ? { current: current.value } : {}) });
        toast(told.passwordSet);
        this.me = (await begin()) ?? this.me;
        this.drawOwn();
      } catch (error) { toast(error.message, "bad"); }
    };
    return h("form.tile", { onsubmit: submit }, h("b", {}, told.password),
      h("small", {}, has ? told.hasPassword : told.noPassword),
      current, fresh, h("div.row", {}, h("button", { type: "submit" }, has ? told.changePassword : told.setPassword)));
  }

  tokens(known) {
    const name = h("input", { "aria-label": told.tokenName, placeholder: told.tokenExample, maxlength: 100, required: true });
    const platforms = h("input", { "aria-label": told.tokenPlatforms, placeholder: told.tokenPlatformsHint, autocapitalize: "none", spellcheck: "false" });
    const boxes = Object.entries(told.scopes).map(([scope, what]) => h("label.check", { title: what }, h("input", { type: "checkbox", name: scope, checked: scope === "read" || scope === "chat" }), scope));
    const submit = async (event) => {
      event.preventDefault();
      const scopes = [...event.currentTarget.querySelectorAll("input:checked")].map((box) => box.name);
      try {
        const named = platforms.value.split(",").map((each) => each.trim()).filter(Boolean);
        const { token } = await post("/api/tokens", { name: name.value.trim(), scopes, platforms: named });
        await this.tellToken(token);
        this.drawOwn();
      } catch (error) { toast(error.message, "bad"); }
    };
    return h("form.tile", { onsubmit: submit }, h("b", {}, told.tokensTitle),
      h("small", {}, told.tokensHint),
      known.map((each) => h("div.row.spread", { style: { "flex-wrap": "nowrap" } }, h("span", { dir: "auto", style: { "overflow-wrap": "anywhere", "min-width": 0 }, title: told.made(moment(each.at)) }, told.tokenRow(each.name, each.scopes.join(", "), each.platforms.join(", "))),
        iconButton("close", told.revokeNamed(each.name), () => this.revoke(each)))),
      name, h("div.row", {}, boxes), platforms, h("div.row", {}, h("button", { type: "submit" }, told.makeToken)));
  }

  tellToken(token) {
    return new Promise((resolve) => {
      const done = () => { dialog.close(); dialog.remove(); resolve(); };
      const dialog = h("dialog", { "aria-label": told.newToken, oncancel: done }, h("form", { method: "dialog", onsubmit: done },
        h("h2", {}, told.newToken), h("p", {}, told.shownOnce), h("pre.exact", {}, h("code", {}, token)),
        h("div.row.end", {}, h("button", { type: "button", onclick: () => copy(token) }, told.copy), h("button.primary", { type: "submit" }, told.done))));
      document.body.append(dialog);
      dialog.showModal();
    });
  }

  async revoke(each) {
    if (!await ask({ title: told.revokeTitle(each.name), text: told.revokeText, yes: told.revoke })) return;
    try { await remove(`/api/tokens/${each.id}`); } catch (error) { toast(error.message, "bad"); }
    this.drawOwn();
  }
}
