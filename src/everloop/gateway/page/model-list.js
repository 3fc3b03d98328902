// The list of models: presets, those that were used last, and those of every connected host, which are asked side by
// side, so that one that is slow or silent holds up no other. A box to search in, and a listbox that it leads through.

import { get } from "./api.js";
import { h, styled, toast } from "./dom.js";
import { keepChosen } from "./drafts.js";
import { told } from "./say-manage.js";
import { say } from "./say.js";
import { count, rate } from "./words.js";

const MOST = 40; // of one host, until one searches
const KEPT = 5; // that were used last

/** Let someone choose who answers from now on; with `again`, the last question as well. */
export async function chooseModel({ choices, now, chat }, label, again) {
  await styled("model-list.css");
  const found = await new Promise((resolve) => new ModelList(choices, now, label, resolve));
  if (found && await letAnswer(chat, found) && again) await chat.deeds.act("regenerate");
}

/** Resolves to whether it does. Before anything was said, the choice waits for the first message and goes with it. */
async function letAnswer(chat, model) {
  if (chat.fresh) {
    chat.picker.pending = model.default ? null : model;
    keepChosen(chat.session, chat.picker.pending);
    chat.refresh();
    return true;
  }
  const before = chat.log.seq;
  const said = await chat.command(`/model ${model.default ? "default" : model.name}`);
  const done = said.includes("answers in this conversation"); // else it says why not
  if (!done) toast(said, "bad");
  for (let tries = 0; done && chat.log.seq === before && tries < 10; tries += 1) { // it is answered before it stands in the log
    await new Promise((resolve) => setTimeout(resolve, 100));
    await chat.hearing.sync();
  }
  return done;
}

class ModelList {
  constructor(choices, now, label, done) {
    this.now = now;
    this.groups = [[told.yourModels, choices], [told.lastUsed, lastUsed().filter((each) => !choices.some((known) => known.name === each.name))]]
      .map(([title, models]) => ({ title, models }));
    this.field = h("input", { type: "text", role: "combobox", "aria-label": told.searchModels, placeholder: told.searchModels, "aria-expanded": "true", "aria-controls": "model-list",
      "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false", oninput: () => this.draw(), onkeydown: (event) => this.typed(event) });
    this.list = h("div.options", { id: "model-list", role: "listbox", "aria-label": label, tabindex: "-1" });
    this.status = h("p.hint", { role: "status" });
    this.finish = (each) => { this.dialog.close(); this.dialog.remove(); if (each) remember(each); done(each); };
    this.dialog = h("dialog.model-list", { "aria-label": label, oncancel: () => this.finish(null), onclick: (event) => { if (event.target === this.dialog) this.finish(null); } },
      h("div.head", {}, this.field, h("button.small", { type: "button", onclick: () => this.finish(null) }, say.close)), this.list, this.status);
    document.body.append(this.dialog);
    this.draw();
    this.dialog.showModal();
    this.field.focus();
    this.ask(choices);
  }

  async ask(choices) {
    const { hosts } = await get("/api/hosts").catch(() => ({ hosts: [] }));
    const asked = hosts.map(async ({ name, configured }) => {
      const group = { title: name, named: true, models: [], state: configured ? told.asking : "" };
      this.groups.push(group);
      const { models, state, why } = await get(`/api/hosts/${encodeURIComponent(name)}/models`).catch((error) => ({ models: [], state: error.message }));
      for (const known of choices) Object.assign(known, { ...own(models.find((each) => each.name === known.model)), ...(known.window ? { window: known.window } : {}) });
      Object.assign(group, { models, state: configured && (state || !models.length) ? state || told.noModels : "", why });
      this.draw();
    });
    this.draw();
    await Promise.all(asked);
  }

