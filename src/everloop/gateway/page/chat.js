// One conversation: its log, what is being said, and where one writes. The log is read through the API and is the
// truth; what comes through the socket says that it has grown, and carries drafts of what is not in it yet.

import { get, patch, post } from "./api.js";
import { Composer } from "./composer.js";
import { begun, Deeds } from "./deeds.js";
import { h, iconButton, menu, toast } from "./dom.js";
import { draftOf, nextSession, takeSession } from "./drafts.js";
import { failure, greeting } from "./empty.js";
import { HeldChanges } from "./held.js";
import { Log } from "./log.js";
import { Past, whole } from "./past.js";
import { ModelPicker } from "./picker.js";
import { say } from "./say.js";
import { newId } from "./socket.js";

const PAGE = 200;
const NEAR = 120; // pixels from the end that still count as reading along
const FULL = 0.5; // of the context: from here on it is worth a word

const newSession = () => `page:${newId().slice(0, 8)}`;

export class Chat {
  /** `house` is {socket, go, changed, seen, finished}: how to speak, how to show another conversation, and whom to tell. */
  constructor(house, { thread = "", jump = 0 } = {}) {
    this.house = house;
    this.thread = thread;
    this.session = thread ? "" : nextSession(newSession);
    this.jump = jump;
    this.current = true;
    this.entries = [];
    this.answers = new Map(); // commands that the page itself has given, and who waits for what they say
    this.about = { id: thread, title: "" };
    this.deeds = new Deeds(house, () => this.about, (about) => this.know(about));
    this.picker = new ModelPicker((text) => this.command(text), () => this.deeds.act("regenerate"));
    this.log = this.newLog();
    this.build();
    this.ready = thread ? this.open() : this.greet();
  }

  newLog() {
    return new Log({
      regenerate: () => this.deeds.act("regenerate"),
      edit: (seq, text, last) => this.edit(seq, text, last),
      fork: (seq) => this.deeds.fork(seq, newSession()),
      speak: (text) => this.speak(text),
      others: (label, face) => this.picker.others(label, face),
    });
  }

  build() {
    this.title = h("h1.title", { dir: "auto" }, say.newConversation);
    this.banner = h("div.banner", { hidden: true, role: "status" });
    this.empty = h("div.empty", { hidden: true });
    this.held = new HeldChanges(() => this.house.changed());
    this.past = new Past(() => this.newLog(), (from, limit) => this.fetch({ before: from, limit }));
    this.scroller = h("div.scroller", { onscroll: () => this.followed(), ongrown: () => this.follow(), tabindex: "-1" },
      h("div.column", {}, this.past.node, this.empty, this.log.node, this.held.node));
    this.growing = new ResizeObserver(() => this.follow()); // pictures, and what is opened, come later than their entry
    this.growing.observe(this.scroller.firstChild);
    this.toEnd = iconButton("down", say.toEnd, () => this.follow(true), { hidden: true, class: "ghost to-end" });
    this.meter = h("div.meter", { hidden: true });
    this.menu = h("div.row.tools", {},
      iconButton("trace", say.showTrace, () => this.house.go(`#/t/${this.thread}`), { class: "ghost wide-only" }),
      menu(say.more, () => this.deeds.menu(() => this.deeds.fork(this.log.seq, newSession()))));
    this.composer = new Composer({
      send: (text, files) => this.send(text, files), stop: () => this.stop(), running: () => this.log.running,
      said: () => this.entries.filter((each) => each.kind === "user_said").map((each) => each.parts.find((part) => part.type === "text")?.text ?? "").filter(Boolean),
      paths: async () => this.paths(),
    }, this.session || "loading");
    this.foot = h("div.foot", {}, this.toEnd, this.meter, this.composer.node);
    this.node = h("section.chat", { "aria-label": say.chat },
      h("header.bar", {}, this.house.menuButton(), this.title, this.picker.node, this.menu),
      this.banner, this.scroller, this.foot);
    this.refresh();
    this.offerModels();
  }

