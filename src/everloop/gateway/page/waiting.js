// The questions of all conversations in one place, with the same answers as where they were asked.

import { get } from "./api.js";
import { decided, question } from "./card.js";
import { h, toast } from "./dom.js";
import { heldQuestion, settled } from "./held-question.js";
import { told } from "./say-manage.js";
import { say } from "./say.js";
import { moment } from "./words.js";

const EVERY = 5000; // milliseconds

export class WaitingView {
  constructor(house) {
    this.house = house;
    this.body = h("div.column", { "aria-live": "polite" });
    this.node = h("section.page", { "aria-label": say.waiting },
      h("header.bar", {}, house.menuButton(), h("h1.title", {}, say.waiting)), h("div.scroller", { tabindex: "0" }, this.body));
    this.timer = setInterval(() => { if (!document.hidden) this.load(); }, EVERY); // another process may ask
    this.load();
  }

  async load() {
    try {
      const [{ approvals, questions }, { sessions }] = await Promise.all([get("/api/approvals"), get("/api/sessions", { limit: 500 })]);
      const now = JSON.stringify([approvals, questions]);
      if (now === this.now) return; // an answer may be being written
      this.now = now;
      const { elicited } = questions.length ? await import("./elicited.js") : {};
      const asked = [...questions.map((each) => this.placed(each, sessions, elicited(each, () => this.answered()))), ...approvals.map((each) => this.asked(each, sessions))];
      this.body.replaceChildren(...(asked.length ? asked : [h("div.empty", {}, h("h2", {}, told.nothingWaits), h("p", {}, told.nothingWaitsHint))]));
    } catch (error) { this.now = null; this.body.replaceChildren(h("p.hint", {}, error.message)); }
  }

  async answered() {
    this.house.changed();
    await this.load();
  }

  asked(each, sessions) {
    const inside = h("div.asking");
    const decide = async (allow, ahead = null) => {
      if (!await decided(inside, each.id, allow, ahead)) return;
      toast(each.kind !== "call" ? settled(each.kind, allow) : allow ? say.allowed : say.verdicts.denied);
      await this.answered();
    };
    inside.append(...(each.kind !== "call" ? heldQuestion(each, decide) : question(each, decide)));
    return this.placed(each, sessions, inside);
  }

  placed(each, sessions, inside) {
    const place = sessions.find((one) => one.session === each.session && one.current);
    return h("article.call.asks", {}, h("p.asked-in", {}, place ? h("a", { href: `#/c/${place.id}`, dir: "auto" }, place.title || say.untitled) : h("span", {}, each.session || told.nobodys),
      h("span.facts", { dir: "auto" }, [each.requester && each.requester !== this.house.me.user && told.wantedBy(each.requester), each.until && told.until(moment(each.until))].filter(Boolean).join(" · "))), inside);
  }

  frame(frame) { if (frame.type === "approval" || frame.type === "news") this.load(); }
  reconnected() { this.load(); }
  close() { clearInterval(this.timer); }
}
