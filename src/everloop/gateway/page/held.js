// What waits for an answer and is about no call: changes of the files that every prompt begins with, and a turn beyond a budget.

import { get } from "./api.js";
import { decided } from "./card.js";
import { h, toast } from "./dom.js";

export class HeldChanges {
  /** `changed` is called when a question was answered here. */
  constructor(changed) {
    this.changed = changed;
    this.node = h("div.held-back", { "aria-live": "polite" });
  }

  /** Show what waits in this session, and what came of nobody's that can be named. */
  async load(session) {
    try {
      const { approvals } = await get("/api/approvals");
      const waiting = approvals.filter((each) => each.kind !== "call" && (!each.session || each.session === session));
      const { heldQuestion } = waiting.length ? await import("./held-question.js") : {};
      this.node.replaceChildren(...waiting.map((each) => h("div.call.asks", {}, h("div.asking", {}, heldQuestion(each, (allow) => this.decide(each, allow, session))))));
    } catch { /* whoever may not see what waits is not asked */ }
  }

  async decide({ id, kind }, allow, session) {
    if (await decided(this.node, id, allow, null)) toast((await import("./held-question.js")).settled(kind, allow));
    await this.load(session);
    this.changed();
  }
}