  /** The files that this conversation tells of, the latest first. */
  paths() {
    const found = new Set();
    for (const entry of this.entries.toReversed()) {
      for (const each of [...(entry.changes ?? []), ...(entry.made ?? []), ...(entry.links ?? [])]) found.add(each.path ?? each.name);
    }
    return [...found].filter(Boolean);
  }

  /** Where nothing better than the model of this machine answers, that is said before the first message. */
  async offerModels() {
    const missing = await this.picker.load();
    const { model = "" } = this.picker.choices.find((each) => each.default) ?? {};
    if (missing || model.split("/")[0] === "embedded") (await import("./first.js")).offerModel(this, missing);
    this.refresh();
  }

  greet() {
    this.empty.hidden = false;
    this.menu.hidden = true;
    this.empty.replaceChildren(...greeting((text) => this.composer.write(text)));
    this.showUnsent();
    setTimeout(() => this.offerField());
  }

  /** With a keyboard one can write at once; who is busy elsewhere goes on there. */
  offerField() {
    const busy = document.activeElement?.closest("main, input, textarea, dialog");
    if (!busy && matchMedia("(hover: hover)").matches) this.composer.field.focus({ preventScroll: true });
  }

  fetch(query) { return get(`/api/sessions/${this.thread}/entries`, query); }

  async open() {
    this.scroller.setAttribute("aria-busy", "true");
    try {
      const { session } = await get(`/api/sessions/${this.thread}`);
      this.thread = session.id;
      this.meet(session.session);
      this.know(session);
      const { entries } = await this.fetch(this.jump ? { after: Math.max(0, this.jump - 40), limit: 500 } : { limit: PAGE });
      this.show(entries);
      if (this.jump) await this.sync();
      this.resume();
      if (!this.current) this.tellOld();
      await this.held.load(this.session);
      this.showVersions().catch(() => {}); // without them the conversation is whole, too
    } catch (error) {
      if (error.status === 404 && begun.has(this.thread)) this.await(); else this.fail(error);
    }
    this.scroller.removeAttribute("aria-busy");
    this.refresh();
    if (this.jump) this.point(this.jump); else this.follow(true);
    if (this.current) this.offerField();
  }

  async showVersions() {
    const { Versions } = await import("./versions.js");
    const versions = new Versions(this.about, (id) => this.house.go(`#/c/${id}`));
    await versions.load();
    versions.mark(this.scroller);
    this.versions = versions;
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
    this.showUnsent();
  }

  /** What was sent from here and not taken yet; it is sent by the socket. */
  showUnsent() {
    for (const { id, session, content, files = [] } of this.house.socket.unacknowledged.values()) {
      if (session !== this.session || this.log.pending.has(id) || this.heardOf(content)) continue;
      this.empty.hidden = true;
      this.log.expect(id, content, files, !this.house.socket.open);
    }
  }

  /** Whether the log has it already, and only the word for that is on its way. */
  heardOf(text) {
    return this.entries.slice(-10).some((each) => each.kind === "user_said" && each.parts.some((part) => part.text === text));
  }

  await() {
    this.meet(begun.get(this.thread));
    this.resume();
    this.sync();
  }

  async named() { this.know((await get(`/api/sessions/${this.thread}`)).session); }

  show(entries) {
    const [before, rest] = whole(entries);
    this.past.open(before, rest[0]?.seq ?? 0);
    this.entries = entries;
    const log = this.newLog();
    for (const entry of rest) log.add(entry);
    this.log.node.replaceWith(log.node);
    this.log = log;
    this.showUnsent();
  }

  async loadEarlier() {
    const shown = this.past.node.querySelector(".log") ?? this.log.node;
    let before = 0;
    const earlier = await this.past.load(() => { before = shown.getBoundingClientRect().top; });
    this.entries = [...earlier, ...this.entries];
    this.scroller.scrollTop += shown.getBoundingClientRect().top - before; // what one reads stays where it is
    this.top = this.scroller.scrollTop;
    this.versions?.mark(this.scroller);
  }

