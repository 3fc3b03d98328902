// The WebSocket, kept open. What was sent and not acknowledged is sent again after a break, under the same id: the
// gateway takes it as one message: nothing is lost, nothing said twice.

import { keepUnsent, readUnsent } from "./drafts.js";

const FIRST = 400; // ms
const LAST = 10_000;

export class Socket {
  /** `onrefused(message, why)` is told of what was sent and not taken. */
  constructor({ onframe, onstate, onlost, onrefused }) {
    this.onframe = onframe;
    this.onstate = onstate;
    this.onlost = onlost;
    this.onrefused = onrefused;
    this.unacknowledged = new Map(readUnsent().map((frame) => [frame.id, frame])); // also what was said before a reload
    this.waits = FIRST;
    this.closed = false;
    this.online = () => this.connect();
    window.addEventListener("online", this.online);
    this.connect();
  }

  connect() {
    if (this.closed || (this.wire && this.wire.readyState <= WebSocket.OPEN)) return;
    clearTimeout(this.timer);
    const wire = new WebSocket(`${location.origin.replace(/^http/, "ws")}/ws`);
    this.wire = wire;
    wire.onopen = () => {
      this.waits = FIRST;
      this.onstate("open"); // whoever listens resumes first, so that what follows the resend is heard
      for (const frame of this.unacknowledged.values()) this.put(frame);
    };
    wire.onmessage = (event) => {
      const frame = JSON.parse(event.data);
      this.settle(frame);
      this.onframe(frame);
    };
    wire.onclose = () => this.again(wire);
  }

  again(wire) {
    if (this.closed || wire !== this.wire) return;
    this.onstate("broken");
    this.timer = setTimeout(() => { this.onlost(); this.connect(); }, this.waits * (0.7 + Math.random() * 0.6));
    this.waits = Math.min(LAST, this.waits * 1.7);
  }

  get open() { return this.wire?.readyState === WebSocket.OPEN; }

  say(frame) {
    this.unacknowledged.set(frame.id, frame);
    keepUnsent([...this.unacknowledged.values()]);
    this.put(frame);
  }

  /** A message was taken, or refused: then no thread is named. */
  settle({ type, id, thread, content }) {
    const message = this.unacknowledged.get(id);
    if (!message || !["ack", "error"].includes(type)) return;
    this.unacknowledged.delete(id);
    keepUnsent([...this.unacknowledged.values()]);
    if (type === "error" && !thread) this.onrefused(message, content);
  }

  put(frame) {
    if (this.open) this.wire.send(JSON.stringify(frame));
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    window.removeEventListener("online", this.online);
    this.wire.close();
  }
}

export function newId() {
  return [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
