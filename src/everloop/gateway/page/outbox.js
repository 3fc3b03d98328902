// Answers that a channel could not deliver, each to be sent again or dropped, and what runs behind it, as it stands.

import { get, post, remove } from "./api.js";
import { ask, h, toast } from "./dom.js";
import { told as said } from "./say-manage.js";
import { moment, when } from "./words.js";

const EVERY = 5000; // milliseconds

export class OutboxView {
  constructor(house) {
    this.body = h("div", { "aria-live": "polite" });
    this.node = h("section.page", { "aria-label": said.outbox },
      h("header.bar", {}, house.menuButton(), h("h1.title", {}, said.outbox)),
      h("div.scroller", { tabindex: "0" }, h("div.column.wide", {}, this.body)));
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
    const tried = outbox.filter((each) => each.state !== "failed");
    this.body.replaceChildren(...[
      outbox.length ? null : h("div.empty", {}, h("h2", {}, said.allArrived), h("p", {}, said.allArrivedHint)),
      this.list(said.givenUp, said.givenUpHint, given),
      this.list(said.triedAgain, said.triedAgainHint, tried),
      running(tasks)].filter(Boolean));
  }

  list(title, hint, rows) {
    if (!rows.length) return null;
    return h("section.undelivered", { "aria-label": title }, h("h2", {}, title), h("p.hint", {}, hint), rows.map((each) => this.row(each)));
  }

  row(each) {
    const next = each.state === "pending" ? said.next(moment(each.due)) : each.state === "sending" ? said.beingSent : "";
    const waits = each.state !== "sending";
    return h("article.tile.letter", { "data-id": each.id },
      h("div.row.spread", {}, h("b", {}, each.chat), each.queued ? h("span", { title: moment(each.queued) }, when(each.queued)) : null),
      h("p.text", {}, each.text || said.noText),
      h("small.why", {}, each.why || said.noReason),
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
  frame() {}
  reconnected() { this.load(); }
}

function running(tasks) {
  const fine = tasks.every((task) => !task.error && task.state !== "failed");
  return h("details.running", { open: !fine }, h("summary", {}, fine ? said.runsWell : said.runsBadly),
    h("div.scroll", { tabindex: "0" }, h("table.numbers", {},
      h("thead", {}, h("tr", {}, said.taskColumns.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, tasks.map((task) => h("tr", {}, h("th", { scope: "row" }, task.name),
        [said.taskStates[task.state], moment(task.since), String(task.restarts), task.error].map((text) => h("td", {}, text))))))));
}
