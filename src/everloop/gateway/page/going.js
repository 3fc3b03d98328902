// What goes on before there is something to say, such as a download: a line above the dots, and a bar where it tells a share.

import { h, styled } from "./dom.js";
import { say } from "./say.js";

export function goOn(draft, words = "") {
  if (!draft.going) {
    styled("connect.css");
    draft.going = h("div.going", {}, h("progress", { max: 100, "aria-label": say.working }), h("span.facts", {}));
    draft.dots.before(draft.going);
  }
  const [bar, text] = draft.going.children;
  const [, percent] = /(\d+) %/.exec(words) ?? [];
  draft.going.hidden = !words;
  text.textContent = words;
  bar.hidden = percent === undefined;
  bar.value = percent ?? 0;
  draft.node.dispatchEvent(new CustomEvent("grown", { bubbles: true }));
}
