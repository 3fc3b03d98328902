// Taking along all that is a person's, and erasing somebody for good: asked with their name, and told what went.

import { blob, post } from "./api.js";
import { ask, h, toast } from "./dom.js";
import { save } from "./files.js";
import { told } from "./say-leaving.js";

const at = (id) => `/api/users/${encodeURIComponent(id)}`;

/** Two actions for the tile of somebody: the owner exports anybody, and erases everybody else. */
export function leaving(each, isOwner, afterwards) {
  const mayErase = each.role !== "owner" && (isOwner || each.role !== "admin");
  return [
    isOwner && h("button.small", { type: "button", "aria-label": told.exportNamed(each.name), onclick: (event) => takeAlong(event.currentTarget, each.id, each.name) }, told.export),
    mayErase && h("button.small", { type: "button", "aria-label": told.eraseNamed(each.name), onclick: () => erase(each, afterwards) }, told.erase),
  ].filter(Boolean);
}

/** One's own, for whoever looks at how they come in. */
export function ownTile(me) {
  const submit = (event) => { event.preventDefault(); takeAlong(event.submitter, me.user, me.name); };
  return h("form.tile", { onsubmit: submit }, h("b", {}, told.mine), h("small", {}, told.mineHint),
    h("div.row", {}, h("button", { type: "submit" }, told.takeMine)));
}

async function takeAlong(button, id, name) {
  button.disabled = true;
  try { save(await blob(`${at(id)}/export`), `everloop ${name.replace(/[^\p{L}\p{N} ._-]+/gu, "_")}.zip`); } catch (error) { toast(error.message, "bad"); }
  button.disabled = false;
}

async function erase(each, afterwards) {
  const typed = await ask({ title: told.eraseTitle(each.name), text: told.eraseText(each.name), label: told.typeName, yes: told.eraseNow, grave: true });
  if (typed === null) return;
  for (const note of document.querySelectorAll(".toast.bad")) note.remove(); // what was refused before is over
  if (typed !== each.name.trim()) { toast(told.otherName, "bad"); return; }
  try {
    const { removed } = await post(`${at(each.id)}/erase?confirm=${encodeURIComponent(each.name)}`);
    list(each.name, removed);
  } catch (error) { toast(error.message, "bad"); }
  await afterwards();
}

function list(name, removed) {
  const close = () => { dialog.close(); dialog.remove(); };
  const dialog = h("dialog", { "aria-label": told.erased(name), oncancel: close }, h("form", { method: "dialog", onsubmit: close },
    h("h2", {}, told.erased(name)), h("p", {}, told.went),
    h("ul", {}, Object.entries(removed).map(([what, count]) => h("li", {}, `${told.kinds[what] ?? what}: ${count}`))),
    h("div.row.end", {}, h("button.primary", { type: "submit" }, told.done))));
  document.body.append(dialog);
  dialog.showModal();
}
