// The log of all processes, as it is written: how serious at least, and which words.

import { events } from "./server-events.js";
import { h } from "./dom.js";
import { told } from "./say-doctor.js";

const LEVELS = ["debug", "info", "warning", "error", "critical"];
const MOST = 1000; // lines that are kept here
const AGAIN = 3000; // milliseconds until the next try

export class LiveLog {
  constructor() {
    this.lines = [];
    this.ending = new AbortController();
    this.level = h("select", { "aria-label": told.level, onchange: () => this.draw() }, LEVELS.map((each) => h("option", { value: each }, told.levels[each])));
    this.level.value = "info";
    this.words = h("input", { type: "search", "aria-label": told.filter, placeholder: told.filter, maxlength: 200, oninput: () => this.draw() });
    this.state = h("span.hint", { role: "status" });
    this.list = h("ol.loglines", { tabindex: "0", "aria-label": told.log });
    this.node = h("section.live-log", { "aria-label": told.log },
      h("h2", {}, told.log), h("div.row.picks", {}, this.level, this.words, this.state), this.list);
    this.follow();
  }

  async follow() {
    while (!this.ending.signal.aborted) {
      try {
        this.state.textContent = told.connecting;
        let first = true;
        for await (const lines of events("/api/log?last=500", this.ending.signal)) {
          if (lines.error) throw new Error(lines.error);
          this.state.textContent = told.live;
          if (first) this.lines = [];
          this.take(lines, first);
          first = false;
        }
      } catch (error) {
        this.state.textContent = error.message;
      }
      await new Promise((resolve) => { setTimeout(resolve, AGAIN); });
    }
  }

  take(lines, anew) {
    this.lines = [...this.lines, ...lines].slice(-MOST);
    if (anew) this.draw();
    else this.add(lines.filter((each) => this.fits(each)));
  }

  draw() {
    this.list.replaceChildren();
    this.add(this.lines.filter((each) => this.fits(each)));
    if (!this.list.children.length) this.list.append(h("li.none", {}, this.lines.length ? told.noneFits : told.noneYet));
  }

  /** Whoever reads further up stays where they are. */
  add(lines) {
    if (!lines.length) return;
    const below = this.list.scrollTop + this.list.clientHeight >= this.list.scrollHeight - 30;
    this.list.querySelector(".none")?.remove();
    this.list.append(...lines.map(shown));
    while (this.list.children.length > MOST) this.list.firstChild.remove();
    if (below) this.list.scrollTop = this.list.scrollHeight;
  }

  fits(line) {
    const wanted = this.words.value.trim().toLowerCase();
    const all = [line.message, line.logger, line.session, line.error, line.detail].join(" ").toLowerCase();
    return LEVELS.indexOf(line.level) >= LEVELS.indexOf(this.level.value) && all.includes(wanted);
  }

  close() { this.ending.abort(); }
}

function shown(line) {
  const at = line.time ? h("time", { datetime: line.time }, new Date(line.time).toLocaleTimeString()) : null;
  const head = [at, h("b", {}, told.levels[line.level] ?? line.level), h("span.text", {}, `${line.logger.replace("everloop.", "")}: ${line.message}`)];
  if (!line.detail) return h("li", { "data-level": line.level }, head);
  return h("li", { "data-level": line.level }, head, h("details", {}, h("summary", {}, told.detail), h("pre", {}, line.detail)));
}
