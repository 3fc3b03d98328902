// The list of what has been allowed ahead, each to be taken back.

import { get, remove } from "./api.js";
import { ask, h, iconButton, toast } from "./dom.js";
import { told } from "./say-manage.js";
import { moment } from "./words.js";

/** What is allowed ahead, each to be taken back; null for whoever may not see it, or where there is nothing. */
export async function grantsTile(redraw) {
  const { grants } = await get("/api/grants").catch(() => ({ grants: [] }));
  if (!grants.length) return null;
  return h("div.tile.grants", {}, h("b", {}, told.allowedAhead), h("small", {}, told.allowedHint),
    grants.map((each) => h("div.grant", {},
      h("details", {}, h("summary", {}, `${each.tool}: ${each.allowed}`),
        h("small", {}, told.grant(each.runs, moment(each.until), each.user, each.risk)), h("pre.exact", { tabindex: "0" }, each.call)),
      iconButton("close", told.takeBackNamed(`${each.tool}: ${each.allowed}`), () => takeBack(each, redraw)))));
}

async function takeBack(each, redraw) {
  if (!await ask({ title: told.takeBackTitle, text: told.takeBackText(`${each.tool}: ${each.allowed}`), yes: told.takeBack })) return;
  try { await remove(`/api/grants/${each.id}`); } catch (error) { toast(error.message, "bad"); }
  redraw();
}