  point(seq) {
    this.left = true;
    const found = [...this.scroller.querySelectorAll("[data-seq]")].filter((node) => Number(node.dataset.seq) <= seq).at(-1);
    const folded = found?.closest("details");
    if (folded) folded.open = true;
    found?.scrollIntoView({ block: "center" });
    found?.classList.add("found");
  }

  fail(error) {
    this.broken = true;
    this.title.textContent = "";
    this.empty.hidden = false;
    this.empty.replaceChildren(...failure(error, () => this.house.go("#/"), () => { this.empty.hidden = true; this.broken = false; this.open(); }));
  }

  tellOld() {
    this.banner.hidden = false;
    this.banner.replaceChildren(say.olderVersion, h("button.small", { type: "button", onclick: () => this.takeUp() }, say.continueThis));
    this.composer.field.disabled = this.composer.sendButton.disabled = true;
    this.composer.field.placeholder = say.continueToWrite;
  }

  /** Its session goes back to it; that of another channel stays where its people are. */
  async takeUp() {
    try {
      const moved = await post(`/api/sessions/${this.thread}/resume`, this.session.startsWith("page:") ? {} : { session: newSession() });
      this.house.go(`#/c/${moved.thread}`);
      this.house.changed();
    } catch (error) { toast(error.message, "bad"); }
  }

  resume() {
    if (this.thread) this.house.socket.put({ type: "resume", session: this.session, thread: this.thread, after: this.log.seq });
  }

  connection(open) { this.log.connected(open); }

  /** After a break: whatever was a draft is told anew, and the log is read on from where it was. */
  async reconnected() {
    if (!this.thread) return;
    await this.ready;
    this.log.dropDraft();
    this.resume();
    this.sync();
  }

  /** Read on until nothing is missing. Several calls at once are one, and one more after it. */
  async sync() {
    if (!this.thread) return;
    if (this.reading) { this.again = true; return; }
    this.reading = true;
    try {
      do {
        this.again = false;
        const { entries, head } = await this.fetch({ after: this.log.seq, limit: 500 });
        this.append(entries);
        if (entries.length && entries.at(-1).seq < head) this.again = true;
      } while (this.again);
    } catch (error) {
      if (error.status === 404 && !this.entries.length) this.expectFirst();
      else if (error.status) toast(error.message, "bad");
    }
    this.reading = false;
  }

  /** Nothing is committed yet. A command may have no entry at all, so only what was said is waited for. */
  expectFirst() {
    if (this.closed || ![...this.log.pending.values()].some(({ text }) => !text.startsWith("/")) && !begun.has(this.thread)) return;
    setTimeout(() => this.sync(), 300);
  }

  append(entries) {
    const fresh = entries.filter((entry) => entry.seq > this.log.seq);
    if (!fresh.length) return;
    this.empty.hidden = true;
    if (!this.entries.length) this.arrive();
    for (const entry of fresh) this.log.add(entry);
    this.entries.push(...fresh);
    this.house.seen(this.thread, this.log.seq);
    this.refresh();
    this.follow();
    if (fresh.some((entry) => ["user_said", "model_said", "asked", "answered", "gave_up"].includes(entry.kind))) this.house.changed();
  }

  /** The first entry is there: from now on it has an address and a title. */
  arrive() {
    if (!location.hash.startsWith("#/c/")) history.replaceState(null, "", `#/c/${this.thread}`);
    takeSession(this.session);
    this.named().catch(() => {}); // it is named at the next look
  }

  frame(frame) {
    if (frame.session !== this.session) return;
    if (frame.thread && frame.thread !== this.thread && this.current) {
      if (!this.thread || !this.entries.length) this.adopt(frame.thread);
      else if (["ack", "stream_start", "stream_chunk"].includes(frame.type)) { this.house.go(`#/c/${frame.thread}`); return; }
      else return;
    }
    if (frame.thread !== this.thread && frame.thread) return;
    this.take(frame);
    if ((frame.seq ?? 0) > this.log.seq) this.sync();
    this.refresh();
    this.follow();
  }

