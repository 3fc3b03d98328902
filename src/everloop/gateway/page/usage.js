// What was used: a column for each day, and a table of the same numbers.

import { get } from "./api.js";
import { h, s } from "./dom.js";
import { told } from "./say-manage.js";
import { count, dollars } from "./words.js";

const HEIGHT = 220;
const FOOT = 24;
const SIDE = 44;
const SHADES = 5;
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });

export class UsagePage {
  constructor(role) {
    this.days = 30;
    this.by = "tokens";
    this.group = "model";
    this.who = ""; // whose, where one may see everybody's
    const sees = role === "admin" || role === "owner";
    this.body = h("div.tab");
    const choose = (label, options, pick) => h("div.segments", { role: "group", "aria-label": label }, options.map(([value, name], i) =>
      h("button", { type: "button", "aria-pressed": String(i === (label === told.days ? 1 : 0)), onclick: (event) => {
        for (const each of event.currentTarget.parentNode.children) each.setAttribute("aria-pressed", String(each === event.currentTarget));
        pick(value);
      } }, name)));
    this.node = h("div.tab", {},
      h("div.row.spread", {},
        h("label.row", {}, told.usedBy, h("select.pick", { onchange: (event) => { this.group = event.currentTarget.value; this.load(); } },
          Object.entries(told.usedBys).filter(([group]) => sees || group !== "person").map(([group, name]) => h("option", { value: group }, name)))),
        choose(told.show, Object.entries(told.kindsOfUsage), (by) => { this.by = by; this.draw(); }),
        choose(told.days, [7, 30, 90].map((days) => [days, told.lastDays(days)]), (days) => { this.days = days; this.load(); })),
      this.body);
    this.load();
  }

  async load() {
    try {
      this.answer = await get("/api/usage", { days: this.days, offset: -new Date().getTimezoneOffset() * 60, by: this.group, who: this.who });
      for (const row of this.answer.rows) {
        row.model = row.purpose ? told.usedFor(row.name, row.purpose) : row.label && row.label !== row.name ? `${row.label} (${row.name})` : row.name || told.nameless[this.group];
      }
      this.draw();
    } catch (error) {
      this.body.replaceChildren(h("p.hint", {}, error.message));
    }
  }

  draw() {
    const { rows, since, days } = this.answer;
    const whose = this.who ? [h("div.row", {}, h("b.named", { dir: "auto" }, this.whoName), h("button.small.ghost", { type: "button", onclick: () => this.only("", "") }, told.ofAll))] : [];
    if (!rows.length) {
      const [title, hint] = this.who || this.group === "tool" || this.group === "job" ? [told.noneOfThis, told.noneOfThisHint] : [told.nothingUsed, told.nothingUsedHint];
      this.body.replaceChildren(...whose, h("div.empty", {}, h("h2", {}, title), h("p", {}, hint)));
      return;
    }
    const models = [...new Set(rows.map((row) => row.model))].sort((a, b) => sum(rows, b, this.by) - sum(rows, a, this.by));
    const width = Math.max(300, Math.min(860, this.node.clientWidth || 720)); // drawn at its size, so that its letters are legible
    const pick = this.group === "person" ? (shown) => { const { name, label } = rows.find((row) => row.model === shown); this.only(name, label || name); } : null;
    this.body.replaceChildren(...whose, this.group === "tool" ? h("p.hint", {}, told.byTool) : totals(rows), chart(rows, models, since, days, this.by, width),
      h("div.row.legend", {}, models.map((model, i) => h("span", {}, h(`i.m-${i % SHADES}`), model))), table(rows, models, told.usedBys[this.group], pick));
  }

  only(who, name) { this.who = who; this.whoName = name; this.load(); }
  reconnected() { this.load(); }
}

const worth = (row, by) => (by === "cost" ? row.cost : by === "calls" ? row.calls : row.input + row.output);
const written = (value, by) => (by === "cost" ? dollars(value) : count(Math.round(value)));
const sum = (rows, model, by) => rows.filter((row) => row.model === model).reduce((total, row) => total + worth(row, by), 0);

