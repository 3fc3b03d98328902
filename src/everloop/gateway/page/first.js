// Before the first word, where nothing better than the model of this machine answers: who does, its download, and the
// card that connects another. What the download does is told by the gateway, so that every tab sees the same.

import { get, post } from "./api.js";
import { ConnectCard } from "./connect.js";
import { h, styled } from "./dom.js";
import { words } from "./say-connect.js";
import { lasted } from "./words.js";

const SOON = 1_000; // milliseconds between two looks at a download, and at one that another tab might begin
const LATER = 5_000;

/** On the empty page the card that connects a model; in a conversation that nobody can answer, a line that leads there. */
export function offerModel(chat, missing) {
  const { banner, house: { me }, transcript: { empty } } = chat;
  const starters = empty.querySelector(".starters");
  if (starters) {
    const connected = () => { chat.offerModels(); chat.composer.field.focus(); };
    if (!empty.querySelector(".first")) starters.before(new FirstRun({ missing, mayConnect: me.role === "owner" && me.scopes.includes("admin"), connected }).node);
  } else if (missing && banner.hidden) {
    banner.hidden = false;
    banner.replaceChildren(h("span", {}, words.nobodyHere), h("a.button.small", { href: "#/settings/models" }, words.connect));
  }
}

const gigabytes = (bytes) => (bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.round(bytes / 1e6)} MB`);

export class FirstRun {
  /** `connected()` is told that another model answers. Only the owner (`mayConnect`) has the buttons. */
  constructor({ missing, mayConnect, connected }) {
    this.mayConnect = mayConnect;
    this.connected = connected;
    this.about = h("div.about");
    this.place = h("div.place");
    this.node = h("div.first", {}, this.about, this.place);
    styled("connect.css");
    if (missing) this.tell(missing); else this.look();
  }

  tell(missing) {
    this.about.replaceChildren(h("p", {}, words.nobody), h("details", {}, h("summary", {}, words.nobodyWhy), h("p.plain", {}, missing)));
    this.offer();
  }

  offer() {
    if (this.mayConnect && !this.card) this.place.replaceChildren((this.card = new ConnectCard(() => this.finish())).node);
  }

  finish() {
    this.ended = true;
    this.about.replaceChildren();
    this.connected();
  }

  async look() {
    try {
      this.draw(await get("/api/models/embedded"));
    } catch { /* the next look may succeed */ }
    const wait = this.now?.state === "fetching" ? SOON : LATER;
    setTimeout(() => { if (this.node.isConnected && !this.ended && this.now?.state !== "ready") this.look(); }, wait);
  }

  draw(now) {
    const before = this.now?.state;
    this.now = now;
    if (this.ended || now.state === "none") return;
    if (now.state === "fetching") this.drawBar(now, before);
    else if (before !== now.state || now.state !== "ready") this.drawOffer(now, before);
    if (now.state !== "ready") this.offer();
  }

  drawOffer(now, before) {
    const act = (path) => async () => { this.draw(await post(`/api/models/embedded/${path}`)); this.look(); };
    const better = h("button", { type: "button", onclick: () => { this.offer(); this.card.field.focus(); this.card.node.scrollIntoView({ block: "nearest" }); } }, words.better);
    const fetch = h("button.primary", { type: "button", onclick: act("fetch") }, now.done ? words.resume(gigabytes(now.done)) : words.fetch);
    const ready = now.state === "ready";
    this.about.replaceChildren(h("p", {}, ready ? (before === "fetching" ? words.fetched : words.ready) : words.small(gigabytes(now.total))),
      ...(now.why ? [h("p.wrong", { role: "alert" }, words.failed), h("p.plain.hint", {}, now.why)] : []),
      this.mayConnect ? h("div.row", {}, !ready && fetch, better) : "");
  }

  drawBar(now, before) {
    if (before !== "fetching") {
      this.bar = h("progress", { "aria-label": words.fetching });
      this.said = h("span.facts", { role: "status" });
      const leave = async () => { this.draw(await post("/api/models/embedded/leave")); };
      this.about.replaceChildren(h("p", {}, words.fetching), this.bar, h("div.row.spread", {}, this.said, this.mayConnect && h("button.small", { type: "button", onclick: leave }, words.later)));
    }
    this.bar.max = now.total;
    this.bar.value = now.done;
    const parts = now.what === "checking" ? [words.checking] : now.done ? [words.progress(gigabytes(now.done), gigabytes(now.total), Math.floor((100 * now.done) / now.total)), now.left !== null && words.left(lasted(now.left))] : [words.beginning];
    this.said.textContent = parts.filter(Boolean).join(" · ");
  }
}
