// Schedules: what the agent does later, or again and again, with the next times and the last runs of each.

import { get, patch, post, remove } from "./api.js";
import { ask, h, toast } from "./dom.js";
import { line } from "./lines.js";
import { told } from "./say-schedules.js";
import { moment } from "./words.js";

const EVERY = 10000; // milliseconds
const PATH = "/api/schedules";
const HEART = "/api/heartbeat";
const at = (each) => `${PATH}/${encodeURIComponent(each.id)}`;

export class SchedulesPage {
  constructor() {
    this.list = h("section.schedules", { "aria-label": told.yours, "aria-live": "polite" });
    this.form = h("form.tile", { "aria-label": told.make });
    this.heart = h("section.tile.schedule", { "aria-label": told.heartbeat, "aria-live": "polite" });
    this.node = h("div.tab", {}, this.list, this.form, this.heart);
    this.open = new Set(); // whose last runs are shown
    this.titles = new Map(); // what the conversations are called in which they answer
    this.timer = setInterval(() => this.load(), EVERY);
    this.begin();
  }

  async begin() {
    await this.drawForm();
    await this.load();
  }

  async load() {
    this.loadHeart();
    try {
      const { schedules } = await get(PATH);
      const shown = JSON.stringify(schedules);
      if (shown !== this.shown) this.draw(schedules); // else whoever reads or tabs through it is not disturbed
      this.shown = shown;
    } catch (error) {
      this.shown = null;
      this.list.replaceChildren(h("p.hint", {}, error.message));
    }
  }

  async loadHeart() {
    let heart = { off: told.heartUnknown, lines: [], checks: [] };
    try { heart = await get(HEART); } catch (error) { heart.off = error.message; }
    const shown = JSON.stringify(heart);
    if (shown !== this.beat) this.drawHeart(heart);
    this.beat = shown;
  }

  drawHeart({ off, lines, checks }) {
    const allow = h("button.small.ghost", { type: "button", onclick: () => this.act(() => post(`${HEART}/allow`)) }, told.heartAllow);
    this.heart.replaceChildren(h("b", {}, told.heartbeat), ...(off ? [h("p.text", {}, off)] : lines.map((line) => h("p.text", {}, line))),
      h("small", {}, told.heartHint), ...(off || !checks.length ? [] : [h("p.text", {}, told.heartChecks(checks))]),
      off ? "" : h("div.row", {}, h("button.small.plain", { type: "button", onclick: () => this.act(() => post(`${HEART}/run`)) }, told.heartRun), checks.length ? allow : null));
  }

  draw(schedules) {
    this.list.replaceChildren(...(schedules.length ? schedules.map((each) => this.tile(each))
      : [h("div.empty", {}, h("h2", {}, told.none), h("p", {}, told.noneHint))]));
  }

  tile(each) {
    const standing = each.over ? told.over(each.over) : !each.enabled ? told.disabled : told.next(each.next.map(moment));
    const poll = each.polls ? `${told.poll(each.polls, each.condition)}, ` : "";
    return h("article.tile.schedule", { "data-id": each.id },
      h("div.row.spread", {}, h("b", {}, each.name), h("span", {}, each.when)),
      h("p.text", {}, `${poll}${told.done[each.does]}: ${each.text}`),
      h("small", {}, [standing, told.inSession(this.titles.get(each.session) ?? each.session), each.zone, each.runs ? told.ran(each.runs) : ""].filter(Boolean).join(" · ")),
      this.runs(each), h("div.row", {}, this.buttons(each)));
  }

  buttons(each) {
    const button = (label, name, deed, kind = "ghost") => h(`button.small.${kind}`, { type: "button", "aria-label": name, onclick: deed }, label);
    const change = (enabled) => () => this.act(() => patch(at(each), { enabled }));
    return [
      button(told.run, told.runNamed(each.name), () => this.act(() => post(`${at(each)}/run`)), "plain"),
      each.over ? null : each.enabled ? button(told.stop, told.stopNamed(each.name), change(false)) : button(told.go, told.goNamed(each.name), change(true)),
      button(told.remove, told.removeNamed(each.name), () => this.drop(each))];
  }

  runs(each) {
    const lines = h("ul", {});
    const details = h("details", { open: this.open.has(each.id) }, h("summary", {}, told.runs), lines);
    const fill = async () => {
      try {
        const { runs } = await get(`${at(each)}/runs`);
        lines.replaceChildren(...(runs.length ? runs.map((run) => this.line(run)) : [h("li", {}, told.noRuns)]));
      } catch (error) { lines.replaceChildren(h("li", {}, error.message)); }
    };
    details.addEventListener("toggle", () => {
      if (details.open) { this.open.add(each.id); fill(); } else this.open.delete(each.id);
    });
    if (details.open) fill();
    return details;
  }

  line(run) {
    const parts = [moment(run.due), told.states[run.state] ?? run.state, run.cost ? told.cost(run.cost) : "", run.result];
    return h("li", {}, parts.filter(Boolean).join(" · "));
  }

  async drawForm() {
    let sessions;
    try { ({ sessions } = await get("/api/sessions")); } catch (error) { this.form.replaceChildren(h("b", {}, told.make), h("small", {}, error.message)); return; }
    this.titles = new Map(sessions.map((each) => [each.session, each.title]).filter(([, title]) => title));
    if (!sessions.length) { this.form.replaceChildren(h("b", {}, told.make), h("small", {}, told.noPlace)); return; }
    const does = h("select", { "aria-label": told.does }, Object.entries(told.kinds).map(([value, text]) => h("option", { value }, text)));
    const where = h("select", { "aria-label": told.where }, sessions.map((each) => h("option", { value: each.session }, each.title || each.session)));
    const when = h("input", { "aria-label": told.when, placeholder: told.whenHint, required: true, autocomplete: "off", maxlength: 200 });
    const text = h("textarea", { "aria-label": told.text, placeholder: told.textHint, required: true, rows: 3, maxlength: 10000 });
    const zone = h("input", { "aria-label": told.zone, placeholder: told.zoneHint, value: Intl.DateTimeFormat().resolvedOptions().timeZone ?? "", autocomplete: "off", maxlength: 80 });
    const wrong = h("p.wrong", { role: "alert" });
    this.form.onsubmit = async (event) => {
      event.preventDefault();
      wrong.textContent = "";
      const asked = { when: when.value, text: text.value, does: does.value, session: where.value, ...(zone.value ? { zone: zone.value.trim() } : {}) };
      try {
        const { schedule, cost } = await post(PATH, asked);
        toast(told.made(schedule.name, cost));
        when.value = text.value = "";
        await this.load();
      } catch (error) { wrong.textContent = error.message; }
    };
    this.form.replaceChildren(h("b", {}, told.make), line(told.does, does), line(told.when, when), line(told.text, text), line(told.where, where), line(told.zone, zone), wrong,
      h("div.row", {}, h("button.primary", { type: "submit" }, told.add)));
  }

  async drop(each) {
    if (await ask({ title: told.removeTitle(each.name), text: told.removeText, yes: told.remove })) await this.act(() => remove(at(each)));
  }

  async act(deed) {
    try { const { told: said } = await deed(); if (said) toast(said); } catch (error) { toast(error.message, "bad"); }
    this.shown = null;
    await this.load();
  }

  close() { clearInterval(this.timer); }
  reconnected() { if (this.form.onsubmit) this.load(); else this.begin(); }
}
