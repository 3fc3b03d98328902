// A word from the browser when a person looks elsewhere. It is loaded when there is something to look at.

import { toast } from "./dom.js";
import { say } from "./say.js";
import { read, write } from "./seen.js";

const LONG = 20; // seconds: whoever waits longer has looked away

/** Words of the browser itself, for whoever wants them: questions, and turns that took long. */
export class Notices {
  constructor(go) {
    this.go = go;
    this.asked = null; // the questions that were there at the last look
    this.ran = new Map(); // what was running, and since when
  }

  async toggle() {
    const can = "Notification" in window;
    const on = read("notify") !== true;
    const allowed = can && (!on || await Notification.requestPermission() === "granted");
    if (can) write("notify", on && allowed);
    const { told } = await import("./say-manage.js");
    toast(!can ? told.noNotifications : !allowed ? told.notificationsDenied : on ? told.notificationsOn : told.notificationsOff, allowed ? "note" : "bad");
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
