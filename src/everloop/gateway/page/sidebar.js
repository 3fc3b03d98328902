// The conversations there are, a search through all that was said, and the way to everything else.

import { get } from "./api.js";
import { h, icon, iconButton } from "./dom.js";
import { Seen } from "./seen.js";
import { say } from "./say.js";
import { group, when } from "./words.js";

const PART = 100; // conversations that are read at once
const MAC = /Mac|iP(hone|ad)/.test(navigator.platform);

export class Sidebar {
  constructor(house) {
    this.house = house;
    this.seen = new Seen();
    this.sessions = new Map();
    this.questions = [];
    this.archived = false;
    this.list = h("nav.list", { "aria-label": say.conversations, onscroll: () => this.scrolled() });
    this.field = h("input", {
      type: "search", placeholder: say.search, "aria-label": say.searchConversations, dir: "auto", oninput: () => this.typed(), onkeydown: (event) => this.pressed(event),
    });
    const link = (name, label, target) => h("a.navlink", { href: target }, icon(name), label);
    this.count = h("span.count");
    this.inbox = link("clock", say.waiting, "#/waiting");
    this.theme = iconButton("system", "", house.theme);
    this.showTheme();
    this.waiting = h("a.waiting", { hidden: true, href: "#/waiting" });
    this.node = h("aside.sidebar", { "aria-label": say.navigation, onkeydown: (event) => this.walk(event) },
      h("div.brand", {}, h("span.logo", {}, icon("loop")), h("b", {}, say.everloop),
        iconButton("close", say.closeMenu, () => house.drawer(false), { class: "ghost drawer-close" })),
      h("a.button.new", { href: "#/", title: say.newKey }, icon("plus"), say.newConversation),
      h("label.search", {}, icon("search"), this.field, h("kbd", {}, MAC ? "⌘ K" : "Ctrl K")),
      this.waiting, this.list,
      h("div.under", {},
        this.inbox,
        link("folder", say.files, "#/files"),
        link("gear", say.manage, "#/settings"),
        h("div.account", { role: "group", "aria-label": say.account }, h("span.name", { dir: "auto" }, icon("person"), house.me.name),
          iconButton("M12 4a3 3 0 0 0-3 3v4a3 3 0 0 0 6 0V7a3 3 0 0 0-3-3zM6 11a6 6 0 0 0 12 0M12 17v3", say.speech, house.speech), iconButton("bell", say.notifications, house.notify), iconButton("help", say.keyboardHelp, house.help), this.theme, iconButton("out", say.logOut, house.logout))));
  }

  showTheme() {
    const now = this.house.themeNow();
    this.theme.replaceChildren(icon(now || "system"));
    this.theme.title = this.theme.ariaLabel = say.themes[now];
  }

