// Answers that a channel could not deliver, each to be sent again or dropped.

import { get, post, remove } from "./api.js";
import { ask, h, toast } from "./dom.js";
import { isWell } from "./health.js";
import { told as said } from "./say-manage.js";
import { moment, when } from "./words.js";

const EVERY = 5000; // milliseconds

export class OutboxPage {
  constructor() {
    this.node = this.body = h("div.tab", { "aria-live": "polite" });
    this.timer = setInterval(() => this.load(), EVERY);
    this.load();
  }

  async load() {
    try {
      const [{ outbox }, { tasks }] = await Promise.all([get("/api/outbox"), get("/api/tasks")]);
      const told = JSON.stringify([outbox, tasks]);
      if (told !== this.told) this.draw(outbox, tasks); // else whoever reads or tabs through it is not disturbed
      this.told = told;
    } catch (error) {
      this.told = null;
      this.body.replaceChildren(h("p.hint", {}, error.message));
    }
  }

  draw(outbox, tasks) {
    const given = outbox.filter((each) => each.state === "failed");
    const tried = outbox.filter((each) => each.state !== "failed" && !each.polled);
    const fetched = outbox.filter((each) => each.state !== "failed" && each.polled);
    this.body.replaceChildren(...[
      outbox.length ? null : h("div.empty", {}, h("h2", {}, said.allArrived), h("p", {}, said.allArrivedHint)),
      this.list(said.givenUp, said.givenUpHint, given),
      this.list(said.triedAgain, said.triedAgainHint, tried),
      this.list(said.forBots, said.forBotsHint, fetched),
      h("p.hint", {}, h("a", { href: "#/settings/health" }, isWell(tasks) ? said.runsWell : said.runsBadly))].filter(Boolean));
  }

  list(title, hint, rows) {
    if (!rows.length) return null;
    return h("section.undelivered", { "aria-label": title }, h("h2", {}, title), h("p.hint", {}, hint), rows.map((each) => this.row(each)));
  }

  row(each) {
    const later = each.due * 1000 > Date.now();
    const next = each.polled ? (each.state === "sending" && later ? said.botHasIt(moment(each.due)) : "")
      : each.state === "pending" ? said.next(moment(each.due)) : each.state === "sending" ? said.beingSent : "";
    const waits = each.state !== "sending";
    return h("article.tile.letter", { "data-id": each.id },
      h("div.row.spread", {}, h("b", {}, each.chat), each.queued ? h("span", { title: moment(each.queued) }, when(each.queued)) : null),
      h("p.text", {}, each.text || said.noText),
      each.polled && !each.why ? h("small", {}, said.waitsForBot) : h("small.why", {}, each.why || said.noReason),
      h("small", {}, [said.tries(each.attempts, each.queued ? moment(each.queued) : "?"), next].filter(Boolean).join(", ")),
      waits ? h("div.row", {},
        h("button.small", { type: "button", "aria-label": said.sendAgainTo(each.chat), onclick: () => this.again(each) }, said.sendAgain),
        h("button.small.ghost", { type: "button", "aria-label": said.dropTo(each.chat), onclick: () => this.drop(each) }, said.drop)) : null);
  }

  async again(each) {
    await this.act(() => post(`/api/outbox/${each.id}/retry`), said.sentAgain);
  }

  async drop(each) {
    if (!await ask({ title: said.dropTitle, text: said.dropText(each.chat), yes: said.drop })) return;
    await this.act(() => remove(`/api/outbox/${each.id}`), said.dropped);
  }

  async act(deed, done) {
    try { await deed(); toast(done); } catch (error) { toast(error.message, "bad"); }
    await this.load();
  }

  close() { clearInterval(this.timer); }
  reconnected() { this.load(); }
}
