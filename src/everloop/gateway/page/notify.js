// What is new for a person: what they have not read yet, and a word from the browser when they look elsewhere.

import { toast } from "./dom.js";
import { say } from "./say.js";

const LONG = 20; // seconds: whoever waits longer has looked away
const MOST = 500; // conversations whose state is remembered

/** How far each conversation was read in this browser. */
export class Seen {
  constructor() {
    const { since = Date.now() / 1000, heads = [] } = read("seen") ?? {};
    this.since = since; // what is older than the first visit was read elsewhere
    this.heads = new Map(heads);
  }

  at(id, head) {
    if ((this.heads.get(id) ?? 0) >= head) return;
    this.heads.delete(id);
    this.heads.set(id, head); // the latest stands last
    write("seen", { since: this.since, heads: [...this.heads].slice(-MOST) });
  }

  unread({ id, head, active }) { return this.heads.has(id) ? head > this.heads.get(id) : active > this.since; }
}

/** Words of the browser itself, for whoever wants them: questions, and turns that took long. */
export class Notices {
  constructor(go) {
    this.go = go;
    this.asked = null; // the questions that were there at the last look
    this.ran = new Map(); // what was running, and since when
  }

  async toggle() {
    if (!("Notification" in window)) { toast(say.noNotifications, "bad"); return; }
    const on = read("notify") !== true;
    const allowed = !on || await Notification.requestPermission() === "granted";
    write("notify", on && allowed);
    toast(!allowed ? say.notificationsDenied : on ? say.notificationsOn : say.notificationsOff, allowed ? "note" : "bad");
  }

  /** Told after each look at the list. */
  look(sessions, approvals) {
    const fresh = this.asked ? approvals.filter((each) => !this.asked.has(each.id)) : [];
    this.asked = new Set(approvals.map((each) => each.id));
    for (const each of fresh) this.show(say.mayIRun(each.tool), each.text, "#/waiting");
    for (const each of sessions) this.ended(each);
  }

  ended({ id, state, title }) {
    const began = this.ran.get(id);
    if (state === "running") { if (!began) this.ran.set(id, Date.now()); return; }
    this.ran.delete(id);
    if (began && state !== "waiting" && Date.now() - began > LONG * 1000) this.show(say.finished, title, `#/c/${id}`);
  }

  show(title, body, hash) {
    if (!document.hidden || read("notify") !== true || Notification.permission !== "granted") return;
    const shown = new Notification(title, { body: body.slice(0, 200), icon: "/page/icon.svg", tag: hash + title });
    shown.onclick = () => { window.focus(); this.go(hash); shown.close(); };
  }
}

function read(key) {
  try { return JSON.parse(localStorage.getItem(key)); } catch { return null; }
}

function write(key, value) {
  try { localStorage.setItem(key, JSON.stringify(value)); } catch { /* then it is new at the next visit, too */ }
}
