// MCP servers: how each stands, its tools, what has changed in them, and adding and removing one.

import { get, post, remove } from "./api.js";
import { ask, h, toast } from "./dom.js";
import { McpAdding } from "./mcp-add.js";
import { at, McpToolList } from "./mcp-tools.js";
import { told } from "./say-mcp.js";
import { moment } from "./words.js";

const EVERY = 5000; // milliseconds

export class McpPage {
  constructor(role) {
    this.isOwner = role === "owner";
    this.open = new Set(); // servers whose tools somebody looks at
    this.lists = new Map();
    this.list = h("div.people.mcp");
    this.node = h("div.tab", {}, h("p.hint", {}, told.intro), !this.isOwner && h("p.hint", {}, told.onlyOwner), this.list,
      this.isOwner && h("section.group", {}, h("h2", {}, told.add), h("p.hint", {}, told.addText), new McpAdding(() => this.draw()).node));
    this.timer = setInterval(() => { if (!document.hidden) this.draw(); }, EVERY);
    this.draw();
  }

  async draw() {
    try {
      const { servers } = await get("/api/mcp");
      const shown = JSON.stringify(servers);
      if (shown === this.shown) return; // what is selected, or has the focus, stays
      if (this.shown !== undefined && [...this.list.querySelectorAll("textarea, select")].includes(document.activeElement)) return; // at the next look
      this.shown = shown;
      this.list.replaceChildren(...(servers.length ? servers.map((each) => this.tile(each)) : [h("p.hint", {}, told.none)]));
    } catch (error) { this.list.replaceChildren(h("p.hint", {}, error.message)); }
  }

  tile(each) {
    const todo = told.todo[each.state];
    const facts = [told.counts(each.allowed, each.changed, each.new), each.resources && told.resources(told.toolStates[each.resources]), each.login.includes("kept") && told.loggedIn, told.forRole(each.permission), each.network.length > 0 && told.reaches(each.network.join(", ")), each.workspace && told.workspace, !each.sandbox && told.unconfined,
      each.since > 0 && told.since(moment(each.since)), each.restarts > 0 && told.restarts(each.restarts)];
    return h("article.tile", { "data-mcp": each.name },
      h("div.row.spread", {}, h("b", {}, each.name), h("span.state", { "data-state": each.state }, told.states[each.state])),
      each.where && h("code.where", {}, each.where), each.why && h("p.why", { dir: "auto" }, each.why), todo && h("p.hint", {}, todo),
      h("ul.facts", {}, facts.filter(Boolean).map((text) => h("li", {}, text))),
      !["wrong", "off"].includes(each.state) && this.tools(each),
      this.isOwner && h("div.row", {},
        !["wrong", "off"].includes(each.state) && h("button.small", { type: "button", "aria-label": told.askNamed(each.name), onclick: (event) => this.restart(each, event.currentTarget) }, told.ask),
        each.login.includes("wanted") && h("button.small", { type: "button", "aria-label": told.logInNamed(each.name), onclick: () => this.logIn(each) }, told.logIn),
        each.login.includes("kept") && h("button.small", { type: "button", "aria-label": told.logOutNamed(each.name), onclick: () => this.logOut(each) }, told.logOut),
        h("button.small", { type: "button", "aria-label": told.removeNamed(each.name), onclick: () => this.forget(each) }, told.remove)));
  }

  tools(each) {
    const list = this.lists.get(each.name) ?? new McpToolList(each.name, this.isOwner, () => this.draw());
    this.lists.set(each.name, list);
    const details = h("details", { ontoggle: () => {
      if (details.open === this.open.has(each.name)) return;
      if (details.open) { this.open.add(each.name); list.load(); } else this.open.delete(each.name);
    } }, h("summary", { "aria-label": told.toolsOf(each.name) }, told.tools), list.node);
    details.open = this.open.has(each.name);
    return details;
  }

  async restart(each, button) {
    button.disabled = true;
    try {
      const { mcp } = await post(at(each.name, "/restart"));
      this.open.add(each.name);
      this.lists.get(each.name)?.draw(mcp);
    } catch (error) { toast(error.message, "bad"); }
    button.disabled = false;
    this.shown = "";
    await this.draw();
  }

  async logIn(each) {
    try {
      const { url } = await post(at(each.name, "/login"));
      if (!/^https?:/.test(url)) throw new Error(url);
      window.open(url, "_blank", "noopener,noreferrer");
      toast(told.logInHint);
    } catch (error) { toast(error.message, "bad"); }
  }

  async logOut(each) {
    try { toast((await remove(at(each.name, "/login"))).gone ? told.loggedOut : told.noLogin); } catch (error) { toast(error.message, "bad"); }
    await this.draw();
  }

  async forget(each) {
    if (!await ask({ title: told.removeTitle(each.name), text: told.removeText, yes: told.remove, grave: true })) return;
    try {
      const { left } = await remove(at(each.name));
      toast(left.length ? told.left(left.join(", ")) : told.removed(each.name));
      this.lists.delete(each.name);
      this.open.delete(each.name);
    } catch (error) { toast(error.message, "bad"); }
    await this.draw();
  }

  close() { clearInterval(this.timer); }
  reconnected() { this.draw(); }
}
