// The conversations there are, a search through all that was said, and the way to everything else.

import { get } from "./api.js";
import { h, icon, iconButton } from "./dom.js";
import { group, when } from "./words.js";

export class Sidebar {
  constructor(house) {
    this.house = house;
    this.list = h("nav.list", { "aria-label": "Conversations" });
    this.field = h("input", {
      type: "search", placeholder: "Search", "aria-label": "Search conversations", oninput: () => this.typed(),
      onkeydown: (event) => { if (event.key === "Escape") { this.field.value = ""; this.typed(); } },
    });
    this.state = h("span.wire", { role: "status" });
    const link = (name, label, target) => h("a.navlink", { href: target }, icon(name), label);
    this.waiting = h("a.waiting", { hidden: true, href: "#/" });
    this.node = h("aside.sidebar", { "aria-label": "Navigation" },
      h("div.brand", {}, h("span.logo", {}, icon("loop")), h("b", {}, "everloop"), this.state,
        iconButton("close", "Close the menu", () => house.drawer(false), { class: "ghost drawer-close" })),
      h("a.button.new", { href: "#/", title: "New conversation (Alt+N)" }, icon("plus"), "New conversation"),
      h("label.search", {}, icon("search"), this.field, h("kbd", {}, "Ctrl K")),
      this.waiting, this.list,
      h("div.under", {}, link("chart", "Usage", "#/usage"), link("send", "Outbox", "#/outbox"), link("gear", "Settings", "#/settings"),
        h("div.row.last", {}, iconButton("theme", "Dark or light", house.theme), iconButton("out", "Log out", house.logout))));
  }

  connected(state) {
    this.state.textContent = state === "open" ? "" : "reconnecting …";
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), 160);
  }

  /** News come in crowds; one look a moment is enough. */
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
        get("/api/sessions", { limit: 200 }), words ? get("/api/search", { q: words }) : null, get("/api/approvals")]);
      if (asked !== this.asked) return; // a later look has overtaken this one
      this.known = known.sessions;
      this.listen(waiting.approvals);
      if (found) await this.showFound(found.found, words, asked);
      else this.showAll(known.sessions);
    } catch (error) {
      this.list.replaceChildren(h("p.hint", {}, error.message), h("button.small", { type: "button", onclick: () => this.load() }, "Try again"));
    }
  }

  listen(approvals) {
    const keys = new Set(approvals.map((each) => each.session));
    const first = this.known.find((each) => keys.has(each.session) && each.current);
    this.waiting.hidden = !approvals.length;
    this.waiting.textContent = approvals.length === 1 ? "1 question waits for you" : `${approvals.length} questions wait for you`;
    if (first) this.waiting.href = `#/c/${first.id}`;
  }

  showAll(sessions) {
    if (!sessions.length) {
      this.list.replaceChildren(h("p.hint", {}, "Conversations stand here once you have said something."));
      return;
    }
    const nodes = [];
    let last = "";
    for (const each of sessions) {
      const name = group(each.active);
      if (name !== last) nodes.push(h("h2", {}, (last = name)));
      nodes.push(this.item(each));
    }
    this.list.replaceChildren(...nodes);
    this.mark();
  }

  item(each) {
    const place = each.session.startsWith("page:") ? "" : each.session;
    return h("a.item", { href: `#/c/${each.id}`, "data-id": each.id, title: `${each.title} · ${each.messages} messages` },
      h("span.name", {}, each.title || "Untitled"), h("span.when", {}, when(each.active)), place && h("span.place", {}, place));
  }

  async showFound(found, words, asked) {
    const titles = new Map(this.known.map((each) => [each.id, each.title]));
    for (const id of new Set(found.map((each) => each.thread))) {
      if (!titles.has(id)) titles.set(id, (await get(`/api/sessions/${id}`).catch(() => null))?.session.title ?? "Archived");
    }
    if (asked !== this.asked) return;
    const named = this.known.filter((each) => each.title.toLowerCase().includes(words.toLowerCase())).slice(0, 5);
    const hits = found.map((each) => h("a.item.hit", { href: `#/c/${each.thread}/${each.seq}`, "data-id": each.thread },
      h("span.name", {}, titles.get(each.thread) || "Untitled"), h("span.when", {}, when(each.at)), h("span.text", {}, each.text)));
    const nothing = h("p.hint", {}, `Nobody has said “${words}”. Try fewer words.`);
    this.list.replaceChildren(...(named.length ? [h("h2", {}, "Titles"), ...named.map((each) => this.item(each))] : []),
      ...(hits.length ? [h("h2", {}, "Messages"), ...hits] : named.length ? [] : [nothing]));
  }

  mark() {
    const [, , id] = location.hash.split("/");
    for (const item of this.list.querySelectorAll(".item")) {
      if (item.dataset.id === id) item.setAttribute("aria-current", "page"); else item.removeAttribute("aria-current");
    }
    for (const link of this.node.querySelectorAll(".navlink")) {
      if (location.hash.startsWith(link.hash)) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    }
  }
}