  take(frame) {
    switch (frame.type) {
      case "stream_start": return this.log.streamStart(frame.msg);
      case "stream_chunk": return this.log.streamChunk(frame);
      case "stream_end": this.log.streamEnd(frame); return this.sync();
      case "response": return this.answered(frame);
      case "error": return this.refused(frame);
      case "event": return this.heard(frame);
      case "news": if (frame.event === "titled") this.named().catch(() => {}); return; // else at the next look
      case "approval":
        if (frame.kind === "file") { this.held.load(this.session); this.house.changed(); }
        return this.sync();
    }
  }

  heard({ event, data = {} }) {
    if (event === "metrics") this.full = data.full;
    if (event === "tool_output") this.log.output(data.call ?? "", data.text ?? "");
    else if (event === "compacting") toast(say.compacting);
    else this.sync();
  }

  answered(frame) {
    const command = this.log.pending.get(frame.id)?.text.startsWith("/");
    if (command && frame.content) this.log.notice(frame.content); // it has no entry of its own
    this.log.forget(frame.id);
    this.answers.get(frame.id)?.(frame.content);
    this.answers.delete(frame.id);
    this.sync();
  }

  /** A turn that came to nothing is told by the log. A message that was not taken is a draft again. */
  refused(frame) {
    if (frame.thread) { this.sync(); return; }
    this.log.forget(frame.id);
    this.composer.open(this.session);
    if (!draftOf(this.session).why) toast(frame.content, "bad");
    this.empty.hidden = Boolean(this.thread);
  }

  adopt(thread) {
    this.thread = this.about.id = thread;
    this.menu.hidden = false;
  }

  send(text, files) {
    this.speak(text, files);
    if (this.title.textContent === say.newConversation) this.title.textContent = text.slice(0, 80);
    this.follow(true);
  }

  speak(text, files = []) {
    const id = newId();
    this.empty.hidden = true;
    this.log.expect(id, text, files, !this.house.socket.open);
    this.house.socket.say({ type: "message", id, session: this.session, content: text, ...(files.length ? { files } : {}) });
  }

  /** Give a command for the person; resolves to what it says. */
  command(text) {
    return new Promise((resolve) => {
      const id = newId();
      this.answers.set(id, resolve);
      this.house.socket.say({ type: "message", id, session: this.session, content: text });
    });
  }

  stop() { this.house.socket.put({ type: "stop", session: this.session }); }

  refresh() {
    const { running } = this.log;
    this.node.classList.toggle("running", running);
    this.composer.stopButton.hidden = !running;
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
      h("button.small", { type: "button", onclick: () => { this.full = 0; this.speak("/compact"); } }, say.compact));
  }

  along() { return this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight < NEAR; }

  follow(always = false) {
    if (always) this.left = false;
    if (!this.left && this.empty.hidden) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  /** Whoever scrolls up wants to stay there; that the end moves away is no scrolling. */
  followed() {
    const top = this.scroller.scrollTop;
    if (this.along()) this.left = false;
    else if (top < (this.top ?? 0) - 2) this.left = true;
    this.top = top;
    this.toEnd.hidden = !this.left;
    if (this.left && top < this.scroller.clientHeight && this.past.more) this.loadEarlier().catch((error) => toast(error.message, "bad"));
  }

  /** The last message is said differently; for an earlier one the conversation goes on in a copy that ends before it. */
  async edit(seq, content, last) {
    if (last) { await this.deeds.act("edit", { content }); return; }
    const moved = await this.deeds.act("fork", { at: seq - 1, session: this.session });
    if (moved) await patch(`/api/sessions/${this.thread}`, { archived: true }).catch(() => {}); // the copy stands for it
    if (moved) this.house.socket.say({ type: "message", id: newId(), session: moved.session, content });
  }

  close() {
    this.closed = true;
    this.growing.disconnect();
    this.composer.close();
  }
}