function totals(rows) {
  const all = (pick) => rows.reduce((total, row) => total + pick(row), 0);
  const input = all((row) => row.input);
  const unpriced = all((row) => row.unpriced);
  const tile = (name, value, more = "") => h("div.tile", {}, h("span", {}, name), h("b", {}, value), h("small", {}, more));
  return h("div.tiles", {},
    tile(told.cost, unpriced && !all((row) => row.cost) ? told.notKnown : dollars(all((row) => row.cost)), all((row) => row.own_calls) ? told.ownPaid(unpriced && !all((row) => row.own_cost) ? told.notKnown : dollars(all((row) => row.own_cost))) : unpriced ? told.unpriced(count(unpriced)) : told.priced),
    tile(told.calls, count(all((row) => row.calls)), told.toModels),
    tile(told.read, count(input), told.fromCache(input ? Math.round((all((row) => row.cache_read) / input) * 100) : 0)),
    tile(told.written, count(all((row) => row.output)), told.thought(count(all((row) => row.reasoning)))));
}

function chart(rows, models, since, days, by, width) {
  const dates = Array.from({ length: days }, (_, i) => new Date(Date.parse(since) + i * 864e5).toISOString().slice(0, 10));
  const heights = dates.map((date) => rows.filter((row) => row.day === date).reduce((total, row) => total + worth(row, by), 0));
  const top = nice(Math.max(...heights)) || 1;
  const step = (width - SIDE) / days;
  const y = (value) => (HEIGHT - FOOT) * (1 - value / top) + 8;
  const columns = dates.map((date, i) => {
    let base = 0;
    const parts = models.map((model, m) => {
      const value = rows.filter((row) => row.day === date && row.model === model).reduce((total, row) => total + worth(row, by), 0);
      const from = base;
      base += value;
      return value ? s(`rect.m-${m % SHADES}`, { x: SIDE + i * step + step * 0.14, width: step * 0.72, y: y(base), height: Math.max(1, y(from) - y(base)), rx: Math.min(2, step * 0.2) }) : null;
    });
    return s("g", {}, s("title", {}, `${day.format(new Date(date))}: ${written(heights[i], by)}`), s("rect.hover", { x: SIDE + i * step, y: 0, width: step, height: HEIGHT - FOOT + 8 }), parts);
  });
  const lines = [0, 0.5, 1].map((part) => s("g", {}, s("line", { x1: SIDE, x2: width, y1: y(top * part), y2: y(top * part) }),
    s("text", { x: SIDE - 8, y: y(top * part) + 4, "text-anchor": "end" }, written(top * part, by))));
  const every = Math.ceil(days / Math.floor(width / 90));
  const labels = dates.map((date, i) => (i % every === 0 ? s("text", { x: SIDE + i * step + step / 2, y: HEIGHT + 4, "text-anchor": i ? "middle" : "start" }, day.format(new Date(date))) : null));
  return s("svg.chart", { viewBox: `0 0 ${width} ${HEIGHT + 12}`, role: "img", "aria-label": told.byDay(told.kindsOfUsage[by]) }, lines, columns, labels);
}

function nice(value) {
  if (!(value > 0)) return 0;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= value);
}

const costs = (house, calls, own) => (calls ? `${dollars(house)} + ${told.ownPaid(dollars(own))}` : dollars(house));

function table(rows, models, title, pick) {
  const total = (model, pick) => rows.filter((row) => row.model === model).reduce((all, row) => all + pick(row), 0);
  return h("div.scroll", { tabindex: "0" }, h("table.numbers", {},
    h("thead", {}, h("tr", {}, [title, ...told.columns.slice(1)].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, models.map((model) => h("tr", {}, h("th", { scope: "row" }, pick ? h("button.small.ghost", { type: "button", "aria-label": told.ofOne(model), onclick: () => pick(model) }, model) : model),
      [count(total(model, (row) => row.calls)), count(total(model, (row) => row.input)), count(total(model, (row) => row.cache_read)),
        count(total(model, (row) => row.output)), total(model, (row) => row.unpriced) && !total(model, (row) => row.cost) ? told.notKnown : costs(total(model, (row) => row.cost), total(model, (row) => row.own_calls), total(model, (row) => row.own_cost))]
        .map((text) => h("td", {}, text)))))));
}
