// One conversation: its log, what is being said, and where one writes.

import { get } from "./api.js";
import { Composer } from "./composer.js";
import { begun, Deeds } from "./deeds.js";
import { h, iconButton, menu } from "./dom.js";
import { keepChosen, keepWaiting, nextSession, takeSession } from "./drafts.js";
import { failure, greeting } from "./empty.js";
import { Hearing } from "./hearing.js";
import { HeldChanges } from "./held.js";
import { Log } from "./log.js";
import { ModelPicker } from "./picker.js";
import { say } from "./say.js";
import { read } from "./seen.js";
import { Sent } from "./sent.js";
import { newId } from "./socket.js";
import { Transcript } from "./transcript.js";

const PAGE = 60; // entries: the end of it; what was said before comes as one scrolls
const FULL = 0.5; // of the context: from here on it is worth a word
const NEWS = new Set(["user_said", "model_said", "asked", "answered", "gave_up", "stopped"]); // what the list of conversations shows

const newSession = () => `page:${newId().slice(0, 8)}`;

export class Chat {
  /** `house` is {socket, go, changed, seen, finished}: how to speak, how to show another conversation, and whom to tell. */
  constructor(house, { thread = "", jump = 0 } = {}) {
    this.house = house;
    this.thread = thread;
    this.opened = Boolean(thread);
    this.session = thread ? begun.get(thread) ?? "" : nextSession(newSession);
    this.jump = jump;
    this.current = true;
    this.about = { id: thread, title: "" };
    this.deeds = new Deeds(house, () => this.about, (about) => this.know(about));
    this.picker = new ModelPicker(this);
    this.held = new HeldChanges(() => house.changed());
    this.transcript = new Transcript(() => this.newLog(), (from, limit) => this.fetch({ before: from, limit }), this.held.node);
    this.sent = new Sent(house.socket, () => this.session, this.transcript);
    this.hearing = new Hearing(this);
    this.build();
    this.ready = thread ? this.open() : this.greet();
    this.heed = () => this.heedSpeech();
    document.addEventListener("speech", this.heed);
    this.heed();
  }

  /** Speech is loaded where it was switched on. */
  async heedSpeech() {
    this.speech?.close();
    this.speech = null;
    const chosen = read("speech");
    if (!chosen) return;
    const { Speech } = await import("./speech.js");
    if (!this.closed && !this.speech) this.speech = new Speech(this, chosen);
  }

  get log() { return this.transcript.log; }

  newLog() {
    return new Log({
      me: this.house.me,
      regenerate: () => this.deeds.act("regenerate"),
      edit: (seq, text, last) => this.deeds.edit(seq, text, last),
      fork: (seq) => this.deeds.fork(seq, newSession()),
      speak: (text) => this.sent.speak(text),
      waits: (pending) => keepWaiting(this.session, pending),
      others: (label, face) => this.picker.others(label, face),
    });
  }

  build() {
    this.title = h("h1.title", { dir: "auto" }, say.newConversation);
    this.banner = h("div.banner", { hidden: true, role: "status" });
    this.meter = h("div.meter", { hidden: true });
    this.menu = h("div.row.tools", {},
      iconButton("trace", say.showTrace, () => this.house.go(`#/t/${this.thread}`), { class: "ghost wide-only" }),
      menu(say.more, () => this.deeds.menu(() => this.deeds.fork(this.log.seq, newSession()))));
    this.composer = new Composer({
      send: (text, files) => this.send(text, files), stop: () => this.stop(), background: () => this.background(), running: () => this.log.running,
      said: () => this.transcript.said(), paths: async () => this.transcript.paths(),
    }, this.session || "loading");
    this.foot = h("div.foot", {}, this.transcript.toEnd, this.meter, this.composer.node, this.picker.cost);
    this.node = h("section.chat", { "aria-label": say.chat },
      h("header.bar", {}, this.house.menuButton(), this.title, this.picker.node, this.menu),
      this.banner, this.transcript.node, this.foot);
    this.refresh();
    this.offerModels();
  }

  /** Where only the model of this machine answers, that is said first. */
  async offerModels() {
    const missing = await this.picker.load();
    const { model = "" } = this.picker.choices.find((each) => each.default) ?? {};
    if (missing || model.split("/")[0] === "embedded") (await import("./first.js")).offerModel(this, missing);
    this.refresh();
  }

  greet() {
    this.menu.hidden = true;
    this.transcript.fill(greeting((text) => this.composer.write(text)));
    this.sent.show();
    setTimeout(() => this.offerField());
  }

  /** With a keyboard one can write at once. */
  offerField() {
    const busy = document.activeElement?.closest("main, input, textarea, dialog");
    if (!busy && matchMedia("(hover: hover)").matches) this.composer.field.focus({ preventScroll: true });
  }

  fetch(query) { return get(`/api/sessions/${this.thread}/entries`, query); }

  async open() {
    this.transcript.node.setAttribute("aria-busy", "true");
    try {
      const { session } = await get(`/api/sessions/${this.thread}`);
      this.thread = session.id;
      this.meet(session.session);
      this.know(session);
      const { entries } = await this.fetch(this.jump ? { after: Math.max(0, this.jump - 40), limit: 500 } : { limit: PAGE });
      this.transcript.show(entries);
      this.sent.show();
      if (this.jump) await this.hearing.sync();
      this.hearing.resume();
      if (!this.current) this.tellOld();
      await this.held.load(this.session);
      this.versions();
    } catch (error) {
      if (error.status === 404 && begun.has(this.thread)) this.await(); else this.fail(error);
    }
    this.transcript.node.removeAttribute("aria-busy");
    this.refresh();
    if (this.jump) this.transcript.point(this.jump); else this.transcript.follow(true);
    if (this.current) this.offerField();
  }

