// How a turn spent its time: one bar for each thing it waited for, under a common clock.

import { get } from "./api.js";
import { h } from "./dom.js";
import { count, dollars, lasted, moment } from "./words.js";

const KINDS = { queue: "Queue", model: "Model", tool: "Tool", approval: "Approval", summary: "Summary", delivery: "Delivery" };
const ENDINGS = { answered: "answered", failed: "gave up", stopped: "stopped", open: "not over" };

export class TraceView {
  constructor(house, thread) {
    this.body = h("div.column.wide", { "aria-busy": "true" });
    this.node = h("section.page", { "aria-label": "Trace" },
      h("header.bar", {}, house.menuButton(), h("h1.title", {}, "Where the time went"),
        h("a.button.small", { href: `#/c/${thread}` }, "To the conversation")),
      h("div.scroller", { tabindex: "0" }, this.body));
    this.load(thread);
  }

  async load(thread) {
    try {
      const [{ turns }, { session }] = await Promise.all([get(`/api/sessions/${thread}/trace`), get(`/api/sessions/${thread}`)]);
      const legend = h("div.row.legend", {}, Object.entries(KINDS).map(([kind, name]) => h("span", {}, h(`i.k-${kind}`), name)));
      this.body.replaceChildren(h("p.lead", {}, session.title), legend,
        ...(turns.length ? turns.toReversed().map(turnNode) : [h("p.hint", {}, "Nothing has happened here yet. Say something first.")]));
    } catch (error) {
      this.body.replaceChildren(h("p.hint", {}, error.message));
    }
    this.body.removeAttribute("aria-busy");
  }

  frame() {}
  reconnected() {}
}

function turnNode(turn) {
  const end = Math.max(turn.end ?? turn.start, ...turn.spans.map((span) => span.end ?? span.start));
  const whole = Math.max(end - turn.start, 0.001);
  const facts = [ENDINGS[turn.ending], lasted((turn.end ?? end) - turn.start), turn.input ? `${count(turn.input)} in, ${count(turn.output)} out` : "", dollars(turn.cost)];
  return h("article.turn", {},
    h("h2", {}, turn.said), h("p.facts", { title: moment(turn.start) }, facts.filter(Boolean).join(" · ")),
    h("ol.waterfall", { "aria-label": "Steps in order" }, turn.spans.map((span) => bar(span, turn.start, end, whole))),
    h("p.named", { title: "Under this id a collector knows the turn, if one is configured" }, `Trace ${turn.trace}`));
}

function bar(span, start, end, whole) {
  const until = span.end ?? end;
  const left = ((span.start - start) / whole) * 100;
  const width = Math.max(0.4, ((until - span.start) / whole) * 100);
  const detail = [span.outcome, span.input ? `${count(span.input)} in, ${count(span.output)} out` : "", dollars(span.cost)].filter(Boolean).join(" · ");
  return h("li", {},
    h("span.what", {}, h(`i.k-${span.kind}`), `${span.name || KINDS[span.kind]}`),
    h("span.track", { title: `${KINDS[span.kind]}: ${detail}` },
      h(`span.bar.k-${span.kind}`, { style: { left: `${Math.min(left, 99.6)}%`, width: `${Math.min(width, 100 - Math.min(left, 99.6))}%` } })),
    h("span.took", {}, span.end === null ? "…" : lasted(until - span.start)),
    h("span.detail", {}, KINDS[span.kind] + (detail ? ` · ${detail}` : "")));
}
