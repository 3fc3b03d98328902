// Who may come in: the password, and tokens for programs.

import { grantsTile } from "./grants.js";
import { begin, get, post, remove } from "./api.js";
import { ask, copy, h, iconButton, toast } from "./dom.js";
import { moment } from "./words.js";

const SCOPES = { read: "look at everything", chat: "speak and change conversations", approve: "answer questions", admin: "settings and tokens" };

export class AccessTab {
  constructor(me) {
    this.me = me;
    this.own = h("div.tiles.two");
    this.node = h("div.tab", {}, this.own);
    this.drawOwn();
  }

  async drawOwn() {
    const { tokens } = await get("/api/tokens").catch(() => ({ tokens: null }));
    const grants = await grantsTile(() => this.drawOwn());
    this.own.replaceChildren(...[this.password(), tokens && this.tokens(tokens), grants].filter(Boolean));
  }

  password() {
    const has = this.me.has_password;
    const current = has && h("input", { type: "password", "aria-label": "Current password", placeholder: "Current password", autocomplete: "current-password", required: true });
    const fresh = h("input", { type: "password", "aria-label": "New password", placeholder: "New password, 8 characters or more", autocomplete: "new-password", minlength: 8, required: true });
    const submit = async (event) => {
      event.preventDefault();
      try {
        await post("/auth/password", { password: fresh.value, ...(has ? { current: current.value } : {}) });
        toast("The password is set. Other browsers are logged out.");
        this.me = (await begin()) ?? this.me;
        this.drawOwn();
      } catch (error) { toast(error.message, "bad"); }
    };
    return h("form.tile", { onsubmit: submit }, h("b", {}, "Password"),
      h("small", {}, has ? "With it you log in from any browser." : "There is none yet: set one, or you will need a new link from the terminal each time."),
      current, fresh, h("div.row", {}, h("button", { type: "submit" }, has ? "Change password" : "Set password")));
  }

  tokens(known) {
    const name = h("input", { "aria-label": "Name of the token", placeholder: "Name, such as laptop", maxlength: 100, required: true });
    const boxes = Object.entries(SCOPES).map(([scope, what]) => h("label.check", { title: what }, h("input", { type: "checkbox", name: scope, checked: scope === "read" || scope === "chat" }), scope));
    const submit = async (event) => {
      event.preventDefault();
      const scopes = [...event.currentTarget.querySelectorAll("input:checked")].map((box) => box.name);
      try {
        const { token } = await post("/api/tokens", { name: name.value.trim(), scopes });
        await this.tellToken(token);
        this.drawOwn();
      } catch (error) { toast(error.message, "bad"); }
    };
    return h("form.tile", { onsubmit: submit }, h("b", {}, "Tokens for programs"),
      h("small", {}, "Sent as Authorization: Bearer …, to the API, the WebSocket and /v1."),
      known.map((each) => h("div.row.spread", {}, h("span", { title: `made ${moment(each.at)}` }, `${each.name}: ${each.scopes.join(", ")}`),
        iconButton("close", `Revoke ${each.name}`, () => this.revoke(each)))),
      name, h("div.row", {}, boxes), h("div.row", {}, h("button", { type: "submit" }, "Make a token")));
  }

  tellToken(token) {
    return new Promise((resolve) => {
      const done = () => { dialog.close(); dialog.remove(); resolve(); };
      const dialog = h("dialog", { "aria-label": "The new token", oncancel: done }, h("form", { method: "dialog", onsubmit: done },
        h("h2", {}, "The new token"), h("p", {}, "It is shown this once; only a hash of it is kept."), h("pre.exact", {}, h("code", {}, token)),
        h("div.row.end", {}, h("button", { type: "button", onclick: () => copy(token) }, "Copy"), h("button.primary", { type: "submit" }, "Done"))));
      document.body.append(dialog);
      dialog.showModal();
    });
  }

  async revoke(each) {
    if (!await ask({ title: `Revoke ${each.name}?`, text: "Programs that use it are refused from this moment on.", yes: "Revoke" })) return;
    try { await remove(`/api/tokens/${each.id}`); } catch (error) { toast(error.message, "bad"); }
    this.drawOwn();
  }
}
