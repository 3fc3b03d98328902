// Channels: how each stands, and setting one up, trying it and removing it.

import { get, post, put, remove } from "./api.js";
import { ask, h, toast } from "./dom.js";
import { told } from "./say-channels.js";
import { moment } from "./words.js";

const EVERY = 5000; // milliseconds

const at = (each, more = "") => `/api/channels/${encodeURIComponent(each.name)}${more}`;

/** A sentence whose addresses can be opened and whose commands look like it. */
const worded = (text) => text.split(/(https:\/\/[^\s,;)]*[^\s,;).:]|`[^`]+`)/).map((part) => {
  if (part.startsWith("`")) return h("code", {}, part.slice(1, -1));
  return part.startsWith("https://") ? h("a", { href: part, target: "_blank", rel: "noreferrer" }, part.split("?")[0]) : part;
});

export class ChannelsPage {
  constructor(role) {
    this.isOwner = role === "owner";
    this.open = new Map(); // tiles in which somebody writes or reads, by name
    this.list = h("div.people.channels");
    this.node = h("div.tab", {}, h("p.hint", {}, told.intro), !this.isOwner && h("p.hint", {}, told.onlyOwner), this.list);
    this.timer = setInterval(() => { if (!document.hidden && !this.open.size) this.draw(); }, EVERY);
    this.draw();
  }

  async draw() {
    try {
      const { channels } = await get("/api/channels");
      const shown = JSON.stringify(channels);
      if (shown === this.shown) return; // what is selected, or has the focus, stays
      this.shown = shown;
      channels.sort((one, other) => (one.state === "unset") - (other.state === "unset")); // what is set stands first
      this.list.replaceChildren(...channels.map((each) => this.open.get(each.name) ?? this.tile(each)));
    } catch (error) { this.list.replaceChildren(h("p.hint", {}, error.message)); }
  }

  tile(each) {
    const is = each.state !== "unset";
    const { traffic } = each;
    const todo = each.by || each.state !== "wrong" ? told.todo[each.state] : told.todo.nobody;
    const facts = is ? [told.lastIn(traffic.last_in ? moment(traffic.last_in) : told.never), told.lastOut(traffic.last_out ? moment(traffic.last_out) : told.never), traffic.waiting && told.waiting(traffic.waiting)] : [];
    return h("article.tile", { "data-channel": each.name },
      h("div.row.spread", {}, h("b", {}, each.title), h("span.state", { "data-state": each.state }, told.states[each.state])),
      h("small", {}, [each.title.toLowerCase() === each.name ? "" : each.name, each.by && each.by !== "everloop" && told.by(each.by), each.since && told.since(moment(each.since))].filter(Boolean).join(", ")),
      each.why && h("p.why", { dir: "auto" }, each.why), todo && h("p.hint", {}, todo),
      h("ul.facts", {}, facts.filter(Boolean).map((text) => h("li", {}, text)),
        traffic.given_up > 0 && h("li", {}, told.givenUp(traffic.given_up), ". ", h("a", { href: "#/settings/outbox" }, told.outbox))),
      this.isOwner && h("div.row", {},
        each.by && h("button.small", { type: "button", "aria-label": (is ? told.againNamed : told.setUpNamed)(each.title), onclick: () => this.setUp(each) }, is ? told.again : told.setUp),
        each.by && is && h("button.small", { type: "button", "aria-label": told.testNamed(each.title), onclick: (event) => this.test(each, event.currentTarget) }, told.test),
        is && h("button.small", { type: "button", "aria-label": told.removeNamed(each.title), onclick: () => this.forget(each) }, told.remove)));
  }

  /** Put something in the place of a tile, until it is put back. */
  replace(each, node) {
    this.open.set(each.name, node);
    this.list.querySelector(`[data-channel="${CSS.escape(each.name)}"]`)?.replaceWith(node);
  }

  putBack(each) {
    this.open.delete(each.name);
    this.shown = "";
    return this.draw();
  }