  know(about) {
    this.about = about;
    this.current = about.current;
    this.title.textContent = about.title || say.untitled;
    this.house.titled(this.title.textContent);
    this.house.seen(about.id, about.head);
  }

  /** The session is known from now on, and with it what was written in it and not sent. */
  meet(session) {
    this.session = session;
    this.composer.open(session);
    this.sent.show();
  }

  await() {
    this.meet(begun.get(this.thread));
    this.hearing.resume();
    this.hearing.sync();
  }

  async named() { this.know((await get(`/api/sessions/${this.thread}`)).session); }

  fail(error) {
    this.broken = true;
    this.title.textContent = say.everloop;
    this.transcript.fill(failure(error, () => this.house.go("#/"), () => { this.transcript.empty.hidden = true; this.broken = false; this.open(); }));
  }

  tellOld() {
    this.banner.hidden = false;
    this.banner.replaceChildren(say.olderVersion, h("button.small", { type: "button", onclick: () => this.deeds.takeUp(newSession) }, say.continueThis));
    this.composer.field.disabled = this.composer.sendButton.disabled = true;
    this.composer.field.placeholder = say.continueToWrite;
  }

  connection(open) { this.log.connected(open); }

  /** After a break: whatever was a draft is told anew, and the log is read on from where it was. */
  async reconnected() {
    if (!this.thread) return;
    await this.ready;
    this.log.dropDraft();
    this.hearing.resume();
    this.hearing.sync();
  }

  append(entries) {
    const first = !this.transcript.entries.length;
    const fresh = this.transcript.append(entries);
    if (!fresh.length) return;
    if (first) this.arrive();
    this.house.seen(this.thread, this.log.seq);
    this.refresh();
    this.transcript.follow();
    this.speech?.came(fresh);
    if (fresh.some((entry) => NEWS.has(entry.kind))) this.house.changed();
  }

  /** The first entry is there: it has an address and a title. */
  arrive() {
    if (!location.hash.startsWith("#/c/")) history.replaceState(null, "", `#/c/${this.thread}`);
    takeSession(this.session);
    keepChosen(this.session, null);
    this.named().then(() => { if (this.about.parent) this.versions(); }).catch(() => {}); // it is named at the next look
  }

  versions() { this.transcript.showVersions(this.about, (id) => this.house.go(`#/c/${id}`)).catch(() => {}); }

  frame(frame) { this.hearing.frame(frame); }

  /** A message that was not taken is in the field again. */
  refused(frame) {
    this.composer.open(this.session);
    this.sent.refused(frame);
    this.transcript.empty.hidden = Boolean(this.thread);
  }

  adopt(thread) {
    this.thread = thread;
    this.about = { ...this.about, id: thread, session: this.session };
    this.menu.hidden = false;
  }

  send(text, files) {
    this.sent.speak(text, files, this.fresh && !text.startsWith("/") ? this.picker.pending?.name : "");
    if (this.title.textContent === say.newConversation) this.title.textContent = text.slice(0, 80);
    this.transcript.follow(true);
  }

  /** A new conversation in which nothing was said yet. */
  get fresh() { return !this.opened && !this.transcript.entries.length; }

  /** Who asks for a new conversation and is in one stays in it. */
  moved(kind) {
    if (kind || this.thread || !this.fresh) return false;
    this.offerField();
    return true;
  }

  command(text) { return this.sent.command(text); }

  stop() { this.house.socket.put({ type: "stop", session: this.session }); }

  async background() { (await import("./background.js")).sendOff(this); }

  /** The session is at another conversation now, in which nothing may have been said yet. */
  leaveFor(thread) {
    if (this.left === thread) return;
    this.left = thread;
    begun.set(thread, this.session);
    this.house.changed();
    this.house.go(`#/c/${thread}`);
  }

  refresh() {
    const { running } = this.log;
    this.node.classList.toggle("running", running);
    this.composer.stopButton.hidden = !running;
    this.composer.backButton.hidden = !running || !this.log.open || !this.current || this.house.me.role === "guest";
    if (this.current) this.composer.field.placeholder = this.log.asking.size ? say.answerAbove : running ? say.steer : say.askAnything;
    this.menu.hidden = !this.thread || this.broken;
    this.foot.hidden = Boolean(this.broken); // nobody writes into what is not there
    this.picker.show(this.log.choice);
    this.measure();
  }

  /** How full the context is, once that is worth knowing. */
  measure() {
    this.meter.hidden = !(this.full >= FULL) || this.log.running || !this.current;
    if (this.meter.hidden) return;
    this.meter.replaceChildren(h("span", {}, say.contextFull(Math.round(this.full * 100))),
      h("button.small", { type: "button", onclick: () => { this.full = 0; this.sent.speak("/compact"); } }, say.compact));
  }

  close() {
    this.closed = true;
    document.removeEventListener("speech", this.heed);
    this.speech?.close();
    this.transcript.close();
    this.composer.close();
  }
}
