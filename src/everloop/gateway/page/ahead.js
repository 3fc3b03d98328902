// What a yes allows beyond the call that was asked about.

import { h } from "./dom.js";
import { say } from "./say.js";

/** What can be chosen about a question that waits, folded; `allow` is told what was chosen. */
export function likeness({ tool, risk, choices }, allow) {
  const can = (word) => choices.includes(word);
  const what = chooser(say.whatElse, {
    same: say.sameCall, ...(can("host") && { host: say.allOf(risk.host) }),
    ...(can("argv") && { argv: say.fitting }), any: say.anyOf(tool) });
  const time = chooser(say.howLong, say.times);
  const runs = chooser(say.howOften, say.runs);
  runs.prepend(h("option", { value: "", selected: true }, say.anyTimes)); // an object would put its numbers first
  const pattern = h("input", { "aria-label": say.pattern, value: `${risk.argv?.[0] ?? ""} *`, maxlength: 10_000, spellcheck: "false" });
  const folder = h("input", { "aria-label": say.folder, placeholder: say.onlyFolder, maxlength: 4_000, spellcheck: "false" });
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
  return h("details.ahead", {}, h("summary", {}, say.alsoAllow),
    h("form", { onsubmit: submit }, h("div.row", {}, what, time, runs), pattern, folder,
      h("label.check", {}, here, say.onlyHere),
      h("div.row", {}, h("button", { type: "submit" }, say.allowLike))));
}

function chooser(label, options) {
  return h("select", { "aria-label": label }, Object.entries(options).map(([value, text]) => h("option", { value }, text)));
}
