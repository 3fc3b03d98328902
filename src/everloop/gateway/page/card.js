// A tool call: what it was given, what came of it, how long it took; a question, while it waits for permission.

import { get, post } from "./api.js";
import { h, icon, toast } from "./dom.js";
import { attachment, linked } from "./files.js";
import { gist, given } from "./given.js";
import { say } from "./say.js";
import { count, lasted } from "./words.js";

const LONGEST = 20_000; // characters of an output that are put on the page at once
const TROUBLE = new Set(["failed", "unknown", "abandoned"]); // what a person might have to look after

export class Card {
  constructor(call, at) {
    this.call = call;
    this.began = at;
    this.status = h("span.status", {}, say.running);
    this.output = h("div.output");
    this.asking = h("div.asking", { hidden: true });
    this.details = h("details.card", { ontoggle: () => this.fill() },
      h("summary", {}, icon("tool"), h("b", {}, call.name), h("span.gist", {}, gist(call.args)), this.status),
      h("div.inside", {}, this.output));
    this.node = h("div.call.busy", {}, this.details, this.asking);
  }

  /** What it was given is drawn when someone looks: most cards stay closed. */
  fill() {
    if (this.filled) return;
    this.filled = true;
    this.output.before(...given(this.call.args));
  }

  start(at) { this.began = at; this.started = true; }

  /** Another call of the same answer has to be allowed first. */
  wait() { if (!this.started && this.node.classList.contains("busy")) this.status.replaceChildren(say.waitsBehind); }

  /** What it says meanwhile; a question to a person is not left behind a closed card. */
  show(text, asks = false) {
    this.live ??= this.section(say.outputSoFar);
    this.live.textContent = (this.live.textContent + text).slice(-LONGEST);
    if (asks) this.details.open = true;
  }

  section(title) {
    const pre = h("pre.result", { tabindex: "0", dir: "auto" });
    this.output.replaceChildren(h("p.over", {}, title), pre);
    return pre;
  }

  end(entry) {
    this.node.classList.remove("busy", "asks");
    this.asking.hidden = true;
    const outcome = entry.outcome ?? "done";
    this.ended = entry.at;
    this.failed = TROUBLE.has(outcome);
    this.node.classList.toggle("bad", this.failed);
    const word = outcome === "denied" ? say.verdicts[this.verdict] ?? say.notAllowed : say.outcomes[outcome] ?? outcome;
    this.status.replaceChildren([word, outcome === "denied" ? "" : lasted(entry.at - this.began)].filter(Boolean).join(" · "));
    const pre = this.section(entry.origin ? say.resultOf(entry.origin) : say.result);
    pre.textContent = entry.text.slice(0, LONGEST);
    const more = [];
    if (entry.text.length > LONGEST) more.push(h("p.note", {}, say.shortened(count(entry.text.length), count(LONGEST))));
    if (entry.file) more.push(attachment({ ...linked(entry, entry), name: say.wholeResult }));
    more.push(...(entry.media ?? []).map((media) => attachment(linked(entry, media))));
    more.push(...(entry.changes ?? []).map((change) => h("p.note", {}, changed(change))));
    this.output.append(...more);
  }

  async ask(entry) {
    this.node.classList.add("asks");
    this.node.classList.remove("busy");
    this.status.replaceChildren(say.waitsForYou);
    this.asking.hidden = false;
    this.asking.replaceChildren(...question({ ...entry, id: entry.approval, tool: this.call.name, text: `${this.call.name} ${this.call.args}` }, (allow, ahead) => this.decide(entry.approval, allow, ahead)));
    try { // the exact call, with whatever cannot be seen made visible, and what else may be chosen
      const waiting = (await get("/api/approvals")).approvals.find((each) => each.id === entry.approval);
      if (waiting && !this.asking.hidden) this.asking.replaceChildren(...question(waiting, (allow, ahead) => this.decide(entry.approval, allow, ahead)));
    } catch { /* the arguments above are the same call */ }
  }

  async decide(approval, allow, ahead = null) {
    if (!await decided(this.asking, approval, allow, ahead)) return;
    this.status.replaceChildren(allow ? say.allowed : say.verdicts.denied);
    this.details.firstChild.focus(); // the button that had the focus goes
  }

  answer(entry) {
    this.verdict = entry.verdict;
    this.node.classList.remove("asks");
    this.node.classList.add("busy");
    this.asking.hidden = true;
    this.began = entry.at;
    this.status.replaceChildren(entry.verdict === "allowed" ? say.running : say.verdicts[entry.verdict] ?? entry.verdict);
  }
}

/** A question as it is asked, here and among all that wait: the exact call, the risk, and the answers. */
export function question(asked, decide) {
  return [
    h("p", {}, h("strong", {}, say.mayIRun(asked.tool))),
    h("pre.exact", { tabindex: "0" }, asked.text), chips(asked.risk ?? {}),
    h("div.row", { role: "group", "aria-label": say.yourAnswer },
      h("button.primary", { type: "button", onclick: () => decide(true, null) }, icon("check"), say.allow),
      h("button", { type: "button", onclick: () => decide(false, null) }, say.deny)),
    furtherAnswers(asked, (ahead) => decide(true, ahead))];
}

/** What a yes may allow beyond this call; the form for it comes when there is something to choose. */
function furtherAnswers(asked, allow) {
  const place = h("div", { hidden: true });
  if (asked.choices?.length) import("./ahead.js").then(({ likeness }) => place.replaceWith(likeness(asked, allow)), () => {}); // yes and no are there
  return place;
}

/** Whether the answer was taken. */
export async function decided(node, approval, allow, ahead) {
  const buttons = [...node.querySelectorAll("button")];
  for (const button of buttons) button.disabled = true;
  try {
    await post(`/api/approvals/${approval}`, { allow, ahead });
    return true;
  } catch (error) {
    toast(error.message, "bad");
    for (const button of buttons) button.disabled = false;
    return false;
  }
}

function chips(risk) {
  const level = risk.level ?? "low";
  const words = [say.risks[level] ?? level, risk.mutates && say.mutates, risk.leaves && say.leaves, risk.privileged && say.privileged];
  return h("div.row.chips", {}, words.filter(Boolean).map((word) => h(`span.chip.${level}`, {}, word)), risk.why && h("span.why", {}, risk.why));
}

function changed({ before, now, path }) {
  return before === "new" ? say.made(path) : now === "gone" ? say.removedFile(path) : say.changedFile(path);
}
