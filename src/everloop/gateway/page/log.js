// A conversation as it is shown: a fold over its log. Each entry is added once and in order; drafts of running answers
// stand below and go when the log has the answer itself.

import { likeness } from "./ahead.js";
import { get, post } from "./api.js";
import { copy, h, icon, iconButton, toast } from "./dom.js";
import { codeBlock, markdown } from "./markdown.js";
import { attachment } from "./files.js";
import { count, dollars, lasted, moment } from "./words.js";

const VERDICTS = {
  allowed: "Allowed", denied: "Denied", expired: "Not answered in time", withdrawn: "Withdrawn: you went on",
  unattended: "Nobody was there to be asked",
};
const OUTCOMES = {
  done: "", failed: "failed", denied: "not run", repeated: "not run again", unknown: "outcome not known",
  cancelled: "stopped", abandoned: "given up",
};
const LONGEST = 20_000; // characters of an output that are put on the page at once
const ENCLOSED = /^\[[^\n]+, kept as (file:[0-9a-f]{12})[^\n]*\](?:\n|$)/; // a text file that came with a message
const SHORT = 1_500; // characters of such a file that are shown without being asked for

export class Log {
  /** `acts` are what buttons do: {regenerate, edit, fork}. */
  constructor(acts) {
    this.acts = acts;
    this.node = h("div.log", { role: "log", "aria-label": "Conversation", "aria-live": "polite" });
    this.drafts = h("div.drafts", { "aria-live": "off" }); // read aloud when it is whole
    this.node.append(this.drafts);
    this.seq = 0;
    this.choice = ""; // the model that someone has chosen here
    this.cards = new Map();
    this.asking = new Set(); // the calls that wait for permission
    this.pending = new Map();
    this.draft = null;
    this.called = 0;
    this.running = false;
    this.open = false; // whether a turn is, by the log alone: a draft may be seen before what it answers
    this.lastUser = this.lastAnswer = null;
    this.made = new Map(); // the files of the running turn, by name
    this.turn = { input: 0, output: 0, cost: 0, began: 0 };
  }

  put(node) { this.drafts.before(node); return node; }

  add(entry) {
    if (entry.seq <= this.seq) return;
    this.seq = entry.seq;
    this[entry.kind]?.(entry);
  }

  user_said(entry) {
    const text = entry.parts.filter((part) => part.type === "text" && !ENCLOSED.test(part.text)).map((part) => part.text).join("\n");
    this.dropPending(text);
    if (!this.open) {
      this.turn = { input: 0, output: 0, cost: 0, began: entry.at };
      this.made.clear();
    }
    this.running = this.open = true;
    this.lastUser?.classList.remove("last");
    this.lastUser = this.put(h("article.said.user.last", { "aria-label": "You", "data-seq": entry.seq },
      h("div.bubble", { title: moment(entry.at) }, entry.parts.map((part) => this.part(part, entry.links ?? []))),
      h("div.acts", {},
        h("span.only-last", {}, iconButton("edit", "Edit and ask again", () => this.acts.edit(text))),
        iconButton("copy", "Copy", () => copy(text)))));
  }

  part(part, links) {
    const [head, ref] = part.type === "text" ? ENCLOSED.exec(part.text) ?? [] : ["", part.file];
    const link = links.find((each) => each.file === ref);
    if (!link) return h("div.plain", {}, part.text ?? part.name);
    const rest = (part.text ?? "").slice(head.length);
    return [attachment(link), rest && rest.length <= SHORT && h("div.plain", {}, rest)];
  }

  model_called(entry) {
    this.called = entry.at;
    this.running = true;
  }

  model_said(entry) {
    this.dropDraft(entry.seq);
    this.turn.input += entry.usage?.input ?? 0;
    this.turn.output += entry.usage?.output ?? 0;
    this.turn.cost = this.turn.cost === null || entry.cost === undefined || entry.cost === null ? null : this.turn.cost + entry.cost;
    const block = h("article.said.model", { "aria-label": "everloop", "data-seq": entry.seq });
    if (entry.reasoning) block.append(reasoning(entry.reasoning, `Thought for ${lasted(entry.at - this.called)}`));
    if (entry.text.trim()) block.append(h("div.prose", {}, markdown(entry.text)));
    const calls = entry.calls ?? [];
    calls.forEach((call, place) => {
      const card = new Card(call, entry.at);
      this.cards.set(`${entry.seq}:${place}`, card);
      block.append(card.node);
    });
    if (!calls.length) this.finish(block, entry);
    this.put(block);
  }

