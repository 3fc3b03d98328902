// Tasks: what goes on in the background of one's chats, and what sub-agents work at, each with what was said and done there.

import { get, post } from "./api.js";
import { ask, h, toast } from "./dom.js";
import { told } from "./say-tasks.js";
import { dollars, lasted, moment } from "./words.js";

const SOON = 2000, LATER = 10000; // milliseconds: while something runs, and else
const PATH = "/api/background";
const OPEN = new Set(["queued", "running", "waiting"]);
const LONGEST = 2000; // characters of one thing that was said

export class TasksPage {
  constructor(house) {
    this.house = house;
    this.list = h("section.tasks", { "aria-label": told.yours, "aria-live": "polite" });
    this.node = h("div.tab", {}, this.list);
    this.open = new Set(); // whose transcripts are shown
    this.load();
  }

  async load() {
    clearTimeout(this.timer);
    let open = 0;
    try {
      const found = await get(PATH);
      open = found.open;
      const shown = JSON.stringify([found.tasks, open ? Math.floor(Date.now() / SOON) : 0]);
      if (shown !== this.shown && !this.list.contains(document.activeElement)) { this.draw(found.tasks); this.shown = shown; } // whoever tabs through it is not disturbed
    } catch (error) {
      this.shown = null;
      this.list.replaceChildren(h("p.hint", {}, error.message));
    }
    if (!this.closed) this.timer = setTimeout(() => this.load(), open ? SOON : LATER);
  }

  draw(tasks) {
    this.list.replaceChildren(...(tasks.length ? tasks.toReversed().map((each) => this.tile(each))
      : [h("div.empty", {}, h("h2", {}, told.none), h("p", {}, told.noneHint))]));
  }

  tile(each) {
    const runs = OPEN.has(each.stage);
    const took = lasted(Math.max(0, (runs ? Date.now() / 1000 : each.active) - each.began));
    const facts = [told.stages[each.stage], told.steps(each.steps), dollars(each.cost) || told.noPrice, took, moment(each.began)];
    return h(`article.tile.task.${each.stage}`, { "data-id": each.id },
      h("div.row.spread", {}, h("b", { dir: "auto" }, each.title || told.untitled), h("span.kind", {}, each.number ? told.number(each.number) : told.agent)),
      h("small", {}, facts.join(" · ")), this.transcript(each), h("div.row", {}, this.buttons(each, runs)));
  }

  buttons(each, runs) {
    const button = (label, name, deed, kind = "ghost") => h(`button.small.${kind}`, { type: "button", "aria-label": name(each.title), onclick: deed }, label);
    return [
      each.number > 0 && button(told.front, told.frontNamed, () => this.bring(each), "plain"),
      h("a.button.small.ghost", { href: `#/c/${each.parent}`, "aria-label": told.chatNamed(each.title) }, told.chat),
      runs && button(told.stop, told.stopNamed, () => this.stop(each))];
  }

  transcript(each) {
    const lines = h("ul.lines", {});
    const details = h("details", { open: this.open.has(each.id) }, h("summary", {}, told.transcript), lines);
    const fill = async () => {
      try {
        const { entries } = await get(`/api/sessions/${each.id}/entries`, { limit: 500 });
        const said = entries.filter((entry) => !each.number || entry.at >= each.began).flatMap(spoken);
        lines.replaceChildren(...(said.length ? said.map(([who, text]) => h(`li.${who}`, {}, h("b", {}, told.who[who]), h("span", { dir: "auto" }, text))) : [h("li", {}, told.nothingYet)]));
      } catch (error) { lines.replaceChildren(h("li", {}, error.status === 404 ? told.nothingYet : error.message)); }
    };
    details.addEventListener("toggle", () => {
      if (details.open) { this.open.add(each.id); fill(); } else this.open.delete(each.id);
    });
    if (details.open) fill();
    return details;
  }

  async bring(each) {
    try {
      const { thread, reply } = await post(`${PATH}/${each.id}/front`);
      if (reply) toast(reply);
      this.house.changed();
      this.house.go(`#/c/${thread}`);
    } catch (error) { toast(error.message, "bad"); this.again(); }
  }

  async stop(each) {
    if (!await ask({ title: told.stopTitle(each.title), text: told.stopText, yes: told.stop })) return;
    try {
      const { stopped } = await post(`${PATH}/${each.id}/stop`);
      toast(told.stopped(stopped));
    } catch (error) { toast(error.message, "bad"); }
    this.again();
  }

  again() {
    this.shown = null;
    document.activeElement?.blur();
    return this.load();
  }

  close() { this.closed = true; clearTimeout(this.timer); }
  reconnected() { this.load(); }
}

/** [who, text] of what an entry tells. */
function spoken(entry) {
  const cut = (text) => text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text;
  if (entry.kind === "user_said") return [["user", cut(entry.parts.map((part) => part.text ?? part.name ?? "").join("\n"))]];
  if (entry.kind === "model_said") {
    return [...(entry.text.trim() ? [["agent", cut(entry.text)]] : []), ...(entry.calls ?? []).map((call) => ["tool", `→ ${call.name} ${cut(call.args ?? "")}`])];
  }
  if (entry.kind === "call_returned") return [["tool", cut(entry.text)]];
  if (entry.kind === "gave_up") return [["agent", cut(entry.text)]];
  return entry.kind === "stopped" ? [["user", told.stages.stopped]] : [];
}
