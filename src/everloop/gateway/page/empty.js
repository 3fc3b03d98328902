// What stands where a conversation would: a greeting before the first word, or why there is none.

import { h, icon } from "./dom.js";
import { say } from "./say.js";

/** `write(text)` puts a text into the field. */
export function greeting(write) {
  return [h("div.mark", {}, icon("loop")), h("h2", {}, say.greeting), h("p", {}, say.whatItDoes),
    h("div.starters", {}, say.starters.map(([name, text]) =>
      h("button.starter", { type: "button", onclick: () => write(text) }, h("b", {}, name), h("span", {}, text))))];
}

/** `fresh()` begins a new conversation, `again()` tries to open this one once more. */
export function failure(error, fresh, again) {
  const missing = error.status === 404;
  return [h("h2", {}, missing ? say.notHere : say.notOpened), h("p", {}, missing ? say.notHereWhy : error.message),
    h("div.row", {}, h("button", { type: "button", onclick: fresh }, say.newConversation),
      !missing && h("button", { type: "button", onclick: again }, say.tryAgain))];
}
