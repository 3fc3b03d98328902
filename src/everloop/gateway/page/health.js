// What runs for as long as the gateway does, as it stands.

import { get } from "./api.js";
import { h } from "./dom.js";
import { told } from "./say-manage.js";
import { clock } from "./words.js";

const EVERY = 5000; // milliseconds

export const isWell = (tasks) => tasks.every((task) => !task.error && task.state !== "failed");

export class HealthPage {
  constructor() {
    this.node = h("div.tab", { "aria-live": "polite" });
    this.timer = setInterval(() => this.load(), EVERY);
    this.load();
  }

  async load() {
    try {
      const { tasks } = await get("/api/tasks");
      const seen = JSON.stringify(tasks);
      if (seen !== this.seen) this.node.replaceChildren(h("p.callout", { class: isWell(tasks) ? "callout" : "callout bad" }, isWell(tasks) ? told.runsWell : told.runsBadly), running(tasks));
      this.seen = seen;
    } catch (error) {
      this.seen = null;
      this.node.replaceChildren(h("p.hint", {}, error.message));
    }
  }

  close() { clearInterval(this.timer); }
  reconnected() { this.load(); }
}

function running(tasks) {
  return h("div.scroll.running", { tabindex: "0" }, h("table.numbers", {},
    h("thead", {}, h("tr", {}, told.taskColumns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, tasks.map((task) => h("tr", {}, h("th", { scope: "row" }, task.name),
      h("td", {}, told.taskStates[task.state]), h("td", {}, clock(task.since)), h("td", {}, String(task.restarts)), h("td.why", {}, task.error))))));
}
