// A conversation as it is shown: a fold over its log. Each entry is added once, in order; drafts of running answers stand
// below until the log has the answer.

import { Card } from "./card.js";
import { copy, h, icon, iconButton } from "./dom.js";
import { Draft } from "./draft.js";
import { attachment, linked, madeFile } from "./files.js";
import { markdown } from "./markdown.js";
import { say } from "./say.js";
import { Steps } from "./steps.js";
import { clock, count, dollars, lasted, moment } from "./words.js";

const ENCLOSED = /^\[[^\n]+, kept as (file:[0-9a-f]{12})[^\n]*\](?:\n|$)/; // a text file that came with a message
const SILENT = /^[\s`*"'.!]*HEARTBEAT_OK[\s`*"'.!]*$/;
const SHORT = 1_500; // characters of such a file that are shown without being asked for

/** Where a turn ends, as far as its entries tell. */
export function closes(entry) {
  return ["stopped", "gave_up"].includes(entry.kind) || (entry.kind === "model_said" && !entry.calls?.length && Boolean(entry.text.trim()));
}

export class Log {
  /** `acts` are what buttons do: {regenerate, edit, fork, speak, waits, others}. */
  constructor(acts) {
    this.acts = acts;
    this.node = h("div.log", { role: "log", "aria-label": say.conversation, "aria-live": "polite" });
    this.drafts = h("div.drafts", { "aria-live": "off" }); // read aloud when it is whole
    this.node.append(this.drafts);
    this.seq = 0;
    this.choice = ""; // the model that someone has chosen here
    this.cards = new Map();
    this.early = new Map(); // what calls have said whose cards are not there yet
    this.asking = new Set(); // the calls that wait for permission
    this.pending = new Map();
    this.draft = null;
    this.ended = 0; // up to where the log has what became of drafts
    this.called = 0;
    this.lastUser = this.lastAnswer = this.beat = null;
    this.open = false; // whether a turn is, as the log has it; a draft may be ahead of it
    this.begin(0);
  }

  get running() { return this.open || this.draft !== null; }

  begin(at) {
    this.turn = { input: 0, output: 0, cost: 0, began: at, made: new Map(), runs: [], failures: [] };
    this.steps = null;
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
    if (!this.open) this.begin(entry.at);
    this.open = true;
    this.steps = null;
    if (entry.source?.startsWith("heartbeat:")) { this.beat = this.put(heartbeat(entry, text)); return; }
    this.beat = null;
    this.lastUser?.classList.remove("last");
    const bubble = h("div.bubble", { title: moment(entry.at) }, entry.parts.map((part) => this.part(part, entry.links ?? [])));
    const shown = h("article.said.user.last", { "aria-label": say.you, "data-seq": entry.seq }, bubble,
      h("div.acts", {}, h("time.facts", {}, clock(entry.at)),
        h("span.at-rest", {}, iconButton("edit", say.editMessage, () => this.edit(shown, entry.seq, text))),
        iconButton("copy", say.copy, () => copy(text))));
    this.lastUser = this.put(shown);
  }

  async edit(shown, seq, text) {
    (await import("./editing.js")).edit(shown, text, (said) => this.acts.edit(seq, said, shown === this.lastUser));
  }

  part(part, links) {
    const [head, ref] = part.type === "text" ? ENCLOSED.exec(part.text) ?? [] : ["", part.file];
    const link = links.find((each) => each.file === ref);
    if (!link) return h("div.plain", { dir: "auto" }, part.text ?? part.name);
    const rest = (part.text ?? "").slice(head.length);
    return [attachment(link), rest && rest.length <= SHORT && h("div.plain", { dir: "auto" }, rest)];
  }

  model_called(entry) {
    this.called = entry.at;
    this.open = true;
  }

  model_said(entry) {
    const read = this.draft?.thinking.open; // who reads what it thinks goes on reading
    this.dropDraft(entry.seq);
    this.count(entry);
    const thought = entry.reasoning ? reasoning(entry.reasoning, say.thoughtFor(lasted(entry.at - this.called)), read) : null;
    const calls = (entry.calls ?? []).map((call, place) => this.card(call, entry, place));
    if (this.beat && !calls.length && SILENT.test(entry.text)) { this.close(); return; } // there was nothing to tell
    if (this.beat) this.beat.hidden = false;
    if (entry.text.trim() || !calls.length) this.tell(entry, thought, !calls.length);
    if (calls.length) this.work(entry, calls, entry.text.trim() ? null : thought);
  }

  count(entry) {
    const { input = 0, output = 0 } = entry.usage ?? {};
    this.turn.input += input;
    this.turn.output += output;
    this.turn.cost = this.turn.cost === null || entry.cost === undefined || entry.cost === null ? null : this.turn.cost + entry.cost;
  }

  card(call, entry, place) {
    const card = new Card(call, entry.at);
    this.cards.set(`${entry.seq}:${place}`, card);
    for (const said of this.early.get(`${entry.seq}:${place}`) ?? []) card.show(...said);
    this.early.delete(`${entry.seq}:${place}`);
    return card;
  }

  tell(entry, thought, last) {
    this.steps = null;
    const block = h("article.said.model", { "aria-label": say.everloop, "data-seq": entry.seq }, thought,
      entry.text.trim() && h("div.prose", {}, markdown(entry.text)));
    if (last) this.finish(block, entry);
    this.put(block);
  }

  work(entry, cards, thought) {
    if (!this.steps) {
      this.steps = new Steps();
      this.turn.runs.push(this.steps);
      this.put(this.steps.node);
    }
    this.steps.add(entry.seq, cards, thought);
  }

  finish(block, entry) {
    if (entry.finish === "length") block.append(note(say.cutOff), this.goOn());
    if (entry.finish === "refused") block.append(note(say.declined));
    if (!entry.text.trim()) return;
    this.close();
    const { input, output, cost, began, made } = this.turn;
    const facts = [entry.model, began ? lasted(entry.at - began) : "", input || output ? say.tokens(count(input), count(output)) : "", cost ? dollars(cost) : "", clock(entry.at)];
    this.lastAnswer?.classList.remove("last");
    block.classList.add("last", "final");
    this.lastAnswer = block;
    if (made.size) block.append(h("div.row.files", { role: "group", "aria-label": say.files }, [...made.values()].map(madeFile)));
    block.append(h("div.acts", {},
      iconButton("copy", say.copyAnswer, () => copy(entry.text)),
      h("span.only-last", {}, iconButton("again", say.answerAgain, () => this.acts.regenerate()), this.acts.others(say.answerWith, icon("fold"))),
      iconButton("fork", say.forkHere, () => this.acts.fork(entry.seq)),
      h("span.facts", { title: moment(entry.at) }, dotted(facts.filter(Boolean)))));
  }

  /** The turn is over. */
  close() {
    this.open = false;
    for (const run of this.turn.runs) run.fold();
  }

  goOn() { return h("div.row.only-last", {}, h("button.small", { type: "button", onclick: () => this.acts.speak(say.goOnSaid) }, say.goOn)); }

  model_failed(entry) {
    this.turn.partial = entry.cut || this.draft?.text;
    this.dropDraft(entry.seq);
    this.turn.failures.push({ text: entry.text, shown: this.put(note(say.callFailed(entry.text))) });
  }

  call_started(entry) { this.cards.get(`${entry.answer}:${entry.place}`)?.start(entry.at); }

  call_returned(entry) {
    this.asking.delete(`${entry.answer}:${entry.place}`);
    const card = this.cards.get(`${entry.answer}:${entry.place}`);
    card?.end(entry);
    if (card?.started && ["unknown", "abandoned"].includes(entry.outcome)) {
      this.put(h("p.note.unknown", { role: "alert" }, say.notKnown(`${card.call.name} ${card.call.args}`)));
    }
    const { made } = this.turn;
    for (const change of entry.changes ?? []) made.delete(change.path);
    for (const media of [...(entry.made ?? []), ...(entry.media ?? [])]) made.set(media.name, linked(entry, media));
  }

  agent_told(entry) {
    this.steps = null;
    const block = h("article.said.model", { "aria-label": say.toldElsewhere, "data-seq": entry.seq },
      h("p.note", {}, say.toldFrom(entry.sender)), h("div.prose", {}, markdown(entry.text)));
    if (entry.links?.length) block.append(h("div.row.files", {}, entry.links.map((link) => attachment(link))));
    this.put(block);
  }

  asked(entry) {
    this.asking.add(`${entry.answer}:${entry.place}`);
    this.cards.get(`${entry.answer}:${entry.place}`)?.ask(entry);
    for (const [key, card] of this.cards) if (key.startsWith(`${entry.answer}:`)) card.wait();
  }

  answered(entry) {
    this.asking.delete(`${entry.answer}:${entry.place}`);
    this.cards.get(`${entry.answer}:${entry.place}`)?.answer(entry);
    for (const [key, card] of this.cards) if (key.startsWith(`${entry.answer}:`) && !card.started) card.began = entry.at;
  }

  /** What was said before the stop stays, from the log or else from the draft. */
  stopped(entry) {
    this.leave(entry.text || this.draft?.text, entry.reasoning);
    this.dropDraft(entry.seq);
    this.close();
    this.put(note(say.stopped));
    if (entry.text) this.offerMore();
  }

  leave(text = "", thought = "") {
    if (!text.trim()) return;
    this.put(h("article.said.model.cut", { "aria-label": say.cutAnswer, "data-seq": this.seq },
      thought && reasoning(thought, say.thoughts), h("div.prose", {}, markdown(text))));
  }

  /** What was said is in the log, so that the model can go on from there. */
  offerMore() {
    this.lastAnswer?.classList.remove("last");
    this.lastAnswer = this.put(h("div.more.last", {}, this.goOn()));
  }

  gave_up(entry) {
    this.leave(entry.cut || this.draft?.text || this.turn.partial, entry.reasoning);
    this.dropDraft(entry.seq);
    this.close();
    for (const { shown } of this.turn.failures) shown.remove(); // it is said once
    const earlier = [...new Set(this.turn.failures.map(({ text }) => text))].filter((text) => !entry.text.startsWith(text));
    const ways = h("div.row");
    this.put(h("div.said.failed", { role: "alert", "data-seq": entry.seq },
      h("strong", {}, say.noAnswer), h("div.prose", {}, markdown(entry.text)),
      earlier.length ? h("details", {}, h("summary", {}, say.triedBefore), h("ul", {}, earlier.map((text) => h("li", {}, text)))) : null,
      ways));
    import("./ways.js").then(({ waysOut }) => ways.append(...waysOut(entry, this.acts)), () => {}); // it is told without
  }

  resumed() { this.put(note(say.resumed)); }

  model_chosen(entry) {
    this.choice = entry.model;
    if (entry.seq > 1) this.put(note(entry.model ? say.answeredBy(entry.model) : say.answeredByUsual));
  }

  compacted(entry) {
    this.put(h("details.summary", {}, h("summary", {}, say.becameSummary), h("div.prose", {}, markdown(entry.summary || say.isEmpty))));
  }

  undoing(entry) {
    this.put(note(say.takenBack(entry.said)));
    for (const each of entry.lasting ?? []) this.put(note(say.lasting(each)));
  }

  taken_back(entry) { if (entry.left) this.put(note(say.fileLeft(entry.left))); }

  // What is being said and is not in the log yet.

  expect(id, text, files, waits) {
    const shown = h("article.said.user.pending", { "aria-label": say.youSending },
      h("div.bubble", {}, h("div.plain", { dir: "auto" }, text), files.map((file) => h("span.chip", {}, icon("clip"), file.name))),
      h("div.acts", {}, h("span.facts", {}, waits ? say.waitsForConnection : this.running ? say.heardNext : say.sending)));
    this.pending.set(id, { text, files, shown, after: this.seq });
    this.acts.waits(this.pending);
    this.drafts.after(shown);
  }

  /** What the notes below unsent messages say, when the connection goes or comes back. */
  connected(open) {
    for (const { shown } of this.pending.values()) shown.querySelector(".facts").replaceChildren(open ? say.sending : say.waitsForConnection);
  }

  forget(id) {
    this.pending.get(id)?.shown.remove();
    if (this.pending.delete(id)) this.acts.waits(this.pending);
  }

  dropPending(text) {
    for (const [id, found] of this.pending) {
      if (found.text.trim() === text.trim() || text.startsWith(found.text)) { this.forget(id); return; }
    }
  }

  streamStart(msg) {
    const draft = new Draft(msg);
    if (draft.called && draft.called <= this.ended) return; // the log was read faster than this came
    this.dropDraft();
    this.draft = draft;
    this.drafts.append(draft.node);
  }

  streamChunk(frame) {
    if (this.draft?.msg !== frame.msg) this.streamStart(frame.msg);
    if (this.draft?.msg === frame.msg) this.draft.take(frame);
  }

  streamEnd(frame) {
    if (this.draft?.msg !== frame.msg) return;
    this.draft.settle();
    if (!frame.kept && !this.draft.text) this.dropDraft();
  }

  /** Without an argument any draft goes; with one, that whose answer the log has at `seq`. */
  dropDraft(seq = Infinity) {
    if (seq < Infinity) this.ended = seq;
    if (!this.draft || this.draft.called > seq) return;
    this.draft.node.remove();
    this.draft = null;
  }

  output(call, text, asks) {
    const [, answer, place] = /:(\d+):(\d+)$/.exec(call) ?? [];
    const key = `${answer}:${place}`;
    if (this.cards.has(key)) this.cards.get(key).show(text, asks);
    else if (asks) this.early.set(key, [...(this.early.get(key) ?? []), [text, asks]]);
  }

  notice(text) { this.put(h("article.said.notice", {}, h("div.prose", {}, markdown(text)))); }
}

/** One after the other, each in one piece, with a dot between two. */
const dotted = (words) => words.flatMap((word, i) => (i < words.length - 1 ? [h("span", {}, `${word} ·`), " "] : h("span", {}, word)));

const note = (text) => h("p.note", { dir: "auto" }, text);

/** What the heartbeat has asked: seen once there is something to tell of it. */
function heartbeat(entry, text) {
  return h("details.reasoning", { hidden: true, "data-seq": entry.seq }, h("summary", { title: moment(entry.at) }, say.heartbeat), h("div.plain", { dir: "auto" }, text));
}

function reasoning(text, title, open = false) {
  return h("details.reasoning", { open }, h("summary", {}, title), h("div.prose", {}, markdown(text)));
}