  finish(block, entry) {
    if (entry.finish === "length") block.append(note("The answer was cut off at the limit of tokens. Say “go on”, or raise max_tokens."));
    if (entry.finish === "refused") block.append(note("The model declined to say more."));
    if (!entry.text.trim()) return;
    this.running = this.open = false;
    const { input, output, cost, began } = this.turn;
    const facts = [entry.model, began ? lasted(entry.at - began) : "", input || output ? `${count(input)} in, ${count(output)} out` : "", cost ? dollars(cost) : ""];
    this.lastAnswer?.classList.remove("last");
    block.classList.add("last", "final");
    this.lastAnswer = block;
    if (this.made.size) block.append(h("div.row.files", { role: "group", "aria-label": "Files" }, [...this.made.values()].map(attachment)));
    block.append(h("div.acts", {},
      iconButton("copy", "Copy the answer", () => copy(entry.text)),
      h("span.only-last", {}, iconButton("again", "Answer again", () => this.acts.regenerate())),
      iconButton("fork", "Continue from here in a copy", () => this.acts.fork(entry.seq)),
      h("span.facts", { title: moment(entry.at) }, facts.filter(Boolean).join(" · "))));
  }

  model_failed(entry) {
    this.dropDraft(entry.seq);
    this.failure = { text: entry.text, shown: this.put(note(`A model call failed: ${entry.text}`)) };
  }

  call_started(entry) { this.cards.get(`${entry.answer}:${entry.place}`)?.start(entry.at); }
  call_returned(entry) {
    this.asking.delete(`${entry.answer}:${entry.place}`);
    const card = this.cards.get(`${entry.answer}:${entry.place}`);
    card?.end(entry);
    if (card?.started && ["unknown", "abandoned"].includes(entry.outcome)) {
      this.put(h("p.note.unknown", { role: "alert" }, `Not known whether this took effect: ${card.call.name} ${card.call.args}`));
    }
    for (const change of entry.changes ?? []) this.made.delete(change.path);
    for (const media of [...(entry.made ?? []), ...(entry.media ?? [])]) this.made.set(media.name, linked(entry, media));
  }

  agent_told(entry) {
    const block = h("article.said.model", { "aria-label": "everloop, from another conversation", "data-seq": entry.seq },
      h("p.note", {}, `Told from ${entry.sender}`), h("div.prose", {}, markdown(entry.text)));
    if (entry.links?.length) block.append(h("div.row.files", {}, entry.links.map(attachment)));
    this.put(block);
  }

  asked(entry) {
    this.asking.add(`${entry.answer}:${entry.place}`);
    this.cards.get(`${entry.answer}:${entry.place}`)?.ask(entry);
  }

  answered(entry) {
    this.asking.delete(`${entry.answer}:${entry.place}`);
    this.cards.get(`${entry.answer}:${entry.place}`)?.answer(entry);
  }

  stopped(entry) {
    this.dropDraft(entry.seq);
    this.running = this.open = false;
    this.cutShort(entry, entry.text);
    this.put(note(entry.text ? "Stopped. Say “go on” to have the rest." : "Stopped."));
  }

  /** What had been said of an answer that ended in the middle. */
  cutShort(entry, text) {
    if (!text && !entry.reasoning) return;
    this.put(h("article.said.model.cut", { "aria-label": "everloop, cut short", "data-seq": entry.seq },
      entry.reasoning && reasoning(entry.reasoning, "Thought"), text && h("div.prose", {}, markdown(text))));
  }

  gave_up(entry) {
    this.dropDraft(entry.seq);
    this.running = this.open = false;
    this.cutShort(entry, entry.cut);
    if (this.failure && entry.text.startsWith(this.failure.text)) this.failure.shown.remove(); // it is said once
    this.put(h("article.said.failed", { role: "alert" },
      h("strong", {}, entry.cut ? "The answer broke off" : "No answer this time"), h("div.prose", {}, markdown(entry.text)),
      h("div.row", {}, h("button", { type: "button", onclick: () => this.acts.regenerate() }, icon("again"), "Try again"))));
  }

  resumed() { this.put(note("everloop was restarted, and went on where it was.")); }
  model_chosen(entry) {
    this.choice = entry.model;
    this.put(note(entry.model ? `Answered by ${entry.model} from here on.` : "Answered by the usual model again."));
  }

  compacted(entry) {
    this.put(h("details.summary", {}, h("summary", {}, "What was said before became a summary"), h("div.prose", {}, markdown(entry.summary || "(empty)"))));
  }
  undoing(entry) {
    this.put(note(`Taken back: ${entry.said}`));
    for (const each of entry.lasting ?? []) this.put(note(`This could not be taken back: ${each}`));
  }

  taken_back(entry) { if (entry.left) this.put(note(`A file was left as it is: ${entry.left}.`)); }

  // What is being said and is not in the log yet.