  /** It is being read, up to this entry. */
  saw(id, head) {
    this.seen.at(id, head);
    for (const item of this.list.querySelectorAll(".item")) if (item.dataset.id === id) item.querySelector(".sign.unread")?.remove();
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), 160);
  }

  pressed(event) {
    if (event.key === "Escape" && !event.isComposing) { event.preventDefault(); this.field.value = ""; this.field.blur(); this.typed(); }
    else if (event.key === "Enter") this.list.querySelector(".item")?.click();
  }

  /** The arrow keys go through what is listed. */
  walk(event) {
    if (!["ArrowDown", "ArrowUp"].includes(event.key) || !this.list.contains(event.target) && event.target !== this.field) return;
    const items = [...this.list.querySelectorAll(".item")];
    const next = items.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1);
    event.preventDefault();
    if (next < 0) this.field.focus(); else items[next]?.focus();
  }

  /** News come in crowds. */
  soon() {
    this.timer ??= setTimeout(() => { this.timer = null; this.load(); }, 250);
  }

  async load() {
    clearTimeout(this.timer);
    this.timer = null;
    const words = this.field.value.trim();
    const asked = (this.asked = (this.asked ?? 0) + 1);
    try {
      const [known, found, waiting] = await Promise.all([
        words && this.sessions.size ? null : this.read(0), words ? get("/api/search", { q: words }) : null, get("/api/approvals").catch(() => ({ approvals: [] }))]);
      if (asked !== this.asked) return; // a later look has overtaken this one
      if (known) this.know(known);
      this.ask(waiting.approvals, waiting.questions);
      if (found) await this.showFound(found.found, words, asked);
      else this.showAll();
    } catch (error) {
      this.list.replaceChildren(h("p.hint", {}, error.message), h("button.small", { type: "button", onclick: () => this.load() }, say.tryAgain));
    }
  }

  async read(skip) {
    return (await get("/api/sessions", { limit: PART, skip, ...(this.archived ? { archived: true } : {}) })).sessions;
  }

  /** The first part, anew; what was read beyond it stays as far as it is older. */
  know(first) {
    const whole = first.length < PART;
    const older = whole ? [] : [...this.sessions.values()].filter((each) => each.active < first.at(-1).active);
    if (!older.length) this.more = !whole;
    this.sessions = new Map([...first, ...older].map((each) => [each.id, each]));
  }

  ask(approvals, questions = []) {
    this.questions = approvals;
    const length = approvals.length + questions.length;
    this.waiting.hidden = !length;
    this.waiting.textContent = say.questionsWait(length);
    this.count.textContent = length;
    if (length) this.inbox.append(this.count); else this.count.remove();
    this.house.told([...this.sessions.values()], approvals);
  }

  /** Near the end of the list, the next part of it. */
  async scrolled() {
    if (!this.more || this.reading || this.field.value.trim() || this.list.scrollHeight - this.list.scrollTop - this.list.clientHeight > 400) return;
    this.reading = true;
    try {
      const further = await this.read(this.sessions.size);
      this.more = further.length === PART;
      for (const each of further) if (!this.sessions.has(each.id)) this.sessions.set(each.id, each);
      this.showAll();
    } catch { /* at the next scroll again */ } finally { this.reading = false; }
  }

  showAll() {
    const shown = [...this.sessions.values()].filter((each) => each.archived === this.archived && (each.messages || each.title)); // without what holds nothing that was said
    const nodes = this.archived ? [h("h2", {}, say.archivedOnes)] : [];
    let last = "";
    for (const each of [...shown.filter((one) => one.pinned), ...shown.filter((one) => !one.pinned)]) {
      const name = this.archived ? "" : each.pinned ? say.pinnedOnes : group(each.active);
      if (name !== last) nodes.push(h("h2", {}, (last = name)));
      nodes.push(this.item(each));
    }
    if (!shown.length) nodes.push(h("p.hint", {}, this.archived ? say.nothingArchived : say.nothingYet));
    const other = h("button.link", { type: "button", onclick: () => { this.archived = !this.archived; this.sessions.clear(); this.load(); } }, this.archived ? say.backToList : say.showArchived);
    this.draw(...nodes, other);
  }

  /** Whoever goes through it with the keys stays where they are. */
  draw(...nodes) {
    const { id, seq } = document.activeElement?.closest(".item")?.dataset ?? {};
    this.list.replaceChildren(...nodes);
    this.mark();
    if (id) [...this.list.querySelectorAll(".item")].find((each) => each.dataset.id === id && each.dataset.seq === seq)?.focus({ preventScroll: true });
  }

  item(each) {
    const place = each.session.startsWith("page:") ? "" : each.session;
    return h("a.item", { href: `#/c/${each.id}`, "data-id": each.id, title: say.itemTitle(each.title || say.untitled, each.messages) },
      h("span.name", { dir: "auto" }, each.title || say.untitled), h("span.when", {}, this.sign(each), when(each.active)), place && h("span.place", {}, place));
  }

  /** What is going on in it. */
  sign(each) {
    const waits = each.current && this.questions.some((question) => question.session === each.session);
    const state = waits ? "waiting" : each.state === "running" ? "running" : this.seen.unread(each) ? "unread" : "";
    return state && h(`i.sign.${state}`, { role: "img", "aria-label": say.states[state], title: say.states[state] });
  }

  async showFound(found, words, asked) {
    const titles = new Map([...this.sessions.values()].map((each) => [each.id, each]));
    for (const id of new Set(found.map((each) => each.thread))) {
      if (!titles.has(id)) titles.set(id, (await get(`/api/sessions/${id}`).catch(() => null))?.session ?? { title: "" });
    }
    if (asked !== this.asked) return;
    const named = [...this.sessions.values()].filter((each) => each.title.toLowerCase().includes(words.toLowerCase())).slice(0, 5);
    const hits = found.map((each) => h("a.item.hit", { href: `#/c/${each.thread}/${each.seq}`, "data-id": each.thread, "data-seq": each.seq },
      h("span.name", { dir: "auto" }, titles.get(each.thread).title || say.untitled), h("span.when", {}, titles.get(each.thread).archived ? say.isArchived : when(each.at)),
      h("span.text", { dir: "auto" }, marked(each.text, words))));
    const nothing = h("p.hint", {}, say.nothingFound(words));
    this.draw(...(named.length ? [h("h2", {}, say.titles), ...named.map((each) => this.item(each))] : []),
      ...(hits.length ? [h("h2", {}, say.messages), ...hits] : named.length ? [] : [nothing]));
  }

  mark() {
    const [, , id, seq] = location.hash.split("/");
    for (const item of this.list.querySelectorAll(".item")) {
      if (item.dataset.id === id && (!item.dataset.seq || item.dataset.seq === seq)) item.setAttribute("aria-current", "page"); else item.removeAttribute("aria-current");
    }
    for (const link of this.node.querySelectorAll(".navlink, .waiting")) {
      if (location.hash.startsWith(link.hash)) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    }
  }
}

/** The text with the words that were looked for set off. */
function marked(text, words) {
  const sought = words.split(/\s+/).filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return text.split(new RegExp(`(${sought.join("|")})`, "gi")).map((part, i) => (i % 2 ? h("mark", {}, part) : part));
}
