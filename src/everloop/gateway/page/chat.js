// One conversation: its log, what is being said, and where one writes. The log is read through the API and is the
// truth; what comes through the socket says that it has grown, and carries drafts of what is not in it yet.

import { get, patch, post, upload } from "./api.js";
import { ask, h, icon, iconButton, toast } from "./dom.js";
import { HeldChanges } from "./held.js";
import { Log } from "./log.js";
import { newId } from "./socket.js";

const PAGE = 200;
const NEAR = 120; // pixels from the end that still count as reading along
const STARTERS = [
  ["Look around", "What is in my workspace? Tell me in a few lines."],
  ["Plan something", "Help me plan my week: ask me what you need to know."],
  ["Read a page", "Summarise a web page for me. I will give you its address."],
];

// Threads that were just begun and hold nothing yet, with their sessions: they are not told of before their first entry.
const begun = new Map();

export class Chat {
  /** `house` is {socket, go, changed}: how to speak, how to show another conversation, and whom to tell of news. */
  constructor(house, { thread = "", session = "", jump = 0 } = {}) {
    this.house = house;
    this.thread = thread;
    this.session = session || `page:${newId().slice(0, 8)}`;
    this.jump = jump;
    this.current = true;
    this.entries = [];
    this.files = [];
    this.log = this.newLog();
    this.build();
    this.ready = thread ? this.open() : this.greet();
  }

  newLog() {
    return new Log({
      regenerate: () => this.act("regenerate"),
      edit: (text) => this.edit(text),
      fork: (seq) => this.fork(seq),
    });
  }

  build() {
    this.title = h("h1.title", {}, "New conversation");
    this.banner = h("div.banner", { hidden: true, role: "status" });
    this.earlier = h("button.earlier", { type: "button", hidden: true, onclick: () => this.loadEarlier() }, "Show earlier messages");
    this.empty = h("div.empty", { hidden: true });
    this.held = new HeldChanges(() => this.house.changed());
    this.scroller = h("div.scroller", { onscroll: () => this.followed(), ongrown: () => this.follow(), tabindex: "-1" },
      h("div.column", {}, this.earlier, this.empty, this.log.node, this.held.node));
    this.growing = new ResizeObserver(() => this.follow()); // pictures, and what is opened, come later than their entry
    this.growing.observe(this.scroller.firstChild);
    this.toEnd = iconButton("down", "Go to the end", () => this.follow(true), { hidden: true, class: "ghost to-end" });
    this.picker = h("select.models", { "aria-label": "Model that answers here", hidden: true, onchange: () => this.choose() });
    this.menu = h("div.row.tools", {},
      iconButton("edit", "Rename", () => this.rename()),
      iconButton("trace", "Show how the time was spent", () => this.house.go(`#/t/${this.thread}`)),
      iconButton("undo", "Take the last turn back", () => this.undo()),
      iconButton("archive", "Archive", () => this.archive()));
    this.node = h("section.chat", { "aria-label": "Chat" },
      h("header.bar", {}, this.house.menuButton(), this.title, this.picker, this.menu),
      this.banner, this.scroller, h("div.foot", {}, this.toEnd, this.composer()));
    this.refresh();
    this.offerModels();
  }

  /** Where there is a choice, it is offered; it is made by `/model`, as anyone could type it. */
  async offerModels() {
    const { choices, missing } = await get("/api/models").catch(() => ({ choices: [] }));
    this.choices = choices;
    if (missing && this.banner.hidden) this.tellMissing(missing);
    this.picker.hidden = choices.length < 2;
    this.picker.replaceChildren(...choices.map((each) => h("option", { value: each.name }, each.name)));
    this.showModel();
  }

  /** Nobody can answer: what to do about it is said before the first message, not only after it. */
  tellMissing(sentence) {
    this.banner.hidden = false;
    this.banner.replaceChildren(h("span", {}, sentence), h("a.button.small", { href: "#/settings/models" }, "Set up a model"));
  }

  showModel() {
    const usual = this.choices?.find((each) => each.default)?.name;
    const chosen = this.log.choice || usual;
    if (chosen && ![...this.picker.options].some((each) => each.value === chosen)) this.picker.append(h("option", { value: chosen }, chosen));
    if (chosen) this.picker.value = chosen;
  }