  expect(id, text, files) {
    const shown = h("article.said.user.pending", { "aria-label": "You, being sent" },
      h("div.bubble", {}, h("div.plain", {}, text), files.map((file) => h("span.chip", {}, icon("clip"), file.name))),
      h("div.acts", {}, h("span.facts", {}, this.running ? "will be heard at the next step" : "sending …")));
    this.pending.set(id, { text, shown });
    this.drafts.after(shown);
  }

  refuse(id, sentence) {
    const found = this.pending.get(id);
    if (!found) return false;
    found.shown.classList.add("refused");
    found.shown.querySelector(".facts").replaceChildren(sentence);
    this.pending.delete(id);
    return true;
  }

  forget(id) {
    this.pending.get(id)?.shown.remove();
    this.pending.delete(id);
  }

  dropPending(text) {
    for (const [id, found] of this.pending) {
      if (found.text.trim() === text.trim() || text.startsWith(found.text)) { this.forget(id); return; }
    }
  }

  streamStart(msg) {
    this.dropDraft();
    this.draft = new Draft(msg);
    this.running = true;
    this.drafts.append(this.draft.node);
  }

  streamChunk(frame) {
    if (this.draft?.msg !== frame.msg) this.streamStart(frame.msg);
    this.draft.take(frame);
  }

  streamEnd(frame) {
    if (this.draft?.msg !== frame.msg) return;
    if (frame.kept) this.draft.settle();
    else this.dropDraft();
  }

  /** Without an argument any draft goes; with one, that whose answer the log has at `seq`. */
  dropDraft(seq = Infinity) {
    const begun = Number(/(\d+)$/.exec(String(this.draft?.msg))?.[1] ?? 0);
    if (!this.draft || begun > seq) return;
    this.draft.node.remove();
    this.draft = null;
  }

  output(call, text) {
    const [, answer, place] = /:(\d+):(\d+)$/.exec(call) ?? [];
    this.cards.get(`${answer}:${place}`)?.show(text);
  }

  notice(text) { this.put(h("article.said.notice", {}, h("div.prose", {}, markdown(text)))); }
}

const note = (text) => h("p.note", {}, text);
const linked = (entry, { file }) => (entry.links ?? []).find((link) => link.file === file) ?? {};

function reasoning(text, title) {
  return h("details.reasoning", {}, h("summary", {}, title), h("div.prose", {}, markdown(text)));
}

/** A running answer. What stands before the last blank line is drawn once, the rest anew with each frame. */
class Draft {
  constructor(msg) {
    this.msg = msg;
    this.text = this.thoughts = "";
    this.n = 0;
    this.drawn = 0;
    this.stable = h("div");
    this.tail = h("div");
    this.thinking = h("details.reasoning.live", { hidden: true }, h("summary", {}, "Thinking …"), h("div.prose.plain", {}));
    this.dots = h("div.dots", { role: "status", "aria-label": "everloop is working" }, h("i"), h("i"), h("i"));
    this.node = h("article.said.model.draft", { "aria-label": "everloop, answering" },
      this.thinking, h("div.prose", {}, this.stable, this.tail), this.dots);
  }

  take({ n, delta, reasoning: thought }) {
    if (n !== undefined && n <= this.n) return; // we have it already
    this.n = n ?? this.n;
    this.text += delta ?? "";
    this.thoughts += thought ?? "";
    this.planned ??= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.planned = undefined;
    if (this.thoughts) {
      this.thinking.hidden = false;
      this.thinking.lastChild.textContent = this.thoughts;
    }
    const until = lastBreak(this.text, this.drawn);
    if (until > this.drawn) {
      this.stable.append(markdown(this.text.slice(this.drawn, until)));
      this.drawn = until;
    }
    this.tail.replaceChildren(markdown(this.text.slice(this.drawn)));
    this.node.dispatchEvent(new CustomEvent("grown", { bubbles: true }));
  }

  settle() { this.dots.hidden = true; }
}