  draw() {
    const words = this.field.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const fits = ({ name, model = "" }) => words.every((word) => `${name} ${model}`.toLowerCase().includes(word));
    const before = this.sought === this.field.value ? this.shown?.[this.at]?.name : null; // a host has answered meanwhile
    this.sought = this.field.value;
    this.shown = [];
    this.list.replaceChildren(...this.groups.map((group) => this.group(group, group.models.filter(fits), words.length > 0)).filter(Boolean), ...this.typedName());
    this.status.textContent = this.shown.length ? "" : told.noModelFits;
    const kept = this.shown.findIndex((each) => each.name === before);
    this.choose(Math.max(0, kept));
  }

  group({ title, named, state, why }, models, searching) {
    if (!models.length && (searching || !state)) return null;
    const more = searching ? models.length - MOST * 5 : models.length - MOST;
    return h("div.of", { role: "group", "aria-label": title }, h(named ? "h3.named" : "h3", { "aria-hidden": "true" }, title),
      models.slice(0, more > 0 ? models.length - more : undefined).map((each) => this.option(each)),
      state && !models.length ? h("p.state", { title: why || null }, state) : null, more > 0 ? h("p.state", {}, told.moreModels(more)) : null);
  }

  option(each) {
    const at = this.shown.push(each) - 1;
    const model = each.model && each.model !== each.name ? h("span.named", {}, each.model) : null;
    return h("div.option", { role: "option", id: `model-${at}`, "aria-selected": "false", onclick: () => this.finish(each), onmousemove: () => { if (this.at !== at) this.choose(at, false); } },
      h("b.name", {}, each.name), model, this.now?.name === each.name ? h("em", {}, told.answersNow) : null, h("small", {}, facts(each)));
  }

  /** Whatever one has typed, as `/model` takes it. */
  typedName() {
    const name = this.field.value.trim();
    if (!name || this.shown.some((each) => each.name === name)) return [];
    const at = this.shown.push({ name, model: name }) - 1;
    return [h("div.option", { role: "option", id: `model-${at}`, "aria-selected": "false", onclick: () => this.finish(this.shown[at]) }, h("span", {}, told.useTyped, " ", h("b.name", {}, name)))];
  }

  choose(at, scroll = true) {
    this.list.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    this.at = Math.max(0, Math.min(at, this.shown.length - 1));
    const node = this.list.querySelector(`#model-${this.at}`);
    node?.setAttribute("aria-selected", "true");
    this.field.setAttribute("aria-activedescendant", node?.id ?? "");
    if (scroll) node?.scrollIntoView({ block: "nearest" });
  }

  typed(event) {
    const to = { ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + 8, PageUp: this.at - 8, Home: 0, End: this.shown.length - 1 }[event.key];
    const edits = (event.key === "Home" || event.key === "End") && this.field.value; // then they move the cursor
    if (to !== undefined && !edits) this.choose(to);
    else if (event.key === "Enter" && this.shown[this.at]) this.finish(this.shown[this.at]);
    else return;
    event.preventDefault();
  }
}

/** What is known of a model, in a line. */
function facts(each) {
  const costs = each.local || (each.input === 0 && each.output === 0) ? told.costsNothing : each.input == null ? "" : told.costs(rate(each.input), rate(each.output));
  return [each.window && told.window(count(each.window)), each.answer && told.saysUpTo(count(each.answer)), costs, each.sees && told.sees, each.tools && told.callsTools, each.tools === false && told.callsNone]
    .filter(Boolean).join(" · ");
}

/** What a host says of a model, for whoever calls it by a name of their own. */
const own = (row) => (row ? { window: row.window, answer: row.answer, sees: row.sees, tools: row.tools } : {});

function lastUsed() {
  try { return JSON.parse(localStorage.getItem("models used")) ?? []; } catch { return []; }
}

function remember(each) {
  const { default: usual, ...kept } = each;
  const all = [kept, ...lastUsed().filter(({ name }) => name !== each.name)].slice(0, KEPT);
  try { localStorage.setItem("models used", JSON.stringify(all)); } catch { /* then it is not remembered */ }
}
