// What is remembered for whoever looks: the text that the agent is told, its versions, and facts with where they are known from.

import { get, post, put } from "./api.js";
import { ask, h, toast } from "./dom.js";
import { told } from "./say-memory.js";
import { moment, when } from "./words.js";

const PART = 50;
const DOCUMENTS = { memory: "MEMORY.md", history: "HISTORY.md" };

export class MemoryPage {
  constructor() {
    this.tab = "memory";
    this.words = "";
    this.ended = false;
    this.state = h("div.hint", { role: "status" });
    this.body = h("div.tab", { "aria-live": "polite" });
    this.tabs = h("div.segments", { role: "group", "aria-label": told.show }, Object.entries(told.tabs).map(([name, label]) =>
      h("button", { type: "button", "aria-pressed": String(name === this.tab), onclick: () => this.open(name) }, label)));
    this.node = h("div.tab.memory", {}, this.state, this.tabs, this.body);
    this.open("memory");
  }

  async open(name) {
    if (this.unsaved() && !await ask({ title: told.leave, text: told.leaveText, yes: told.leaveYes, grave: true })) return;
    this.field = null;
    this.tab = name;
    [...this.tabs.children].forEach((each, i) => each.setAttribute("aria-pressed", String(Object.keys(told.tabs)[i] === name)));
    await this.load();
  }

  unsaved() { return Boolean(this.field && this.field.value !== this.base); }

  async load() {
    const { tab } = this;
    try {
      const [found, nodes] = await Promise.all([get("/api/memory"), this[tab in DOCUMENTS ? "document" : tab](tab)]);
      if (tab !== this.tab) return; // another was opened meanwhile
      this.state.replaceChildren(...summary(found));
      this.body.replaceChildren(...nodes);
    } catch (error) {
      this.body.replaceChildren(h("p.hint", {}, error.message));
    }
  }

  async document(tab) {
    const { text } = await get("/api/memory/document", { document: DOCUMENTS[tab] });
    this.base = text;
    this.field = h("textarea.document", { value: text, rows: 16, spellcheck: "false", dir: "auto", "aria-label": DOCUMENTS[tab], placeholder: told.empty,
      oninput: () => { save.disabled = !this.unsaved(); } });
    const save = h("button.primary", { type: "button", disabled: true, onclick: () => this.save(DOCUMENTS[tab]) }, told.save);
    return [h("p.hint", {}, told.documents[tab]), this.field, h("div.row.end", {}, save)];
  }

  async save(document) {
    await this.change(() => put("/api/memory/document", { document, text: this.field.value, base: this.base }), told.saved);
  }

  /** Do it, say so, and show what there is now. */
  async change(deed, said) {
    try {
      const answer = await deed();
      this.field = null;
      toast(typeof said === "function" ? said(answer) : said);
      await this.load();
    } catch (error) { toast(error.message, "bad"); }
  }

  async facts() {
    const query = this.words ? { search: this.words, limit: PART } : { ended: this.ended, limit: PART, skip: 0 };
    let { facts } = await get("/api/memory/facts", query);
    const list = h("ul.facts", { "aria-label": told.tabs.facts }, facts.map((each) => this.fact(each)));
    const more = h("button.small", { type: "button", hidden: Boolean(this.words) || facts.length < PART, onclick: async () => {
      ({ facts } = await get("/api/memory/facts", { ...query, skip: list.children.length }));
      list.append(...facts.map((each) => this.fact(each)));
      more.hidden = facts.length < PART;
    } }, told.more);
    const search = h("form.row", { role: "search", onsubmit: (event) => { event.preventDefault(); this.words = field.value.trim(); this.load(); } });
    const field = h("input", { type: "search", value: this.words, "aria-label": told.search, placeholder: told.search });
    search.append(field, h("button.small", { type: "submit" }, told.find));
    const also = h("label.row", {}, h("input", { type: "checkbox", checked: this.ended, onchange: (event) => { this.ended = event.currentTarget.checked; this.load(); } }), told.alsoEnded);
    const nothing = h("div.empty", {}, h("h2", {}, this.words ? told.notFound : told.nothing), h("p", {}, this.words ? told.notFoundHint : told.nothingHint));
    return [search, ...(this.words ? [] : [also]), facts.length ? list : nothing, more];
  }

