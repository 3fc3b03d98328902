// What goes from a conversation to the gateway: messages, which stand below the log until it has them, and commands.

import { draftOf, readWaiting } from "./drafts.js";
import { toast } from "./dom.js";
import { newId } from "./socket.js";

export class Sent {
  /** `session()` is where it is said. */
  constructor(socket, session, transcript) {
    this.socket = socket;
    this.session = session;
    this.transcript = transcript;
    this.answers = new Map(); // commands that the page itself has given, and who waits for what they say
  }

  get log() { return this.transcript.log; }

  put(id, content, files = [], model = "") {
    this.socket.say({ type: "message", id, session: this.session(), content, ...(files.length ? { files } : {}), ...(model ? { model } : {}) });
  }

  /** `model` is who is to answer in a conversation that begins with this. */
  speak(text, files = [], model = "") {
    const id = newId();
    this.transcript.empty.hidden = true;
    this.log.expect(id, text, files, !this.socket.open);
    this.put(id, text, files, model);
  }

  /** Give a command for the person; resolves to what it says. */
  command(text) {
    return new Promise((resolve) => {
      const id = newId();
      this.answers.set(id, resolve);
      this.put(id, text);
    });
  }

  /** What was sent from here and not taken yet, which the socket does, or is to be heard by the turn that runs. */
  show() {
    const here = this.session();
    const taken = this.log.open ? readWaiting(here).filter(({ content, after }) => !content.startsWith("/") && after >= this.transcript.entries[0].seq - 1) : [];
    for (const { id, session = here, content, files = [], after } of [...this.socket.unacknowledged.values(), ...taken]) {
      if (session !== here || this.log.pending.has(id) || this.heardOf(content, after)) continue;
      this.transcript.empty.hidden = true;
      this.log.expect(id, content, files, !this.socket.open);
    }
  }

  /** Whether the log has it already, and only the word for that is on its way. */
  heardOf(text, after = this.log.seq - 10) {
    return this.transcript.entries.some((each) => each.seq > after && each.kind === "user_said" && each.parts.some((part) => part.text === text));
  }

  /** Whether something was said that will have an entry; a command may have none. */
  get expects() { return [...this.log.pending.values()].some(({ text }) => !text.startsWith("/")); }

  answered({ id, content }) {
    const command = this.log.pending.get(id)?.text.startsWith("/");
    if (command && content) this.log.notice(content); // it has no entry of its own
    this.log.forget(id);
    this.answers.get(id)?.(content);
    this.answers.delete(id);
  }

  /** A message that was not taken is a draft again, with the reason. */
  refused({ id, content }) {
    this.log.forget(id);
    if (!draftOf(this.session()).why) toast(content, "bad");
  }
}
