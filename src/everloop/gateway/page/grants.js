// The list of what has been allowed ahead, each to be taken back.

import { get, remove } from "./api.js";
import { ask, h, iconButton, toast } from "./dom.js";
import { moment } from "./words.js";

/** What is allowed ahead, each to be taken back; null for whoever may not see it, or where there is nothing. */
export async function grantsTile(redraw) {
  const { grants } = await get("/api/grants").catch(() => ({ grants: [] }));
  if (!grants.length) return null;
  return h("div.tile.grants", {}, h("b", {}, "Allowed ahead"), h("small", {}, "Calls like one that you were asked about, which are not asked again."),
    grants.map((each) => h("div.grant", {},
      h("details", {}, h("summary", {}, `${each.tool}: ${each.allowed}`),
        h("small", {}, `${runs(each)} until ${moment(each.until)}, for ${each.user}, up to ${each.risk} risk. Given with:`), h("pre.exact", { tabindex: "0" }, each.call)),
      iconButton("close", `Take back ${each.tool}: ${each.allowed}`, () => takeBack(each, redraw)))));
}

const runs = ({ runs: left }) => left === null ? "As often as it comes," : `${left} more ${left === 1 ? "time" : "times"},`;

async function takeBack(each, redraw) {
  if (!await ask({ title: "Take it back?", text: `${each.tool}: ${each.allowed}. From now on you are asked.`, yes: "Take back" })) return;
  try { await remove(`/api/grants/${each.id}`); } catch (error) { toast(error.message, "bad"); }
  redraw();
}
