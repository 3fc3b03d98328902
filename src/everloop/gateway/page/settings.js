// Manage: a list of pages on the left, the page on the right; on narrow screens the list, then the page, and back. What
// pages there are stands in pages.js.

import { get, patch } from "./api.js";
import { h, icon, toast } from "./dom.js";
import { hasTokens, isPage, pagesFor } from "./pages.js";
import { told } from "./say-manage.js";

const NARROW = matchMedia("(max-width: 960px)"); // as in setup.css

/** The settings as the gateway has them, and the way to change them that loses nobody else's change. */
class Sheet {
  async load() {
    this.told = await get("/api/settings");
  }

  async change(changes) {
    this.told = await patch("/api/settings", changes, { "If-Match": `"${this.told.version}"` });
  }

  row(key) { return this.told.rows.find((row) => row.key === key); }
}

export class SettingsView {
  constructor(house, name) {
    const pages = pagesFor(house.me.role);
    this.house = house;
    this.me = house.me;
    this.known = new Sheet();
    this.open = name ? pages.find((page) => page.name === name) : NARROW.matches ? null : pages[0];
    this.refused = name && !this.open ? (isPage(name) ? told.onlyAdmins : told.noSuchPage) : "";
    this.name = this.open ? told.pages[this.open.name][0] : told.manage;
    this.notes = h("div.notes");
    this.body = h("section.body", this.open ? { "aria-label": this.name } : {});
    this.node = h(name ? "section.page.manage" : "section.page.manage.at-list", { "aria-label": told.manage },
      h("header.bar", {}, house.menuButton(), h("a.button.ghost.back", { href: "#/settings", "aria-label": told.back, title: told.back }, icon("left")), h("h1.title", {}, this.name)),
      h("div.beside", {}, this.list(pages), h("div.scroller", { tabindex: "0" }, h("div.column.wide", {}, this.notes, this.body))));
    this.widened = () => { if (!name) house.go("#/settings"); };
    NARROW.addEventListener("change", this.widened);
    this.load();
  }

  list(pages) {
    const groups = [...new Set(pages.map((page) => page.group))];
    const link = (page) => h("a.to", { href: `#/settings/${page.name}`, ...(page === this.open ? { "aria-current": "page" } : {}) },
      h("span", {}, told.pages[page.name][0]), h("small", {}, page.name === "access" && !hasTokens(this.me.role) ? told.accessOfUsers : told.pages[page.name][1]));
    return h("nav.pages", { "aria-label": told.pagesLabel }, groups.map((group) => [h("h2", {}, told.groups[group]), pages.filter((page) => page.group === group).map(link)]));
  }

  async load() {
    if (!this.open) { this.body.append(...(this.refused ? [h("p.hint", {}, this.refused)] : [])); return; }
    try {
      const page = await this.open.open(this);
      if (this.closed) { page.close?.(); return; }
      this.page = page;
      this.body.replaceChildren(page.node);
      this.node.querySelector(".pages [aria-current]").scrollIntoView({ block: "nearest" });
    } catch (error) {
      this.body.replaceChildren(h("p.hint", {}, error.status === 403 ? told.onlyAdmins : error.message));
    }
  }

  /** The settings, for the pages that show some. */
  async sheet() {
    await this.known.load();
    this.note();
    return this.known;
  }

  /** What is set but waits for the next start. */
  note() {
    const waiting = this.known.told.restart_needed;
    this.notes.replaceChildren(...(waiting.length ? [h("p.callout", { role: "status" }, told.afterRestart, " ", waiting.flatMap((key, i) => [i ? ", " : "", h("code", {}, key)]))] : []));
  }

  /** Resolves to nothing, or to the sentence that says why not. */
  save = async (changes) => {
    try {
      await this.known.change(changes);
      toast(told.saved(this.known.told.file));
    } catch (error) {
      if (error.status !== 412) return error.message;
      await this.known.load();
      toast(error.message, "bad");
    }
    this.note();
    this.page.draw();
    return undefined;
  };

  close() {
    this.closed = true;
    NARROW.removeEventListener("change", this.widened);
    this.page?.close?.();
  }

  frame() {}
  reconnected() { if (!this.page && this.open) this.load(); else this.page?.reconnected?.(); }
}
