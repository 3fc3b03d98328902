// Who did what, when, by which authority; and whether that is still as it was written.

import { get } from "./api.js";
import { h } from "./dom.js";
import { told } from "./say-audit.js";
import { moment } from "./words.js";

const DAY = 86400;

export class AuditPage {
  constructor() {
    this.lines = [];
    this.who = h("input", { "aria-label": told.who, placeholder: told.whoHint, maxlength: 200 });
    this.what = h("select", { "aria-label": told.what, onchange: () => this.load() }, h("option", { value: "" }, told.anything),
      Object.entries(told.kinds).map(([value, name]) => h("option", { value }, name)));
    this.since = h("select", { "aria-label": told.since, onchange: () => this.load() },
      [0, 1, 7, 30, 365].map((days) => h("option", { value: days }, days ? (days === 1 ? told.day : told.days(days)) : told.any)));
    this.checked = h("p.hint", { role: "status" });
    this.body = h("div.tab", { "aria-live": "polite" });
    const submit = (event) => { event.preventDefault(); this.load(); };
    this.node = h("div.tab", {},
      h("form.row.picks", { onsubmit: submit, role: "search" }, this.who, this.what, this.since, h("button.small", { type: "submit" }, told.filter),
        h("button.small.ghost", { type: "button", onclick: () => this.check() }, told.check)),
      this.checked, this.body);
    this.load();
  }

  async load(before) {
    const days = Number(this.since.value);
    const asked = { who: this.who.value.trim(), what: this.what.value, since: days ? Math.floor(Date.now() / 1000) - days * DAY : 0, ...(before ? { before } : {}) };
    try {
      const { lines, more, names } = await get("/api/audit", asked);
      this.names = { ...this.names, ...names };
      this.lines = before ? [...this.lines, ...lines] : lines;
      this.draw(more);
    } catch (error) {
      this.body.replaceChildren(h("p.hint", {}, error.message));
    }
  }

  draw(more) {
    if (!this.lines.length) {
      this.body.replaceChildren(h("div.empty", {}, h("h2", {}, told.nothing), h("p", {}, told.nothingHint)));
      return;
    }
    const last = this.lines.at(-1).id;
    this.body.replaceChildren(...[
      h("ol.deeds", { "aria-label": told.lines }, this.lines.map((each) => line(each, this.called))),
      more ? h("div.row", {}, h("button.small", { type: "button", onclick: () => this.load(last) }, told.more)) : null].filter(Boolean));
  }

  /** By name and id, as far as they are there. */
  called = (id) => (Object.hasOwn(this.names, id) && this.names[id] !== id ? `${this.names[id]} (${id})` : id);

  async check() {
    this.checked.textContent = told.checking;
    try {
      const { lines, head, broken } = await get("/api/audit/check");
      this.checked.textContent = broken ? told.broken(broken.line, broken.why) : told.sound(lines, head);
    } catch (error) {
      this.checked.textContent = error.message;
    }
  }

  reconnected() { this.load(); }
}

function line(each, called) {
  const at = h("time", { datetime: new Date(each.at).toISOString() }, moment(each.at / 1000));
  return h("li", { "data-line": each.id, value: each.id },
    h("div.row.spread", {}, h("code", {}, each.deed), at),
    h("span.detail", {}, [each.meaning, called(each.subject), each.detail].filter(Boolean).join(" · ")),
    h("small", {}, told.by(called(each.actor) || told.nobody, each.authority)));
}
