// The WebSocket, kept open. What was sent and not acknowledged is sent again after a break, under the same id: the
// gateway takes the same id twice as one message, so nothing is lost and nothing is said twice.

const FIRST = 400; // ms
const LAST = 10_000;

export class Socket {
  constructor({ onframe, onstate, onlost }) {
    this.onframe = onframe;
    this.onstate = onstate;
    this.onlost = onlost;
    this.unacknowledged = new Map();
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
      if (frame.type === "ack" || (frame.type === "error" && frame.id)) this.unacknowledged.delete(frame.id);
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

  say(frame) {
    this.unacknowledged.set(frame.id, frame);
    this.put(frame);
  }

  put(frame) {
    if (this.wire.readyState === WebSocket.OPEN) this.wire.send(JSON.stringify(frame));
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
