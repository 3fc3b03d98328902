// Skills: what the agent knows how to do, what keeps one from being used, and installing another from an archive.

import { get, post, remove, upload } from "./api.js";
import { ask, h, toast } from "./dom.js";
import { line } from "./lines.js";
import { told } from "./say-skills.js";

const at = (name) => `/api/skills/${encodeURIComponent(name)}`;
const facts = (lines) => h("ul.facts", {}, lines.filter(Boolean).map((text) => h("li", {}, text)));
const listed = (title, lines) => (lines.length ? [h("p", {}, h("strong", {}, title)), facts(lines)] : []);

export class SkillsPage {
  constructor() {
    this.list = h("div.people.skills");
    this.adding = h("div.skills");
    this.node = h("div.tab", {}, h("p.hint", {}, told.intro), this.list, h("section.group", {}, h("h2", {}, told.add), h("p.hint", {}, told.addText), this.adding));
    this.form();
    this.draw();
  }

  async draw() {
    try {
      const { skills } = await get("/api/skills");
      this.list.replaceChildren(...(skills.length ? skills.map((each) => this.tile(each)) : [h("p.hint", {}, told.none)]));
    } catch (error) { this.list.replaceChildren(h("p.hint", {}, error.message)); }
  }

  tile(each) {
    const inside = h("div");
    const details = h("details", { ontoggle: () => { if (details.open && !inside.firstChild) this.fill(inside, each); } },
      h("summary", { "aria-label": told.moreOf(each.name) }, told.more), inside);
    return h("article.tile", { "data-skill": each.name },
      h("div.row.spread", {}, h("b", {}, each.name), h("span.state", {}, told.states[each.state])),
      each.description && h("p", { dir: "auto" }, each.description),
      each.why && h("p.why", {}, each.why),
      facts([told.sources[each.source], each.hides && told.hides(told.sources[each.hides]), each.always && told.always, each.pin && told.pin(each.pin, each.origin)]),
      details,
      each.source === "installed" && h("div.row", {}, h("button.small", { type: "button", "aria-label": told.removeNamed(each.name), onclick: () => this.forget(each) }, told.remove)));
  }

  async fill(inside, each) {
    try {
      const { skill } = await get(at(each.name));
      const decide = (allow) => this.done(post(`${at(each.name)}/change`, { held: skill.held, allow }));
      const held = skill.held ? [
        h("p.why", {}, told.heldBack), h("pre", { tabindex: "0", role: "region", "aria-label": told.changeOf(each.name) }, skill.change),
        h("div.row", {},
          h("button.small.primary", { type: "button", "aria-label": told.acceptNamed(each.name), onclick: () => decide(true) }, told.accept),
          h("button.small", { type: "button", "aria-label": told.refuseNamed(each.name), onclick: () => decide(false) }, told.refuse))] : [];
      const text = skill.text ? [...listed(told.look, skill.warnings), ...listed(told.asks, skill.asks),
        h("p.hint", {}, told.files(skill.files.join(", "))), h("pre", { tabindex: "0", role: "region", "aria-label": told.text(each.name) }, skill.text)] : [];
      inside.replaceChildren(...held, ...text);
    } catch (error) { inside.replaceChildren(h("p.why", {}, error.message)); }
  }

  async done(deed) {
    try { toast((await deed).told); } catch (error) { toast(error.message, "bad"); }
    await this.draw();
  }

  async forget(each) {
    if (await ask({ title: told.removeTitle(each.name), text: told.removeText, yes: told.remove, grave: true })) await this.done(remove(at(each.name)));
  }

  /** An archive is kept as any file that one sends, reviewed, and installed as what was reviewed. */
  form() {
    const file = h("input", { type: "file", "aria-label": told.choose, accept: ".zip,.tar,.tgz,.gz,.bz2,.xz" });
    const path = h("input", { "aria-label": told.path, maxlength: 240, spellcheck: "false", autocapitalize: "off" });
    const wrong = h("p.wrong", { role: "alert" });
    const submit = async (event) => {
      event.preventDefault();
      wrong.textContent = "";
      const [chosen] = file.files;
      if (!chosen) { file.focus(); return; }
      try {
        const kept = await upload(chosen);
        const asked = { file: kept.file, name: chosen.name.slice(0, 200), path: path.value.trim() };
        this.show((await post("/api/skill-reviews", asked)).review, asked);
      } catch (error) { wrong.textContent = error.message; }
    };
    this.adding.replaceChildren(h("form.tile.skill-form", { onsubmit: submit },
      line(told.choose, file), line(told.path, path),
      wrong, h("div.row", {}, h("button.primary", { type: "submit" }, told.review))));
  }

  show(review, asked) {
    const install = async () => { await this.done(post("/api/skills", { ...asked, pin: review.pin, replace: review.installed })); this.form(); };
    const go = h("button.primary", { type: "button", onclick: install }, (review.installed ? told.replace : told.install)(review.name));
    this.adding.replaceChildren(h("article.tile.skill-form", { "data-review": review.name },
      h("b", {}, review.name), h("p", { dir: "auto" }, review.description), facts([told.size(review.files, review.size.toLocaleString()), `${told.pinned} ${review.pin}`]),
      ...listed(told.look, review.warnings), ...listed(told.asks, review.asks), ...listed(told.differs, review.changes),
      h("div.row", {}, go, h("button", { type: "button", onclick: () => this.form() }, told.cancel))));
    go.focus();
  }

  reconnected() {} // what is being read stays
}
