// Backups: the ones that there are, one made now, how often by itself, and a restored copy that waits to be adopted.

import { get, post, put } from "./api.js";
import { h } from "./dom.js";
import { download } from "./files.js";
import { line as field } from "./lines.js";
import { told } from "./say-backup.js";
import { moment } from "./words.js";

export class BackupPage {
  constructor() {
    this.status = h("p.hint", { role: "status" });
    this.create = h("button.primary", { type: "button", onclick: () => this.make() }, told.create);
    this.every = h("select", { "aria-label": told.every }, [["", told.never], ["daily", told.daily], ["weekly", told.weekly]].map(([value, name]) => h("option", { value }, name)));
    this.keep = h("input", { type: "number", min: 1, max: 1000, "aria-label": told.keep });
    this.copy = h("div.tab");
    this.body = h("div.tab", { "aria-live": "polite" });
    const save = (event) => { event.preventDefault(); this.act(() => put("/api/backup/schedule", { every: this.every.value, keep: Number(this.keep.value) }), told.saved); };
    this.node = h("div.tab", {}, this.copy, h("div.row", {}, this.create), this.status, this.body,
      h("form.tile", { onsubmit: save }, h("h2", {}, told.schedule),
        h("div.row.picks", {}, field(told.every, this.every), field(told.keep, this.keep)), h("div.row", {}, h("button.small", { type: "submit" }, told.save))));
    this.load();
  }

  async load() {
    await this.act(() => get("/api/backup"));
  }

  /** Do something that answers with how things stand, and show that. */
  async act(ask, said = "") {
    try {
      this.draw(await ask());
      this.status.textContent = said;
    } catch (error) {
      this.status.textContent = error.message;
    }
  }

  async make() {
    this.create.disabled = true;
    this.status.textContent = told.creating;
    try {
      const { name, warnings } = await post("/api/backup");
      this.draw(await get("/api/backup"));
      this.status.textContent = [told.made(name), ...warnings].join(" ");
    } catch (error) {
      this.status.textContent = error.message;
    }
    this.create.disabled = false;
  }

  draw(standing) {
    this.every.value = standing.every;
    this.keep.value = standing.keep;
    const adopt = () => this.act(() => post("/api/backup/adopt"), told.adopted);
    this.copy.replaceChildren(...(standing.copy_of
      ? [h("p", {}, told.copy(standing.copy_of)), h("div.row", {}, h("button.small", { type: "button", onclick: adopt }, told.adopt))] : []));
    const about = [h("p.hint", {}, told.folder(standing.folder)), standing.encrypted ? null : h("p.hint", {}, told.noPassphrase)].filter(Boolean);
    this.body.replaceChildren(standing.backups.length
      ? h("ul.backups", { "aria-label": told.list }, standing.backups.map(line))
      : h("div.empty", {}, h("h2", {}, told.none), h("p", {}, told.noneHint)), ...about);
  }

  reconnected() { this.load(); }
}

function line(each) {
  const about = `${moment(each.made)} · ${told.size(each.size)} · ${each.encrypted ? told.encrypted : told.plain}`;
  const take = () => download({ url: `/api/backup/files/${encodeURIComponent(each.name)}`, name: each.name });
  return h("li.tile.row.spread", { "data-backup": each.name }, h("div", {}, h("b", {}, each.name), h("br"), h("small", {}, about)),
    h("button.small.ghost", { type: "button", onclick: take, "aria-label": told.downloadNamed(each.name) }, told.download));
}