  fact(each) {
    const source = each.session ? h("a", { href: `#/c/${each.thread}`, "aria-label": told.sourceNamed(each.text) }, told.source) : h("span", {}, each.deleted ? told.deleted : told.byHand);
    return h(each.until ? "li.tile.ended" : "li.tile", { "data-fact": each.id },
      h("span", { dir: "auto" }, each.text),
      h("small.row", {}, each.topic && h("span", { dir: "auto" }, each.topic), h("time", { title: moment(each.at) }, when(each.at)), source,
        each.marked && h("span.chip.medium", {}, told.marked), each.until ? h("span.chip", {}, told.until(when(each.until))) : null),
      h("div.row", {}, h("button.small.ghost", { type: "button", "aria-label": told.forgetNamed(each.text), onclick: () => this.forget(each) }, told.forget)));
  }

  async forget(each) {
    if (!await ask({ title: told.forgetTitle, text: told.forgetText(each.text), yes: told.forget, grave: true })) return;
    await this.change(() => post("/api/memory/forget", { ids: [each.id] }), (answer) => (answer.said_in.length ? told.stillThere(answer.said_in.map((one) => one.title || one.session).join(", ")) : told.forgotten));
  }

  async versions() {
    const { versions } = await get("/api/memory/versions", { limit: PART });
    if (!versions.length) return [h("div.empty", {}, h("h2", {}, told.nothing), h("p", {}, told.nothingHint))];
    return [h("ol.facts", { "aria-label": told.tabs.versions }, versions.map((each, i) => this.version(each, i === 0)))];
  }

  version(each, last) {
    const shown = h("div", {});
    const compare = async (event) => {
      if (shown.firstChild) { shown.replaceChildren(); event.target.setAttribute("aria-expanded", "false"); return; }
      try {
        const parts = await Promise.all(each.documents.map((document) => get("/api/memory/difference", { document, old: Math.max(1, each.version - 1), new: each.version })));
        const texts = each.version > 1 ? parts.map((one) => one.text) : [];
        shown.replaceChildren(...(texts.some(Boolean) ? texts.filter(Boolean).map(difference) : [h("p.hint", {}, told.first)]));
        event.target.setAttribute("aria-expanded", "true");
      } catch (error) { toast(error.message, "bad"); }
    };
    return h("li.tile", { "data-version": each.version },
      h("div.row.spread", {}, h("b", {}, told.version(each.version)), h("time", { title: moment(each.at) }, when(each.at))),
      h("small", { dir: "auto" }, `${each.author || told.itself} · ${each.why}`),
      h("div.row", {},
        each.documents.length ? h("button.small.ghost", { type: "button", "aria-expanded": "false", "aria-label": told.compareNamed(each.version), onclick: compare }, told.compare) : null,
        last ? null : h("button.small.ghost", { type: "button", "aria-label": told.restoreNamed(each.version), onclick: () => this.restore(each.version) }, told.restore)),
      shown);
  }

  async restore(version) {
    if (!await ask({ title: told.restoreTitle(version), text: told.restoreText, yes: told.restore })) return;
    await this.change(() => post("/api/memory/restore", { version }), (answer) => (answer.version ? told.restored(version) : told.same));
  }

  reconnected() { if (!this.unsaved()) this.load(); }
}

function summary(found) {
  const lines = [found.version ? told.known(found.facts, found.marked) : told.nothingHint, found.left_out ? told.leftOut(found.left_out) : "", found.version ? found.recall : "", ...found.problems];
  return lines.filter(Boolean).map((line) => h("p", {}, line));
}

function difference(text) {
  const kinds = { "+": "added", "-": "removed" };
  const lines = text.split("\n").filter((line) => !line.startsWith("@@")); // without where it stands
  return h("pre.difference", { tabindex: "0", "aria-label": told.compare }, lines.map((line) => h(`span.${kinds[line[0]] ?? "kept"}`, {}, line)));
}
