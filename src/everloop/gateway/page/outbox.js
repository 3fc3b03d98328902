// Answers that a channel could not deliver, each to be sent again or dropped, and what runs behind it, as it stands.

import { get, post, remove } from "./api.js";
import { ask, h, toast } from "./dom.js";
import { moment, when } from "./words.js";

const EVERY = 5000; // milliseconds
const STATES = { running: "running", standby: "done by another process", waiting: "failed, is begun again soon", ended: "ended", failed: "failed" };

export class OutboxView {
  constructor(house) {
    this.body = h("div", { "aria-live": "polite" });
    this.node = h("section.page", { "aria-label": "Outbox" },
      h("header.bar", {}, house.menuButton(), h("h1.title", {}, "Outbox")),
      h("div.scroller", {}, h("div.column.wide", {}, this.body)));
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
      outbox.length ? null : h("div.empty", {}, h("h2", {}, "Everything has arrived"), h("p", {}, "Answers that a channel could not deliver stand here, with the reason, to be sent again or dropped.")),
      this.list("Given up", "They are kept until you send them again or drop them.", given),
      this.list("Tried again", "For a day, less and less often; then they are given up.", tried),
      running(tasks)].filter(Boolean));
  }

  list(title, hint, rows) {
    if (!rows.length) return null;
    return h("section.undelivered", { "aria-label": title }, h("h2", {}, title), h("p.hint", {}, hint), rows.map((each) => this.row(each)));
  }

  row(each) {
    const name = `to ${each.chat}`;
    const next = each.state === "pending" ? `, next ${moment(each.due)}` : each.state === "sending" ? ", being sent now" : "";
    const waits = each.state !== "sending";
    return h("article.tile.letter", { "data-id": each.id },
      h("div.row.spread", {}, h("b", {}, each.chat), each.queued ? h("span", { title: moment(each.queued) }, when(each.queued)) : null),
      h("p.text", {}, each.text || "(no text)"),
      h("small.why", {}, each.why || "no reason was given"),
      h("small", {}, `${each.attempts} ${each.attempts === 1 ? "try" : "tries"}${each.queued ? ` since ${moment(each.queued)}` : ""}${next}`),
      waits ? h("div.row", {},
        h("button.small", { type: "button", "aria-label": `Send again ${name}`, onclick: () => this.again(each) }, "Send again"),
        h("button.small.ghost", { type: "button", "aria-label": `Drop what goes ${name}`, onclick: () => this.drop(each) }, "Drop")) : null);
  }

  async again(each) {
    await this.act(() => post(`/api/outbox/${each.id}/retry`), "It is sent again, where the channel runs.");
  }

  async drop(each) {
    if (!await ask({ title: "Never send it?", text: `What waits for ${each.chat} stays in the conversation, and does not leave any more.`, yes: "Drop" })) return;
    await this.act(() => remove(`/api/outbox/${each.id}`), "It is not sent any more.");
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
  return h("details.running", { open: !fine }, h("summary", {}, fine ? "What runs here: all is well" : "What runs here: something has failed"),
    h("div.scroll", { tabindex: "0" }, h("table.numbers", {},
      h("thead", {}, h("tr", {}, ["Task", "State", "Since", "Begun again", "Last error"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, tasks.map((task) => h("tr", {}, h("th", { scope: "row" }, task.name),
        [STATES[task.state], moment(task.since), String(task.restarts), task.error].map((text) => h("td", {}, text))))))));
}
