// The settings as they are in force. Secrets never come here; of them one sees whether they are set.

import { begin, get, post, remove } from "./api.js";
import { ask, copy, h, iconButton, toast } from "./dom.js";
import { moment } from "./words.js";

const SCOPES = { read: "look at everything", chat: "speak and change conversations", approve: "answer questions", admin: "settings and tokens" };

export class SettingsView {
  constructor(house) {
    this.body = h("div");
    this.field = h("input", { type: "search", placeholder: "Filter settings", "aria-label": "Filter settings", oninput: () => this.draw() });
    this.node = h("section.page", { "aria-label": "Settings" },
      h("header.bar", {}, house.menuButton(), h("h1.title", {}, "Settings")),
      h("div.scroller", {}, h("div.column.wide", {}, this.own = h("div.tiles.two"), h("p.hint", {},
        "These are in force now. They come from config.toml in the home, from EVERLOOP_… variables, and from defaults; change them there and start the gateway again. ",
        "To let another model answer in one conversation, write ", h("code", {}, "/model NAME"), " in it."),
      this.field, this.body)));
    this.me = house.me;
    this.load();
    this.drawOwn();
  }

  async load() {
    try {
      [this.models, { settings: this.settings }] = await Promise.all([get("/api/models"), get("/api/settings")]);
      this.draw();
    } catch (error) {
      this.body.replaceChildren(h("p.hint", {}, error.status === 403 ? "Only administrators see the settings." : error.message));
    }
  }

  draw() {
    if (!this.settings) return;
    const wanted = this.field.value.trim().toLowerCase();
    const groups = Object.entries(this.settings).map(([name, value]) => [name, flat(name, value).filter(([key, text]) => `${key} ${text}`.toLowerCase().includes(wanted))]);
    const shown = groups.filter(([, rows]) => rows.length).map(([name, rows]) => h("section.group", {}, h("h2", {}, name),
      h("dl", {}, rows.map(([key, text]) => h("div", {}, h("dt", {}, key), h("dd", {}, text === "" ? h("span.unset", {}, "not set") : text))))));
    this.body.replaceChildren(...(wanted ? [] : [this.modelCards()]), ...(shown.length ? shown : [h("p.hint", {}, "No setting has that in it.")]));
  }

  async drawOwn() {
    const { tokens } = await get("/api/tokens").catch(() => ({ tokens: null }));
    this.own.replaceChildren(this.password(), ...(tokens ? [this.tokens(tokens)] : []));
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

  modelCards() {
    return h("section.group", {}, h("h2", {}, "models that can answer"), this.models.notice && h("p.hint", {}, this.models.notice),
      h("div.tiles", {}, this.models.choices.map((each) => h("div.tile", {}, h("span", {}, each.default ? "the usual one" : "/model"), h("b", {}, each.name), h("small", {}, each.model !== each.name ? each.model : "")))));
  }

  frame() {}
  reconnected() {}
}

function flat(key, value) {
  if (value && typeof value === "object" && !Array.isArray(value)) {
    const rows = Object.entries(value).flatMap(([name, each]) => flat(`${key}.${name}`, each));
    return rows.length ? rows : [[key, ""]];
  }
  if (Array.isArray(value)) return [[key, value.map((each) => (typeof each === "object" ? JSON.stringify(each) : String(each))).join(", ")]];
  return [[key, value === null ? "" : String(value)]];
}
