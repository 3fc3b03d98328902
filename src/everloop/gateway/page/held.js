// Changes of the files that every prompt begins with, which are held back until someone here has seen them.

import { get } from "./api.js";
import { decided } from "./card.js";
import { h, icon, toast } from "./dom.js";
import { say } from "./say.js";

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
      const waiting = approvals.filter((each) => each.kind === "file" && (!each.session || each.session === session));
      this.node.replaceChildren(...waiting.map((each) => h("div.call.asks", {}, h("div.asking", {}, heldQuestion(each, (allow) => this.decide(each.id, allow, session))))));
    } catch { /* whoever may not see what waits is not asked */ }
  }

  async decide(id, allow, session) {
    if (await decided(this.node, id, allow, null)) toast(allow ? say.itStays : say.itIsPutBack);
    await this.load(session);
    this.changed();
  }
}

export function heldQuestion(each, decide) {
  return [
    h("p", {}, h("strong", {}, say.heldBack(each.tool))),
    h("pre.exact", { tabindex: "0" }, each.text),
    h("p.note", {}, say.whyAsked(each.risk.why)),
    h("div.row", { role: "group", "aria-label": say.yourAnswer },
      h("button.primary", { type: "button", onclick: () => decide(true) }, icon("check"), say.letItStay),
      h("button", { type: "button", onclick: () => decide(false) }, say.putItBack))];
}
