// The workspace: what is in a folder on the left, the file that was chosen on the right; on a phone one after the other.
// The address is `#/files/FOLDER/NAME`, so that Back, links and reloading work.

import { get } from "./api.js";
import { h, icon, iconButton, toast } from "./dom.js";
import { download } from "./files.js";
import { joined, removed, uploaded, urlOf } from "./placing.js";
import { looked, size } from "./preview.js";
import { told } from "./say-manage.js";
import { moment, when } from "./words.js";

const PART = 500; // names that are read at once
const SHEET = "M7 4h7l4 4v12H7zM14 4v4h4";

const address = (folder, name = "") => `#/files/${encodeURIComponent(folder)}${name && `/${encodeURIComponent(name)}`}`;

/** A part of an address, which somebody may have typed. */
function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

export class WorkspaceView {
  constructor(house, folder = "", name = "") {
    this.house = house;
    this.folder = decoded(folder);
    this.name = decoded(name);
    this.hidden = false;
    this.crumbs = h("nav.crumbs", { "aria-label": told.whereYouAre });
    this.list = h("div.entries", { "aria-label": told.entries, role: "group", onkeydown: (event) => this.walk(event) });
    this.pane = h("section.pane", { "aria-label": told.chosenFile, tabindex: "-1", onkeydown: (event) => this.escape(event) });
    this.status = h("p.hint.status-line", { role: "status" });
    const chosen = h("input", { type: "file", multiple: true, hidden: true, onchange: () => { this.upload([...chosen.files]); chosen.value = ""; } });
    const veil = h("div.drop", { hidden: true }, h("span", {}, icon("send"), told.dropHere));
    this.node = h("section.page.workspace", { "aria-label": told.files,
      ondragover: (event) => { event.preventDefault(); veil.hidden = false; },
      ondragleave: (event) => { if (!this.node.contains(event.relatedTarget)) veil.hidden = true; },
      ondrop: (event) => { event.preventDefault(); veil.hidden = true; this.upload([...event.dataTransfer.files]); } },
      h("header.bar", {}, house.menuButton(), h("h1.title", {}, told.files),
        h("button.small", { type: "button", title: told.uploadHere, onclick: () => chosen.click() }, icon("send"), told.upload), chosen),
      h("div.split", {}, h("div.side", {}, this.crumbs, this.status, this.list), this.pane), veil);
    this.load();
  }

  /** Another folder or file of the same view. */
  moved(kind, folder, name) {
    if (kind !== "files") return false;
    const { folder: before, name: left } = this;
    this.folder = decoded(folder);
    this.name = decoded(name);
    if (before !== this.folder) this.load();
    else this.open();
    if (left && !this.name) this.focus(left); // on a phone the list comes back
    return true;
  }

  async load() {
    const { folder, hidden } = this;
    try {
      const page = await get("/api/workspace", { path: folder, hidden, limit: PART });
      if (folder !== this.folder) return; // another was opened meanwhile
      this.page = page;
      this.draw();
    } catch (error) {
      this.page = null;
      this.list.replaceChildren(h("p.hint", {}, error.message));
      this.trail();
    }
    await this.open();
  }

  trail() {
    const parts = this.folder.split("/").filter(Boolean);
    const links = ["", ...parts].map((part, i) => {
      const here = i === parts.length;
      return [i > 0 && h("span", { "aria-hidden": "true" }, "/"),
        h(i ? "a.name" : "a", { href: address(parts.slice(0, i).join("/")), dir: "auto", "aria-current": here ? "page" : null }, part || told.workspace)];
    });
    this.crumbs.replaceChildren(...links.flat().filter(Boolean));
  }

  draw() {
    const { entries, total, hidden, cut } = this.page;
    this.trail();
    const rows = entries.map((entry) => this.row(entry));
    const more = entries.length < total && h("button.small", { type: "button", onclick: () => this.more() }, told.moreOf(entries.length, total));
    const dots = hidden > 0 && h("button.link", { type: "button", "aria-pressed": String(this.hidden), onclick: () => { this.hidden = !this.hidden; this.load(); } }, this.hidden ? told.hideHidden : told.showHidden(hidden));
    const none = !rows.length && h("div.nothing", {}, h("b", {}, told.emptyFolder), h("p.hint", {}, told.emptyFolderHint),
      this.folder && !hidden && h("button.small", { type: "button", onclick: () => this.removeFolder() }, told.deleteFolder));
    this.list.replaceChildren(...[...rows, none, more, dots, cut && h("p.hint", {}, told.tooMany)].filter(Boolean));
    this.mark();
  }