  async setUp(each) {
    try {
      const found = await get(at(each));
      const form = this.form(each, found, false);
      this.replace(each, form);
      form.querySelector("input")?.focus();
    } catch (error) { toast(error.message, "bad"); }
  }

  form(each, found, byLogin) {
    const asked = byLogin ? found.login : found.fields;
    const fields = asked.map((field) => [field.name, h("input", {
      type: field.secret ? "password" : "text", autocomplete: "off", spellcheck: "false", autocapitalize: "off", required: !field.optional, "aria-label": told.of(field.question, each.title),
      placeholder: field.optional ? told.optional : "",
    }), field]);
    const untested = h("input", { type: "checkbox" });
    const wrong = h("p.wrong", { role: "alert" });
    const button = h("button.primary", { type: "submit" }, byLogin ? told.logIn : told.save);
    const other = (login) => { const form = this.form(each, found, login); this.replace(each, form); form.querySelector("input")?.focus(); };
    const submit = async (event) => {
      event.preventDefault();
      Object.assign(wrong, { textContent: "" });
      Object.assign(button, { disabled: true, textContent: told.saving });
      const values = Object.fromEntries(fields.map(([name, field]) => [name, field.value.trim()]).filter(([, value]) => value));
      try {
        const done = byLogin ? await post(at(each, "/login"), { values }) : await put(at(each), { values, test: !untested.checked });
        toast(told.saved(each.title));
        if (done.probed) this.replace(each, this.said(each, done.probed, true)); else await this.putBack(each);
      } catch (error) {
        wrong.textContent = error.message;
        Object.assign(button, { disabled: false, textContent: byLogin ? told.logIn : told.save });
      }
    };
    return h("form.tile", { onsubmit: submit, "data-channel": each.name, "aria-label": told.setUpNamed(each.title) },
      h("b", {}, each.title), h("ol.steps", {}, found.steps.map((step) => h("li", {}, worded(step)))),
      fields.length ? fields.map(([, field, { question }]) => h("label.line", {}, h("span", {}, question), field)) : h("p.hint", {}, told.noFields),
      !byLogin && fields.length > 0 && h("label.row", {}, untested, h("span", {}, told.untested)), wrong,
      h("div.row", {}, fields.length > 0 && button, found.login.length > 0 && h("button.small", { type: "button", onclick: () => other(!byLogin) }, byLogin ? told.byToken : told.byLogin),
        h("button", { type: "button", onclick: () => this.putBack(each) }, told.cancel)));
  }

  async test(each, button) {
    button.disabled = true;
    try {
      const { probed } = await post(at(each, "/test"));
      this.replace(each, this.said(each, probed));
    } catch (error) { toast(error.message, "bad"); }
    button.disabled = false;
  }

  /** What a platform says of us. */
  said(each, probed, isNew = false) {
    return h("article.tile", { "data-channel": each.name, role: "status" }, h("b", {}, each.title),
      h("p", { dir: "auto" }, probed ? told.answers(probed.account) : told.cannotTry),
      probed?.link.startsWith("https://") && h("a", { href: probed.link, target: "_blank", rel: "noreferrer" }, told.link),
      probed?.missing.length > 0 && [h("p", {}, told.missing), h("ul.steps", {}, probed.missing.map((text) => h("li", { dir: "auto" }, worded(text))))],
      probed && isNew && h("p.hint", {}, told.next),
      h("div.row", {}, h("button.small", { type: "button", onclick: () => this.putBack(each) }, told.close)));
  }

  async forget(each) {
    if (!await ask({ title: told.removeTitle(each.title), text: told.removeText, yes: told.remove, grave: true })) return;
    try {
      const { left } = await remove(at(each));
      toast(left.length ? told.left(left.join(", ")) : told.removed(each.title));
    } catch (error) { toast(error.message, "bad"); }
    await this.putBack(each);
  }

  close() { clearInterval(this.timer); }
  reconnected() { if (!this.open.size) this.draw(); } // what is being written stays
}
