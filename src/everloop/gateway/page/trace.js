// How a turn spent its time: one bar for each thing it waited for, under a common clock.

import { get } from "./api.js";
import { h } from "./dom.js";
import { told } from "./say-manage.js";
import { count, dollars, lasted, moment } from "./words.js";


export class TraceView {
  constructor(house, thread) {
    this.body = h("div.column.wide", { "aria-busy": "true" });
    this.node = h("section.page", { "aria-label": told.trace },
      h("header.bar", {}, house.menuButton(), h("h1.title", {}, told.whereTime),
        h("a.button.small", { href: `#/c/${thread}` }, told.toConversation)),
      h("div.scroller", { tabindex: "0" }, this.body));
    this.load(thread);
  }

  async load(thread) {
    try {
      const [{ turns }, { session }, persona] = await Promise.all([get(`/api/sessions/${thread}/trace`), get(`/api/sessions/${thread}`), get(`/api/sessions/${thread}/persona`)]);
      const legend = h("div.row.legend", {}, Object.entries(told.spans).map(([kind, name]) => h("span", {}, h(`i.k-${kind}`), name)));
      this.body.replaceChildren(h("p.lead", {}, session.title), ...(persona.name ? [h("p.hint", {}, told.personaHere(persona.name, persona.by))] : []), legend,
        ...(turns.length ? turns.toReversed().map(turnNode) : [h("p.hint", {}, told.nothingHappened)]));
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
  const facts = [told.endings[turn.ending], lasted((turn.end ?? end) - turn.start), turn.input ? told.inOut(count(turn.input), count(turn.output)) : "", dollars(turn.cost)];
  return h("article.turn", {},
    h("h2", {}, turn.said), h("p.facts", { title: moment(turn.start) }, facts.filter(Boolean).join(" · ")),
    h("ol.waterfall", { "aria-label": told.steps }, turn.spans.map((span) => bar(span, turn.start, end, whole))),
    h("p.named", { title: told.traceHint }, told.traceId(turn.trace)));
}

function bar(span, start, end, whole) {
  const until = span.end ?? end;
  const left = ((span.start - start) / whole) * 100;
  const width = Math.max(0.4, ((until - span.start) / whole) * 100);
  const detail = [span.outcome, span.input ? told.inOut(count(span.input), count(span.output)) : "", dollars(span.cost)].filter(Boolean).join(" · ");
  return h("li", {},
    h("span.what", {}, h(`i.k-${span.kind}`), `${span.name || told.spans[span.kind]}`),
    h("span.track", { title: `${told.spans[span.kind]}: ${detail}` },
      h(`span.bar.k-${span.kind}`, { style: { left: `${Math.min(left, 99.6)}%`, width: `${Math.min(width, 100 - Math.min(left, 99.6))}%` } })),
    h("span.took", {}, span.end === null ? "…" : lasted(until - span.start)),
    h("span.detail", {}, told.spans[span.kind] + (detail ? ` · ${detail}` : "")));
}
