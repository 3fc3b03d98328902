// One's own files: what was sent and was given, where it stands, and how much room it takes. The owner sees anybody's.

import { get, remove } from "./api.js";
import { ask, h, toast } from "./dom.js";
import { size } from "./preview.js";
import { told } from "./say-files.js";
import { moment, when } from "./words.js";

const PART = 50;

export class OwnFilesPage {
  constructor(role) {
    this.of = ""; // whose, where it is not one's own
    this.files = [];
    this.room = h("div.room", { role: "status" });
    this.body = h("div.tab", { "aria-live": "polite" });
    this.node = h("div.tab", {}, h("p.hint", {}, told.yours), this.room, this.body);
    if (role === "owner") this.offer();
    this.load();
  }

  /** The owner chooses whose. */
  async offer() {
    const { users } = await get("/api/users").catch(() => ({ users: [] }));
    const others = users.filter((each) => each.id !== "owner");
    if (!others.length) return;
    const pick = h("select.pick", { onchange: () => { this.of = pick.value; this.load(); } },
      h("option", { value: "" }, told.yourself), others.map((each) => h("option", { value: each.id }, each.name || each.id)));
    this.node.prepend(h("label.row", {}, told.whose, pick));
  }

  async load(skip = 0) {
    const { of } = this;
    try {
      const answer = await get("/api/files", { limit: PART, skip, ...(of ? { of } : {}) });
      if (of !== this.of) return; // another's were asked for meanwhile
      this.files = skip ? [...this.files, ...answer.files] : answer.files;
      this.draw(answer);
    } catch (error) {
      this.body.replaceChildren(h("p.hint", {}, error.message));
    }
  }

  draw({ used, quota, more }) {
    this.room.replaceChildren(h("span", {}, quota ? told.usedOf(size(used), size(quota)) : told.used(size(used))),
      ...(quota ? [h("progress", { max: quota, value: Math.min(used, quota), "aria-label": told.room })] : []));
    if (!this.files.length) {
      this.body.replaceChildren(h("div.empty", {}, h("h2", {}, told.nothing), h("p", {}, told.nothingHint)));
      return;
    }
    this.body.replaceChildren(h("ul.own-files", { "aria-label": told.list }, this.files.map((each) => this.row(each))),
      ...(more ? [h("div.row", {}, h("button.small", { type: "button", onclick: () => this.load(this.files.length) }, told.more))] : []));
  }

  row(each) {
    return h("li.tile", { "data-file": each.file },
      h("div.row.spread", {}, h("b", { dir: "auto" }, each.name), h("time", { title: moment(each.at) }, when(each.at))),
      h("small", {}, `${size(each.bytes)} · ${each.mime}`),
      h("div.row", {},
        h("a.button.small", { href: each.url, download: each.name, "aria-label": told.downloadNamed(each.name) }, told.download),
        this.of ? null : h("button.small.ghost", { type: "button", "aria-label": told.talkNamed(each.name), onclick: () => this.talk(each) }, told.talk),
        h("button.small.ghost", { type: "button", "aria-label": told.removeNamed(each.name), onclick: () => this.drop(each) }, told.remove)));
  }

  /** To the conversation that told of it last. */
  async talk(each) {
    try {
      const { sessions } = await get("/api/sessions", { file: each.file, limit: 1 });
      if (sessions.length) location.hash = `#/c/${sessions[0].id}`;
      else toast(told.noTalk);
    } catch (error) { toast(error.message, "bad"); }
  }

  async drop(each) {
    if (!await ask({ title: told.removeTitle(each.name), text: told.removeText, yes: told.remove, grave: true })) return;
    try {
      await remove(`/api/files/${each.file}${this.of ? `?${new URLSearchParams({ of: this.of })}` : ""}`);
      toast(told.removed(each.name));
    } catch (error) { toast(error.message, "bad"); }
    await this.load();
  }

  reconnected() { this.load(); }
}
