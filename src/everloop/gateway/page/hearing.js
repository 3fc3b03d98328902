// What a conversation hears of the gateway. Its log is read through the API, on until nothing is missing; frames say that it
// has grown, and carry drafts of what is not in it yet.

import { begun } from "./deeds.js";
import { toast } from "./dom.js";
import { say } from "./say.js";

const MOVES = new Set(["ack", "stream_start", "stream_chunk"]); // frames that tell that a session goes on in another thread

export class Hearing {
  /** `chat` is the conversation: {thread, session, current, log, transcript, sent, held, house}, and what it does with news. */
  constructor(chat) {
    this.chat = chat;
  }

  frame(frame) {
    const { chat } = this;
    if (frame.session !== chat.session) return;
    if (frame.event === "turn_moved" && chat.current) { this.moved(frame.data); return; }
    if (frame.thread && frame.thread !== chat.thread && chat.current) {
      if (!chat.thread || (!chat.transcript.entries.length && !begun.has(chat.thread))) chat.adopt(frame.thread);
      else if (MOVES.has(frame.type)) { chat.leaveFor(frame.thread); return; }
      else return;
    }
    if (frame.thread !== chat.thread && frame.thread) return;
    this.take(frame);
    if ((frame.seq ?? 0) > chat.log.seq) this.sync();
    chat.refresh();
    chat.transcript.follow();
  }

  take(frame) {
    const { log, sent, held, house, session } = this.chat;
    if (held.node.firstChild && ["stream_start", "response", "error"].includes(frame.type)) held.load(session);
    switch (frame.type) {
      case "stream_start": return log.streamStart(frame.msg);
      case "stream_chunk": return log.streamChunk(frame);
      case "stream_end": log.streamEnd(frame); return this.sync();
      case "response": sent.answered(frame); return this.sync();
      case "error": return frame.thread ? this.sync() : this.chat.refused(frame);
      case "event": return this.event(frame);
      case "news": if (frame.event === "titled") this.chat.named().catch(() => {}); return; // else at the next look
      case "approval":
        if (frame.kind !== "call") { held.load(session); house.changed(); }
        return this.sync();
    }
  }

  event({ event, data = {} }) {
    if (event === "metrics") this.chat.full = data.full;
    if (event === "tool_output") this.chat.log.output(data.call ?? "", data.text ?? "", data.asks ?? false);
    else if (event === "compacting") toast(say.compacting);
    else if (event === "warning") import("./ways.js").then(({ warn }) => warn(this.chat, data));
    else this.sync();
  }

  /** A turn has gone to the background, or is back from there, and so the session is at another conversation. */
  moved({ number, front }) {
    const { chat } = this;
    if (number) import("./background.js").then(({ tell }) => tell(number));
    if (front !== chat.thread) chat.leaveFor(front); else this.sync();
  }

  resume() {
    const { thread, session, log, house } = this.chat;
    if (thread) house.socket.put({ type: "resume", session, thread, after: log.seq });
  }

  /** Several calls at once are one, and one more after it. */
  async sync() {
    if (!this.chat.thread) return;
    if (this.reading) { this.again = true; return; }
    this.reading = true;
    try {
      do {
        this.again = false;
        const { entries, head } = await this.chat.fetch({ after: this.chat.log.seq, limit: 500 });
        this.chat.append(entries);
        if (entries.length && entries.at(-1).seq < head) this.again = true;
      } while (this.again);
    } catch (error) {
      if (error.status === 404 && !this.chat.transcript.entries.length) this.expectFirst();
      else if (error.status) toast(error.message, "bad");
    }
    this.reading = false;
  }

  /** Nothing is committed yet. A command may have no entry at all, so only what was said is waited for. */
  expectFirst() {
    this.patience = Math.min((this.patience ?? 150) * 2, 5_000);
    if (!this.chat.closed && (this.chat.sent.expects || begun.has(this.chat.thread))) setTimeout(() => this.sync(), this.patience);
  }
}
