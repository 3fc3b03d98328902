// What an MCP server asks in the middle of a call: its words, and a line to answer in.

import { post } from "./api.js";
import { h, icon, toast } from "./dom.js";
import { told } from "./say-held.js";
import { say } from "./say.js";

/** `each` is {id, server, message, fields, how}; `settled` is called when it was answered, or nobody waits for it any more. */
export function elicited(each, settled) {
  const field = h("input", { type: "text", "aria-label": say.yourAnswer, placeholder: each.how, required: true, maxlength: 10_000, autocomplete: "off" });
  const answer = async (line) => {
    try {
      toast((await post(`/api/mcp-questions/${each.id}`, { answer: line })).told);
    } catch (error) {
      toast(error.message, "bad");
      if (error.status !== 404) return;
    }
    field.value = "";
    await settled();
  };
  return h("form.asking", { onsubmit: (event) => { event.preventDefault(); answer(field.value); } },
    h("p", {}, h("strong", {}, told.serverAsks(each.server))),
    h("pre.exact", { tabindex: "0", dir: "auto" }, [each.message, ...each.fields].join("\n")),
    h("p.note", {}, told.goesToServer(each.server)), field,
    h("div.row", { role: "group", "aria-label": say.yourAnswer },
      h("button.primary", { type: "submit" }, icon("check"), told.answerIt),
      h("button", { type: "button", onclick: () => answer("decline") }, told.declineIt)));
}
