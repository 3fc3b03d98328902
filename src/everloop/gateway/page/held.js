// Changes of the files that every prompt begins with, which are held back until someone here has seen them.

import { get, post } from "./api.js";
import { h, icon, toast } from "./dom.js";

export class HeldChanges {
  /** `changed` is called when a question was answered here. */
  constructor(changed) {
    this.changed = changed;
    this.node = h("div.held", { "aria-live": "polite" });
  }

  /** Show what waits in this session, and what came of nobody's that can be named. */
  async load(session) {
    try {
      const { approvals } = await get("/api/approvals");
      const waiting = approvals.filter((each) => each.kind === "file" && (!each.session || each.session === session));
      this.node.replaceChildren(...waiting.map((each) => this.card(each, session)));
    } catch { /* whoever may not see what waits is not asked */ }
  }

  card(each, session) {
    const answer = (allow) => this.decide(each.id, allow, session);
    return h("div.call.asks", {}, h("div.asking", {},
      h("p", {}, h("strong", {}, `${each.tool} was changed, and the change is held back. May it stay?`)),
      h("pre.exact", { tabindex: "0" }, each.text),
      h("p.note", {}, `Why you are asked: ${each.risk.why}.`),
      h("div.row", { role: "group", "aria-label": "Your answer" },
        h("button.primary", { type: "button", onclick: () => answer(true) }, icon("check"), "Let it stay"),
        h("button", { type: "button", onclick: () => answer(false) }, "Put it back"))));
  }

  async decide(id, allow, session) {
    for (const button of this.node.querySelectorAll("button")) button.disabled = true;
    try {
      await post(`/api/approvals/${id}`, { allow });
      toast(allow ? "It stays, and is told from the next turn on." : "It is put back to what it was.");
    } catch (error) { toast(error.message, "bad"); }
    await this.load(session);
    this.changed();
  }
}