  choose() { this.speak(`/model ${this.picker.value}`); }

  composer() {
    this.field = h("textarea", {
      rows: 1, placeholder: "Ask anything, or /help", "aria-label": "Message", enterkeyhint: "send",
      oninput: () => this.sized(), onkeydown: (event) => this.typed(event), onpaste: (event) => this.pasted(event),
    });
    const picker = h("input", { type: "file", multiple: true, hidden: true, onchange: () => { this.attach(picker.files); picker.value = ""; } });
    this.attached = h("div.row.attached", { hidden: true });
    this.sendButton = h("button.round.primary", { type: "submit", "aria-label": "Send", title: "Send (Enter)" }, icon("send"));
    this.stopButton = h("button.round.stop", { type: "button", "aria-label": "Stop", title: "Stop (Esc)", hidden: true, onclick: () => this.stop() }, icon("stop"));
    return h("form.composer", {
      onsubmit: (event) => { event.preventDefault(); this.send(); },
      ondragover: (event) => { event.preventDefault(); event.currentTarget.classList.add("over"); },
      ondragleave: (event) => event.currentTarget.classList.remove("over"),
      ondrop: (event) => { event.preventDefault(); event.currentTarget.classList.remove("over"); this.attach(event.dataTransfer.files); },
    }, this.attached, h("div.line", {},
      iconButton("clip", "Attach a file", () => picker.click()), picker, this.field, this.stopButton, this.sendButton));
  }

  greet() {
    this.empty.hidden = false;
    this.menu.hidden = true;
    this.empty.replaceChildren(
      h("div.mark", {}, icon("loop")),
      h("h2", {}, "What shall we do?"),
      h("p", {}, "It reads and writes in your workspace, runs commands in a sandbox, and asks before anything leaves it."),
      h("div.starters", {}, STARTERS.map(([name, text]) =>
        h("button.starter", { type: "button", onclick: () => this.write(text) }, h("b", {}, name), h("span", {}, text)))));
    if (matchMedia("(hover: hover)").matches) setTimeout(() => document.activeElement?.matches("input, textarea") || this.field.focus()); // who is writing elsewhere goes on
  }

  async open() {
    this.scroller.setAttribute("aria-busy", "true");
    try {
      const { session } = await get(`/api/sessions/${this.thread}`);
      this.thread = session.id;
      this.session = session.session;
      this.current = session.current;
      this.title.textContent = session.title || "Untitled";
      document.title = `${this.title.textContent} · everloop`;
      const { entries } = await get(`/api/sessions/${this.thread}/entries`, this.jump ? { after: Math.max(0, this.jump - 40), limit: 500 } : { limit: PAGE });
      this.show(entries);
      if (this.jump) await this.sync();
      this.resume();
      if (!this.current) this.tellOld();
      await this.held.load(this.session);
    } catch (error) {
      if (error.status === 404 && begun.has(this.thread)) this.await(); else this.fail(error);
    }
    this.scroller.removeAttribute("aria-busy");
    this.refresh();
    if (this.jump) this.point(this.jump); else this.follow(true);
    if (this.current && matchMedia("(hover: hover)").matches) this.field.focus({ preventScroll: true });
  }

  await() {
    this.session = begun.get(this.thread);
    this.resume();
    this.sync();
  }

  async named() {
    const { session } = await get(`/api/sessions/${this.thread}`);
    this.title.textContent = session.title || "Untitled";
    document.title = `${this.title.textContent} · everloop`;
  }

  show(entries) {
    this.entries = entries;
    const log = this.newLog();
    for (const entry of entries) log.add(entry);
    this.log.node.replaceWith(log.node);
    this.log = log;
    this.earlier.hidden = !entries.length || entries[0].seq <= 1;
  }

  async loadEarlier() {
    const height = this.scroller.scrollHeight;
    const { entries } = await get(`/api/sessions/${this.thread}/entries`, { before: this.entries[0].seq, limit: PAGE });
    const { running, draft } = this.log;
    this.show([...entries, ...this.entries]);
    this.log.running = running;
    if (draft) { this.log.draft = draft; this.log.drafts.append(draft.node); }
    this.scroller.scrollTop += this.scroller.scrollHeight - height;
  }