  row(entry) {
    const inside = [icon(entry.kind === "folder" ? "folder" : SHEET), h("span.name", { dir: "auto" }, entry.shown),
      h("span.facts", {}, entry.kind === "file" ? size(entry.size) : ""), h("time.facts", { title: moment(entry.changed) }, when(entry.changed))];
    const why = !entry.name ? told.odd : entry.kind === "other" ? (entry.link ? told.linkOut : told.notAFile) : "";
    if (why) return h("div.entry.dead", { title: why }, inside);
    const path = joined(this.folder, entry.name);
    return h("a.entry", { href: entry.kind === "folder" ? address(path) : address(this.folder, entry.name), "data-name": entry.name }, inside);
  }

  mark() {
    for (const each of this.list.querySelectorAll("a.entry")) {
      if (each.dataset.name === this.name) each.setAttribute("aria-current", "true"); else each.removeAttribute("aria-current");
    }
  }

  async more() {
    const { folder, hidden, page } = this;
    const further = await get("/api/workspace", { path: folder, hidden, limit: PART, skip: page.entries.length }).catch((error) => toast(error.message, "bad"));
    if (!further || page !== this.page) return;
    const at = page.entries.length;
    page.entries.push(...further.entries);
    this.draw();
    this.list.querySelectorAll(".entry")[at]?.focus();
  }

  focus(name) { [...this.list.querySelectorAll("a.entry")].find((each) => each.dataset.name === name)?.focus(); }

  /** The file of the address, beside the list. */
  async open() {
    this.mark();
    this.node.classList.toggle("one", Boolean(this.name));
    const path = joined(this.folder, this.name);
    if (!this.name) { this.shown = ""; this.pane.replaceChildren(h("p.hint.choose", {}, told.choose)); return; }
    if (path === this.shown) return;
    this.shown = path;
    const entry = this.page?.entries.find((each) => each.name === this.name);
    const file = { name: this.name, path, url: urlOf(path) };
    const facts = h("span.facts");
    const body = h("div.body", {}, h("p.hint", {}, told.loading));
    this.pane.replaceChildren(h("header.row", {},
      iconButton("left", told.backToFolder, () => this.house.go(address(this.folder)), { class: "ghost back" }),
      h("h2.name", { dir: "auto" }, entry?.shown ?? this.name), facts,
      iconButton("down", told.download, () => download({ url: file.url, name: file.name })),
      iconButton("bin", told.deleteFile, () => this.remove(path, this.name, entry?.size ?? 0))), body);
    if (!this.list.checkVisibility()) this.pane.focus(); // on a phone it has taken the place of the list
    try { body.replaceChildren(...await looked(file, (length) => { facts.textContent = length; })); } catch (error) { body.replaceChildren(h("p.hint", {}, error.message)); }
  }

  /** The arrow keys go through the list. */
  walk(event) {
    if (!["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    const rows = [...this.list.querySelectorAll("a.entry")];
    rows[rows.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  }

  escape(event) {
    if (event.key !== "Escape") return;
    event.preventDefault();
    this.house.go(address(this.folder));
  }

  async upload(files) {
    await uploaded(this.folder, files, (text) => { this.status.textContent = text; }, () => this.again());
    await this.again();
  }

  async remove(path, name, length) {
    if (!await removed(path, name, length, () => this.again())) return;
    this.house.go(address(this.folder));
    await this.load();
  }

  async removeFolder() {
    if (await removed(this.folder, this.folder.split("/").at(-1), 0, () => this.again())) this.house.go(address(this.folder.split("/").slice(0, -1).join("/")));
  }

  async again() { this.shown = ""; await this.load(); }

  renew(page) {
    const changed = (from) => from.entries.find((each) => each.name === this.name)?.changed;
    const is = changed(this.page) !== changed(page);
    const at = document.activeElement?.dataset.name;
    this.page = page;
    this.draw();
    if (at) this.focus(at);
    if (is) { this.shown = ""; this.open(); }
  }

  frame(frame) { if (frame.type === "news" || frame.type === "response") this.soon(); }
  reconnected() { this.load(); }
  close() { clearTimeout(this.timer); }

  /** Something has happened somewhere, and may have made a file. Who tabs through the list is not disturbed for nothing. */
  soon() {
    this.timer ??= setTimeout(async () => {
      this.timer = null;
      const page = await get("/api/workspace", { path: this.folder, hidden: this.hidden, limit: PART }).catch(() => null);
      if (page && this.page && page.path === this.folder && this.page.entries.length <= PART && JSON.stringify(page) !== JSON.stringify(this.page)) this.renew(page);
    }, 500);
  }
}
