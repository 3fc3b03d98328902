// The keys, as a list.

import { h } from "./dom.js";
import { say } from "./say.js";
import { told } from "./say-manage.js";

export function help() {
  const close = () => { dialog.close(); dialog.remove(); };
  const dialog = h("dialog", { "aria-label": say.keyboardHelp, oncancel: close },
    h("h2", {}, say.keyboardHelp),
    h("dl.keys-help", {}, told.keysHelp.map(([keys, what]) => h("div", {}, h("dt", {}, keys.map((key) => h("kbd", {}, key))), h("dd", {}, what)))),
    h("div.row.end", {}, h("button.primary", { type: "button", onclick: close }, say.close)));
  document.body.append(dialog);
  dialog.showModal();
}