  point(seq) {
    this.left = true;
    const found = [...this.log.node.querySelectorAll("[data-seq]")].filter((node) => Number(node.dataset.seq) <= seq).at(-1);
    found?.scrollIntoView({ block: "center" });
    found?.classList.add("found");
  }

  fail(error) {
    const missing = error.status === 404;
    this.broken = true;
    this.title.textContent = "";
    this.empty.hidden = false;
    this.empty.replaceChildren(
      h("h2", {}, missing ? "This conversation is not here" : "This conversation could not be opened"),
      h("p", {}, missing ? "It may belong to someone else, or the address is not complete. Search for it on the left." : error.message),
      h("div.row", {}, h("button", { type: "button", onclick: () => this.house.go("#/") }, "New conversation"),
        !missing && h("button", { type: "button", onclick: () => { this.empty.hidden = true; this.broken = false; this.open(); } }, "Try again")));
  }

  tellOld() {
    this.banner.hidden = false;
    this.banner.replaceChildren("Its session has gone on with another conversation.",
      h("button.small", { type: "button", onclick: () => this.takeUp() }, "Continue this one"));
    this.field.disabled = this.sendButton.disabled = true;
    this.field.placeholder = "Continue this conversation to write in it";
  }

  async takeUp() {
    try {
      const moved = await post(`/api/sessions/${this.thread}/resume`, { session: `page:${newId().slice(0, 8)}` });
      this.house.go(`#/c/${moved.thread}`);
      this.house.changed();
    } catch (error) { toast(error.message, "bad"); }
  }