/** The end of the last whole block: a blank line that no fence is open around. */
function lastBreak(text, from) {
  let at = from;
  let open = false;
  let found = from;
  for (const line of text.slice(from).split("\n")) {
    if (/^\s*(```|~~~)/.test(line)) open = !open;
    at += line.length + 1;
    if (!open && !line.trim() && at <= text.length) found = at;
  }
  return found;
}

/** A tool call: what it was given, what came of it, how long it took; a question, while it waits for permission. */
class Card {
  constructor(call, at) {
    this.call = call;
    this.began = at;
    this.status = h("span.status", {}, "running …");
    this.output = h("div.output");
    this.asking = h("div.asking", { hidden: true });
    const args = pretty(call.args);
    this.details = h("details.card", {},
      h("summary", {}, icon("tool"), h("b", {}, call.name), h("span.gist", {}, gist(call.args)), this.status),
      h("div.inside", {}, h("h4", {}, "Arguments"), codeBlock(args.text, args.kind), this.output));
    this.node = h("div.call.busy", {}, this.details, this.asking);
  }

  start(at) { this.began = at; this.started = true; }

  show(text) {
    this.live ??= this.section("Output so far");
    this.live.textContent = (this.live.textContent + text).slice(-LONGEST);
  }

  section(title) {
    const pre = h("pre.result", { tabindex: "0" });
    this.output.replaceChildren(h("h4", {}, title), pre);
    return pre;
  }

  end(entry) {
    this.node.classList.remove("busy", "asks");
    this.asking.hidden = true;
    const word = OUTCOMES[entry.outcome ?? "done"] ?? entry.outcome;
    if (word) this.node.classList.add("bad");
    this.status.replaceChildren([word, lasted(entry.at - this.began)].filter(Boolean).join(" · "));
    const pre = this.section(entry.origin ? `Result, in the words of ${entry.origin}` : "Result");
    pre.textContent = entry.text.slice(0, LONGEST);
    const more = [];
    if (entry.text.length > LONGEST) more.push(h("p.note", {}, `${count(entry.text.length)} characters; the first ${count(LONGEST)} are shown.`));
    if (entry.file) more.push(attachment({ ...linked(entry, entry), name: "the whole result" }));
    more.push(...(entry.media ?? []).map((media) => attachment(linked(entry, media))));
    more.push(...(entry.changes ?? []).map((change) => h("p.note", {}, `${changed(change)} ${change.path}`)));
    this.output.append(...more);
  }

  async ask(entry) {
    this.node.classList.add("asks");
    this.node.classList.remove("busy");
    this.status.replaceChildren("waits for you");
    this.asking.hidden = false;
    const buttons = [
      h("button.primary", { type: "button", onclick: () => this.decide(entry.approval, true) }, icon("check"), "Allow"),
      h("button", { type: "button", onclick: () => this.decide(entry.approval, false) }, "Deny")];
    this.text = h("pre.exact", { tabindex: "0" }, `${this.call.name} ${this.call.args}`);
    this.asking.replaceChildren(
      h("p", {}, h("strong", {}, `May I run ${this.call.name}?`)), this.text, chips(entry.risk ?? {}),
      h("div.row", { role: "group", "aria-label": "Your answer" }, buttons));
    try { // the exact call, with whatever cannot be seen made visible
      const waiting = (await get("/api/approvals")).approvals.find((each) => each.id === entry.approval);
      if (!waiting) return;
      this.text.textContent = waiting.text;
      this.asking.append(...[likeness(waiting, (ahead) => this.decide(entry.approval, true, ahead))].filter(Boolean));
    } catch { /* the arguments above are the same call */ }
  }

  async decide(approval, allow, ahead = null) {
    for (const button of this.asking.querySelectorAll("button")) button.disabled = true;
    try {
      await post(`/api/approvals/${approval}`, { allow, ahead });
      this.status.replaceChildren(allow ? "allowed" : "denied");
    } catch (error) {
      toast(error.message, "bad");
      for (const button of this.asking.querySelectorAll("button")) button.disabled = false;
    }
  }

  answer(entry) {
    this.node.classList.remove("asks");
    this.node.classList.add("busy");
    this.asking.hidden = true;
    this.began = entry.at;
    this.status.replaceChildren(entry.verdict === "allowed" ? "running …" : VERDICTS[entry.verdict] ?? entry.verdict);
  }
}

function chips(risk) {
  const words = [`${risk.level ?? "low"} risk`, risk.mutates && "changes something", risk.leaves && "leaves the sandbox", risk.privileged && "wants privileges"];
  return h("div.row.chips", {}, words.filter(Boolean).map((word) => h(`span.chip.${risk.level ?? "low"}`, {}, word)), risk.why && h("span.why", {}, risk.why));
}

function changed({ before, now }) {
  if (before === "new") return "Made";
  return now === "gone" ? "Removed" : "Changed";
}

function pretty(args) {
  try {
    const value = JSON.parse(args);
    const only = Object.values(value);
    if (only.length === 1 && typeof only[0] === "string" && only[0].includes("\n")) return { text: only[0], kind: Object.keys(value)[0] };
    return { text: JSON.stringify(value, null, 2), kind: "json" };
  } catch { return { text: args, kind: "text" }; }
}

/** What a call is about, in a few words: its first short text. */
function gist(args) {
  try {
    const found = Object.values(JSON.parse(args)).find((value) => typeof value === "string" || typeof value === "number");
    return String(found ?? "").replace(/\s+/g, " ").slice(0, 120);
  } catch { return ""; }
}
