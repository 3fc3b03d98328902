// Moving in: from where, what would come and what would not, and then it is done. The gateway does one at a time, also
// when nobody looks: whoever opens this finds how it stands.

import { call, get, post } from "./api.js";
import { h } from "./dom.js";
import { told } from "./say-import.js";

const AGAIN = 700; // ms between two looks at one that runs
const SENT = ["chatgpt", "claude"]; // which are a file that the service has sent

export class ImportPage {
  /** `changed()` is told when conversations have come. */
  constructor(changed) {
    this.changed = changed;
    this.upload = null;
    this.kind = h("select", { id: "import-kind", onchange: () => this.choose() }, Object.entries(told.kinds).map(([value, name]) => h("option", { value }, name)));
    this.file = h("input", { type: "file", id: "import-file", accept: ".zip,.json,application/zip,application/json", onchange: () => { this.upload = null; } });
    this.path = h("input", { id: "import-path", maxlength: 4000, spellcheck: false, autocomplete: "off" });
    this.where = h("span.name", {});
    this.enable = h("input", { type: "checkbox" });
    this.grown = h("input", { type: "checkbox" });
    this.filed = h("label.field", { for: "import-file" }, told.file, this.file);
    this.jobs = h("label.row", {}, this.enable, told.enable);
    this.hint = h("p.hint", {});
    this.look = h("button.small.primary", { type: "submit" }, told.look);
    this.status = h("p.hint", { role: "status" });
    this.body = h("div.found", {});
    const submit = (event) => { event.preventDefault(); this.begin(true); };
    this.node = h("div.tab.import", {},
      h("form.tile", { onsubmit: submit },
        h("label.field", { for: "import-kind" }, told.from, this.kind), this.filed,
        h("label.field", { for: "import-path" }, this.where, this.path),
        this.hint, this.jobs, h("label.row", {}, this.grown, told.grown), h("div.row", {}, this.look)),
      this.status, this.body);
    this.choose();
    this.follow();
  }

  choose() {
    const kind = this.kind.value;
    this.filed.hidden = !SENT.includes(kind);
    this.jobs.hidden = SENT.includes(kind);
    this.where.textContent = SENT.includes(kind) ? told.orPath : told.path;
    this.hint.textContent = told.hints[kind];
    this.path.placeholder = told.places[kind];
    this.upload = null;
  }

  /** What is chosen; a file is sent first, once. */
  async wanted(dry) {
    const kind = this.kind.value, file = this.filed.hidden ? null : this.file.files[0];
    if (file && !this.upload) {
      this.status.textContent = told.sending(file.name);
      this.upload = (await call("/api/import/upload", { method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" } })).upload;
    }
    return { kind, dry_run: dry, grown: this.grown.checked, enable: !this.jobs.hidden && this.enable.checked, ...(file ? { upload: this.upload } : { path: this.path.value }) };
  }

  async begin(dry, again = null) {
    this.busy(true);
    this.body.replaceChildren();
    try {
      await post("/api/import", again ? { ...again, dry_run: dry } : await this.wanted(dry));
      if (!dry) this.upload = null;
    } catch (error) {
      this.fail(error.message);
      return;
    }
    await this.follow();
  }

  /** Until it has ended, or nobody looks any more. */
  async follow() {
    clearTimeout(this.later);
    try {
      const standing = await get("/api/import");
      this.busy(standing.state === "running");
      if (standing.state === "running") {
        this.status.textContent = (standing.wanted.dry_run ? told.looking : told.doing)(standing.done);
        this.later = setTimeout(() => this.follow(), AGAIN);
      } else if (standing.state === "failed") {
        this.fail(standing.error);
      } else if (standing.state === "done") {
        this.draw(standing);
      }
    } catch (error) {
      this.fail(error.message);
    }
  }

  busy(is) { this.look.disabled = is; }

  fail(text) {
    this.busy(false);
    this.status.textContent = "";
    this.body.replaceChildren(h("p.callout.bad", { role: "alert" }, text));
  }

  draw({ wanted, counts, messages, taken, there, left, left_count }) {
    const dry = wanted.dry_run;
    if (!dry) this.changed();
    const number = Object.values(counts).reduce((sum, each) => sum + each, 0);
    this.status.textContent = "";
    const doIt = h("button.primary", { type: "button", onclick: () => this.begin(false, wanted) }, told.doIt);
    this.body.replaceChildren(...[
      h("p.callout", { role: "status", "data-import": dry ? "foretold" : "done" }, summary(dry, counts, number, messages, wanted.kind, Object.keys(there).length)),
      dry && number ? h("div.row", {}, doIt) : null,
      left_count ? section(told.left(left_count), left.map((text) => h("li", {}, text)), left_count - left.length, true) : null,
      ...Object.keys(told.things).filter((what) => counts[what] || thereOf(what, there)).map((what) => group(what, counts[what] ?? 0, taken.filter((each) => each.what === what), thereOf(what, there)))].filter(Boolean));
  }

  close() { clearTimeout(this.later); }

  reconnected() { this.follow(); }
}

/** Where there are conversations alone they are called so. */
const summary = (dry, counts, number, messages, kind, there) => (number ? (dry ? told.wouldCome : told.came)(counts.conversation === number ? told.things.conversation(number) : told.all(number), messages, told.kinds[kind]) + (dry || !counts.conversation ? "" : ` ${told.listed}`) : there ? told.nothingNew : told.nothing);

/** The lines of a memory are counted by the file that they stand in. */
const thereOf = (what, there) => (what === "memory" ? (there["MEMORY.md"] ?? 0) + (there["HISTORY.md"] ?? 0) : there[what] ?? 0);

const group = (what, number, things, there) => section(told.things[what](number) + (there ? told.there(there) : ""),
  things.map((each) => h("li", {}, h("b", {}, each.name), each.note ? h("span", {}, each.note) : null)), number - things.length);

const section = (title, items, more, open = false) => h("details.tile", { open }, h("summary", {}, title),
  h("ul", {}, items, more > 0 ? h("li", {}, told.more(more)) : null));
