// Where one writes: the field, files, what can be completed, what was said before.

import { blob, upload } from "./api.js";
import { h, icon, iconButton, toast } from "./dom.js";
import { draftOf, keepDraft } from "./drafts.js";
import { enlarged, isPicture } from "./files.js";
import { say } from "./say.js";

export class Composer {
  /** `acts` is {send(text, files), stop(), background(), running(), said(), paths()}. */
  constructor(acts, session) {
    this.acts = acts;
    this.field = h("textarea", {
      rows: 1, placeholder: say.askAnything, "aria-label": say.message, enterkeyhint: "send", dir: "auto", "aria-autocomplete": "list",
      oninput: () => this.changed(), onkeydown: (event) => this.typed(event), onpaste: (event) => this.pasted(event),
      onblur: () => this.completion?.close(),
    });
    this.completions = h("div.completions");
    this.attached = h("div.row.attached", { hidden: true });
    this.why = h("p.wrong", { role: "alert" });
    this.sendButton = h("button.round.primary", { type: "submit", "aria-label": say.send, title: say.sendKey }, icon("send"));
    this.stopButton = h("button.round.stop", { type: "button", "aria-label": say.stop, title: say.stopKey, hidden: true, onclick: () => acts.stop() }, icon("stop"));
    this.backButton = h("button.round.ghost.back", { type: "button", "aria-label": say.toBackground, title: say.toBackground, hidden: true, onclick: () => acts.background() }, icon("M6 4v9h12M14 9l4 4-4 4M6 20h12"));
    const picker = h("input", { type: "file", multiple: true, hidden: true, onchange: () => { this.attach(picker.files); picker.value = ""; } });
    this.node = h("form.composer", { onsubmit: (event) => { event.preventDefault(); this.send(); } },
      this.completions, this.why, this.attached, h("div.line", {},
        iconButton("clip", say.attach, () => picker.click()), picker, this.field, this.backButton, this.stopButton, this.sendButton));
    this.catchDrops();
    this.open(session);
  }

  /** Show what was written for this session and not sent. */
  open(session) {
    this.session = session;
    this.draft = draftOf(session);
    this.field.value = this.draft.text;
    this.listFiles();
    this.sized();
    this.why.textContent = this.draft.why;
  }

  /** A file that is dropped anywhere is attached; the browser would leave the page for it. */
  catchDrops() {
    this.veil = h("div.drop", { hidden: true, "aria-hidden": "true" }, h("span", {}, icon("clip"), say.dropHere));
    const holds = (event) => event.dataTransfer?.types.includes("Files");
    const listeners = {
      dragenter: (event) => { if (holds(event)) this.veil.hidden = false; },
      dragover: (event) => { if (holds(event)) event.preventDefault(); },
      dragleave: (event) => { if (!event.relatedTarget) this.veil.hidden = true; },
      drop: (event) => { this.veil.hidden = true; if (holds(event)) { event.preventDefault(); if (!this.field.disabled) this.attach(event.dataTransfer.files); } },
    };
    for (const [name, listener] of Object.entries(listeners)) window.addEventListener(name, listener);
    this.close = () => { for (const [name, listener] of Object.entries(listeners)) window.removeEventListener(name, listener); };
    this.node.append(this.veil);
  }

  get uploading() { return this.draft.files.some((each) => !each.kept); }

  /** Files that are on their way are waited for. */
  send() {
    const { draft } = this;
    const text = this.field.value.trim();
    if ((!text && !draft.files.length) || this.field.disabled) return;
    this.sends = this.uploading;
    this.listFiles();
    if (this.sends) return;
    this.acts.send(text, draft.files.map((each) => each.kept));
    draft.files = [];
    this.write("", false);
  }

  /** Put a text into the field. */
  write(text, focus = true) {
    this.field.value = text;
    this.changed();
    this.listFiles();
    this.completion?.close();
    if (focus) this.field.focus();
  }

  changed() {
    this.draft.text = this.field.value;
    this.draft.why = this.why.textContent = "";
    this.past = undefined;
    keepDraft(this.session);
    this.sized();
    this.complete();
  }

  /** Loaded with the first letter that can be completed. */
  async complete() {
    if (!this.completion && /^\s*\/|@/.test(this.field.value)) {
      const { Completion } = await import("./complete.js");
      this.completion ??= new Completion(this.field, this.acts.paths);
      this.completions.replaceChildren(this.completion.node);
      this.field.setAttribute("aria-controls", this.completion.node.id);
    }
    await this.completion?.look();
  }

  sized() {
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight, innerHeight * 0.4)}px`;
  }

  typed(event) {
    if (event.isComposing || this.completion?.typed(event)) return;
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); this.send(); }
    else if (event.key === "Escape" && this.acts.running()) { event.preventDefault(); this.acts.stop(); }
    else if (event.key === "ArrowUp" && (!this.field.value || this.past !== undefined)) this.recall(event, 1);
    else if (event.key === "ArrowDown" && this.past !== undefined) this.recall(event, -1);
  }

  /** What was said before, as a shell has it. */
  recall(event, step) {
    const said = this.acts.said();
    const at = (this.past ?? -1) + step;
    if (at >= said.length) return;
    event.preventDefault();
    this.write(at < 0 ? "" : said[said.length - 1 - at]);
    this.past = at < 0 ? undefined : at;
  }

  pasted(event) {
    if (event.clipboardData.files.length) { event.preventDefault(); this.attach(event.clipboardData.files); }
  }

  async attach(files) {
    const { draft, session } = this; // whose they are, also when another conversation is opened meanwhile
    const chosen = [...files].map((file) => ({ file, each: { name: file.name, src: isPicture(file.type) ? URL.createObjectURL(file) : "" } }));
    draft.files.push(...chosen.map(({ each }) => each)); // all of them stand there before the first is kept
    this.listFiles();
    for (const { file, each } of chosen) {
      try { each.kept = await upload(file); } catch (error) {
        draft.files = draft.files.filter((other) => other !== each);
        this.sends = false; // what was to be said with it is not said without it
        toast(`${file.name}: ${error.message}`, "bad");
      }
      keepDraft(session);
      this.listFiles();
    }
    if (this.sends && draft === this.draft && !this.uploading) this.send();
  }

  listFiles() {
    const { files } = this.draft;
    this.attached.hidden = !files.length;
    this.attached.replaceChildren(...files.map((each) => this.chip(each)), ...(this.sends && this.uploading ? [h("span.facts", { role: "status" }, say.sendsThen)] : []));
  }

  chip(each) {
    const drop = () => { this.draft.files = this.draft.files.filter((other) => other !== each); keepDraft(this.session); this.listFiles(); };
    return h(`span.chip${each.kept ? "" : ".busy"}`, {}, thumbnail(each), each.name, iconButton("close", say.removeFile(each.name), drop));
  }
}

function thumbnail(each) {
  if (!each.src && !isPicture(each.kept?.mime ?? "")) return icon("clip");
  const shown = h("img", { alt: "", src: each.src || undefined });
  if (!each.src) blob(`/api/files/${each.kept.file}`).then((data) => { shown.src = each.src = URL.createObjectURL(data); }, () => shown.replaceWith(icon("clip")));
  return h("button.thumb", { type: "button", "aria-label": say.enlarge(each.name), onclick: () => enlarged(shown.src, each.name) }, shown);
}