  resume() {
    if (this.thread) this.house.socket.put({ type: "resume", session: this.session, thread: this.thread, after: this.log.seq });
  }

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
        const { entries, head } = await get(`/api/sessions/${this.thread}/entries`, { after: this.log.seq, limit: 500 });
        this.append(entries);
        if (entries.length && entries.at(-1).seq < head) this.again = true;
      } while (this.again);
    } catch (error) {
      if (error.status === 404 && !this.entries.length) setTimeout(() => this.sync(), 300); // not committed yet
      else if (error.status) toast(error.message, "bad");
    }
    this.reading = false;
  }

  append(entries) {
    const fresh = entries.filter((entry) => entry.seq > this.log.seq);
    if (!fresh.length) return;
    this.empty.hidden = true;
    if (!this.entries.length) this.named().catch(() => {}); // it has got a title with its first entry
    for (const entry of fresh) this.log.add(entry);
    this.entries.push(...fresh);
    this.refresh();
    this.follow();
    if (fresh.some((entry) => ["user_said", "model_said", "asked", "answered", "gave_up"].includes(entry.kind))) this.house.changed();
  }

  frame(frame) {
    if (frame.session !== this.session) return;
    if (frame.thread && frame.thread !== this.thread && this.current) {
      if (!this.thread) this.adopt(frame.thread);
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
      case "approval":
        if (frame.kind === "file") { this.held.load(this.session); this.house.changed(); }
        return this.sync();
    }
  }

  heard({ event, data = {} }) {
    if (event === "tool_output") this.log.output(data.call ?? "", data.text ?? "");
    else if (event === "compacting") toast("Making a summary of what was said before …");
    else this.sync();
  }

  answered(frame) {
    const waiting = this.log.pending.get(frame.id);
    if (waiting?.text.startsWith("/")) { // a command has no entry of its own
      this.log.forget(frame.id);
      if (frame.content) this.log.notice(frame.content);
    }
    this.sync();
  }

  refused(frame) {
    if (frame.thread) this.sync(); // a turn that came to nothing; the log says so
    else if (!this.log.refuse(frame.id, frame.content)) toast(frame.content, "bad");
  }

  adopt(thread) {
    this.thread = thread;
    this.menu.hidden = false;
    history.replaceState(null, "", `#/c/${thread}`);
    this.house.changed();
  }

  send() {
    const text = this.field.value.trim();
    if ((!text && !this.files.length) || this.field.disabled) return;
    this.speak(text, this.files.map((each) => each.kept).filter(Boolean));
    if (this.title.textContent === "New conversation") this.title.textContent = text.slice(0, 80);
    this.files = [];
    this.field.value = "";
    this.sized();
    this.listFiles();
    this.follow(true);
  }

  speak(text, files = []) {
    const id = newId();
    this.empty.hidden = true;
    this.log.expect(id, text, files);
    this.house.socket.say({ type: "message", id, session: this.session, content: text, ...(files.length ? { files } : {}) });
  }

  stop() { this.house.socket.put({ type: "stop", session: this.session }); }

  typed(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); this.send(); }
    else if (event.key === "Escape" && this.log.running) { event.preventDefault(); this.stop(); }
    else if (event.key === "ArrowUp" && !this.field.value && this.log.lastUser && !this.log.running) {
      event.preventDefault();
      this.edit(this.log.lastUser.querySelector(".plain")?.textContent ?? "");
    }
  }

  write(text) {
    this.field.value = text;
    this.sized();
    this.field.focus();
  }

  sized() {
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight, innerHeight * 0.4)}px`;
  }

  pasted(event) {
    if (event.clipboardData.files.length) { event.preventDefault(); this.attach(event.clipboardData.files); }
  }

  async attach(files) {
    for (const file of [...files]) { // the list itself changes when the picker is emptied
      const each = { name: file.name };
      this.files.push(each);
      this.listFiles();
      try { each.kept = await upload(file); } catch (error) {
        this.files = this.files.filter((other) => other !== each);
        toast(`${file.name}: ${error.message}`, "bad");
      }
      this.listFiles();
    }
  }

  listFiles() {
    this.attached.hidden = !this.files.length;
    this.sendButton.disabled = this.files.some((each) => !each.kept);
    this.attached.replaceChildren(...this.files.map((each) => h(`span.chip${each.kept ? "" : ".busy"}`, {}, icon("clip"), each.name,
      iconButton("close", `Remove ${each.name}`, () => { this.files = this.files.filter((other) => other !== each); this.listFiles(); }))));
  }

  refresh() {
    const running = this.log.running;
    this.node.classList.toggle("running", running);
    this.stopButton.hidden = !running;
    if (this.current) this.field.placeholder = this.log.asking.size ? "Answer above, or go on" : running ? "Steer it while it works" : "Ask anything, or /help";
    this.menu.hidden = !this.thread || this.broken;
    this.node.lastChild.hidden = Boolean(this.broken); // nobody writes into what is not there
    this.showModel();
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
  }

  async act(what, body = {}) {
    if (!this.thread || this.acting) return;  // a second click means the first
    this.acting = true;
    try {
      const moved = await post(`/api/sessions/${this.thread}/${what}`, body);
      if (moved.reply) toast(moved.reply);
      this.house.changed();
      begun.set(moved.thread, moved.session);
      if (moved.thread !== this.thread) this.house.go(`#/c/${moved.thread}`);
    } catch (error) { toast(error.message, "bad"); } finally { this.acting = false; }
  }

  async edit(text) {
    const content = await ask({ title: "Say it differently", text: "Your last message and all that came of it are taken back; files stay as they are.", label: "Message", value: text, yes: "Ask again", area: true });
    if (content) await this.act("edit", { content });
  }

  async undo() {
    if (await ask({ title: "Take the last turn back?", text: "Your last message, its answer, and what it did to files are undone. The old conversation stays in the archive.", yes: "Take back" })) await this.act("undo");
  }

  async fork(at) { await this.act("fork", { at, session: `page:${newId().slice(0, 8)}` }); }

  async rename() {
    const title = await ask({ title: "Rename", label: "Title", value: this.title.textContent, yes: "Rename" });
    if (title) await this.change({ title: title.slice(0, 200) }, () => { this.title.textContent = title; });
  }

  async archive() {
    await this.change({ archived: true }, () => { toast("Archived. A search still finds it."); this.house.go("#/"); });
  }

  async change(body, then) {
    try {
      await patch(`/api/sessions/${this.thread}`, body);
      then();
      this.house.changed();
    } catch (error) { toast(error.message, "bad"); }
  }

  close() { this.growing.disconnect(); }
}
