// A message of one's own, edited in its place.

import { h } from "./dom.js";
import { told } from "./say-manage.js";
import { say } from "./say.js";

/** In place of the bubble, a field with what was said; `ask(text)` is called with what is to be asked instead. */
export function edit(shown, text, ask) {
  if (shown.querySelector("form")) return;
  const bubble = shown.querySelector(".bubble");
  const field = h("textarea", { "aria-label": say.message, dir: "auto", rows: Math.min(12, text.split("\n").length + 1), value: text });
  const done = () => {
    form.replaceWith(bubble);
    shown.classList.remove("editing");
    shown.querySelector(".at-rest button").focus();
  };
  const submit = (event) => {
    event.preventDefault();
    if (field.value.trim()) { done(); ask(field.value.trim()); }
  };
  const form = h("form.edit", { onsubmit: submit, onkeydown: (event) => {
    if (event.isComposing) return;
    if (event.key === "Escape") { event.preventDefault(); done(); }
    else if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); form.requestSubmit(); }
  } }, field, h("p.hint", {}, told.editHint),
  h("div.row.end", {}, h("button.small", { type: "button", onclick: done }, say.cancel), h("button.small.primary", { type: "submit" }, told.askAgain)));
  bubble.replaceWith(form);
  shown.classList.add("editing");
  field.focus();
  field.setSelectionRange(text.length, text.length);
}
