// What a yes allows beyond the call that was asked about.

import { h } from "./dom.js";
import { told } from "./say-ahead.js";

/** What can be chosen about a question that waits, folded; `allow` is told what was chosen. */
export function likeness({ tool, risk, choices }, allow) {
  const can = (word) => choices.includes(word);
  const what = chooser(told.whatElse, {
    same: told.sameCall, ...(can("host") && { host: told.allOf(risk.host) }),
    ...(can("argv") && { argv: told.fitting }), any: told.anyOf(tool) });
  const time = chooser(told.howLong, told.times);
  const runs = chooser(told.howOften, told.runs);
  runs.prepend(h("option", { value: "", selected: true }, told.anyTimes)); // an object would put its numbers first
  const pattern = h("input", { "aria-label": told.pattern, value: `${risk.argv?.[0] ?? ""} *`, maxlength: 10_000, spellcheck: "false" });
  const folder = h("input", { "aria-label": told.folder, placeholder: told.onlyFolder, maxlength: 4_000, spellcheck: "false" });
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
      seconds: Number(time.value), here: here.checked, any: what.value === "any", ...(runs.value ? { runs: Number(runs.value) } : {}),
      host: what.value === "host" ? risk.host : "", argv: pattern.hidden ? "" : pattern.value, folder: folder.hidden ? "" : folder.value });
  };
  return h("details.ahead", {}, h("summary", {}, told.alsoAllow),
    h("form", { onsubmit: submit }, h("div.row", {}, what, time, runs), pattern, folder,
      h("label.check", {}, here, told.onlyHere),
      h("div.row", {}, h("button", { type: "submit" }, told.allowLike))));
}

function chooser(label, options) {
  return h("select", { "aria-label": label }, Object.entries(options).map(([value, text]) => h("option", { value }, text)));
}
