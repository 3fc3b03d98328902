// Speaking in place of writing, and answers that are read aloud: loaded where somebody has switched it on.

import { h, icon, iconButton, styled, toast } from "./dom.js";
import { told } from "./say-speech.js";
import { reader } from "./reading-aloud.js";
import { recorder } from "./recording.js";

const HELD = 400; // milliseconds: who presses longer holds it, and is done when they let go
const MICROPHONE = "M12 4a3 3 0 0 0-3 3v4a3 3 0 0 0 6 0V7a3 3 0 0 0-3-3zM6 11a6 6 0 0 0 12 0M12 17v3";
const ALOUD = "M5 10v4h3l4 4V6l-4 4zM15 9a4 4 0 0 1 0 6M17.500 6.500a8 8 0 0 1 0 11";

export class Speech {
  /** `chosen` is {talk, atOnce, aloud, always, by}, as speech-choice.js keeps it. */
  constructor(chat, chosen) {
    this.chat = chat;
    this.chosen = chosen;
    this.reader = reader(chosen.by, (of) => this.mark(of), () => chat.thread);
    this.escape = (event) => { if (event.key === "Escape") this.escaped(event); };
    document.addEventListener("keydown", this.escape, true); // before the field, where it would stop the turn
    if (chosen.talk) this.offerTalking();
    if (chosen.aloud) this.offerReading();
    Promise.resolve(chat.ready).then(() => { this.live = true; }); // what is read from the log is not news
  }

  offerTalking() {
    styled("speech.css");
    this.button = h("button.round.ghost.talk", {
      type: "button", "aria-label": told.speak, title: told.speak, "aria-pressed": "false",
      onpointerdown: (event) => this.pressed(event), onpointerup: () => this.released(), onpointercancel: () => this.released(),
      onclick: (event) => { if (!event.detail) this.turn(); }, // of a keyboard
    }, icon(MICROPHONE));
    this.level = h("span.level", { "aria-hidden": "true" });
    this.time = h("span.time");
    this.state = h("span", { role: "status" });
    this.away = iconButton("close", told.throwAway, () => { if (this.recording) this.throwAway(); });
    this.strip = h("div.row.recording", { hidden: true }, this.level, this.time, this.state, this.away);
    const { composer } = this.chat;
    composer.stopButton.before(this.button);
    composer.attached.before(this.strip);
  }

  pressed(event) {
    if (event.button) return;
    event.preventDefault(); // the field keeps what is selected
    this.since = Date.now();
    this.begins = !this.recording;
    this.turn();
  }

  released() {
    if (this.begins && Date.now() - this.since > HELD) this.finish();
    this.begins = false;
  }

  turn() { if (this.recording) this.finish(); else this.begin(); }

  async begin() {
    if (this.busy) return;
    this.reader.stop();
    this.busy = true;
    this.over = false; // who let go of it before the microphone was refused meant that time
    const recording = recorder(this.chosen.talk, { level: (part) => this.level.style.setProperty("--level", part), ended: () => this.finish() });
    this.recording = recording;
    try { await recording.begin(); } catch (error) {
      this.show(null);
      this.recording = null;
      toast(error.message, "bad");
    } finally { this.busy = false; }
    if (this.recording !== recording) { recording.cancel(); return; }
    if (this.over) { this.over = false; this.finish(); return; } // let go of before the microphone was there
    this.show(told.recording, Date.now());
  }

  async finish() {
    if (this.busy) { this.over = true; return; }
    const { recording, chat, chosen } = this;
    if (!recording) return;
    const { session } = chat;
    this.busy = true;
    this.recording = null;
    this.show(told.writing);
    try {
      const text = (await recording.finish()).trim();
      if (!text) toast(told.silent);
      else if (chat.session === session && !chat.closed) this.put(text, chosen.atOnce);
    } catch (error) { toast(error.message, "bad"); } finally { this.busy = this.over = false; this.show(null); }
  }

  put(text, atOnce) {
    const { composer } = this.chat;
    const before = composer.field.value.trimEnd();
    composer.write(before ? `${before} ${text}` : text);
    if (atOnce) composer.send();
  }

  cancel() {
    this.recording.cancel();
    this.recording = null;
    this.over = false;
    this.show(null);
  }

  /** What is going on; null: nothing. */
  show(state, since = 0) {
    clearInterval(this.ticking);
    if (!this.button) return;
    this.strip.hidden = state === null;
    this.state.textContent = state ?? "";
    this.time.textContent = "";
    this.away.hidden = !since;
    this.button.setAttribute("aria-pressed", String(Boolean(since)));
    this.button.classList.toggle("on", Boolean(since));
    this.button.setAttribute("aria-label", since ? told.finish : told.speak);
    if (!since) return;
    const tick = () => { const seconds = Math.floor((Date.now() - since) / 1000); this.time.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`; };
    tick();
    this.ticking = setInterval(tick, 500);
  }

  escaped(event) {
    if (!this.recording && !this.reader.reading) return;
    event.preventDefault();
    event.stopPropagation();
    if (this.recording) this.throwAway(); else this.reader.stop();
  }

  throwAway() {
    this.cancel();
    toast(told.thrown);
  }

  /** A button on each answer, those that come later too. */
  offerReading() {
    this.watching = new MutationObserver(() => this.offerButtons());
    this.watching.observe(this.chat.transcript.node, { childList: true, subtree: true });
    this.offerButtons();
  }

  offerButtons() {
    for (const acts of this.chat.transcript.node.querySelectorAll(".said.final > .acts:not(:has(.aloud))")) acts.prepend(this.readButton(acts.parentNode));
  }

  readButton(answer) {
    return iconButton(ALOUD, told.read, () => { if (this.reader.reading === answer) this.reader.stop(); else this.reader.read(answer); }, { class: "ghost aloud", "aria-pressed": "false" });
  }

  /** The answer that is being read has another button. */
  mark(answer) {
    for (const button of this.chat.transcript.node.querySelectorAll(".aloud")) {
      const on = answer !== null && answer.contains(button);
      button.setAttribute("aria-pressed", String(on));
      button.setAttribute("aria-label", on ? told.stopReading : told.read);
      button.title = on ? told.stopReading : told.read;
    }
  }

  /** Entries have come just now. */
  came(entries) {
    if (!this.live || !this.chosen.always || this.recording || !entries.some((entry) => entry.kind === "model_said")) return;
    const answer = this.chat.transcript.node.querySelector(".said.final.last");
    if (answer && entries.some((entry) => entry.seq === Number(answer.dataset.seq))) { this.offerButtons(); this.reader.read(answer); }
  }

  close() {
    if (this.recording) this.cancel();
    clearInterval(this.ticking);
    this.reader.stop();
    this.watching?.disconnect();
    document.removeEventListener("keydown", this.escape, true);
    this.button?.remove();
    this.strip?.remove();
    for (const each of this.chat.transcript.node.querySelectorAll(".aloud")) each.remove();
  }
}
