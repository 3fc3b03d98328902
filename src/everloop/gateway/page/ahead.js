// What a yes allows beyond the call that was asked about, and the list of what has been allowed so.

import { get, remove } from "./api.js";
import { ask, h, iconButton, toast } from "./dom.js";
import { moment } from "./words.js";

const TIMES = { 3600: "for an hour", 28800: "for 8 hours", 86400: "for a day", 604800: "for a week" };

/** What can be chosen about a question that waits, folded; `allow` is told what was chosen. Null where nothing can be. */
export function likeness({ tool, risk, choices }, allow) {
  if (!choices?.length) return null;
  const can = (word) => choices.includes(word);
  const what = chooser("What is allowed too", {
    same: "the same call again", ...(can("host") && { host: `all addresses of ${risk.host}` }),
    ...(can("argv") && { argv: "commands that fit a pattern" }), any: `anything of ${tool}` });
  const time = chooser("For how long", TIMES);
  const pattern = h("input", { "aria-label": "Pattern of the commands", value: `${risk.argv?.[0] ?? ""} *`, maxlength: 10_000, spellcheck: "false" });
  const folder = h("input", { "aria-label": "Folder", placeholder: "only in this folder of the workspace", maxlength: 4_000, spellcheck: "false" });
  const here = h("input", { type: "checkbox" });
  const show = () => {
    pattern.hidden = what.value !== "argv";
    folder.hidden = !can("folder") || !["argv", "any"].includes(what.value);
  };
  what.addEventListener("change", show);
  show();
  const submit = (event) => {
    event.preventDefault();
    allow({
      seconds: Number(time.value), here: here.checked, any: what.value === "any",
      host: what.value === "host" ? risk.host : "", argv: pattern.hidden ? "" : pattern.value, folder: folder.hidden ? "" : folder.value });
  };
  return h("details.ahead", {}, h("summary", {}, "Allow the like too …"),
    h("form", { onsubmit: submit }, h("div.row", {}, what, time), pattern, folder,
      h("label.check", {}, here, "only in this conversation"),
      h("div.row", {}, h("button", { type: "submit" }, "Allow, and the like"))));
}

function chooser(label, options) {
  return h("select", { "aria-label": label }, Object.entries(options).map(([value, text]) => h("option", { value }, text)));
}

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
