// A conversation is deleted for good: it is asked twice, for there is no way back.

import { remove } from "./api.js";
import { ask, toast } from "./dom.js";
import { draftOf, keepDraft } from "./drafts.js";
import { say } from "./say.js";
import { told } from "./say-manage.js";

const known = new Set();

/** It was deleted, here or elsewhere, which is told once. What was written for it goes, too. */
export function gone(id, view, sidebar, house) {
  if (known.has(id)) return;
  known.add(id);
  const shown = view?.thread === id;
  if (sidebar.sessions.delete(id) || shown) toast(told.erased);
  for (const item of sidebar.list.querySelectorAll(".item")) if (item.dataset.id === id) item.remove();
  sidebar.soon();
  if (!shown) return;
  Object.assign(draftOf(view.session), { text: "", files: [], why: "" });
  keepDraft(view.session);
  house.go("#/");
}

export async function deleted({ id, title }, house) {
  const name = title || say.untitled;
  if (!await ask({ title: told.eraseTitle, text: told.eraseText(name), yes: told.eraseGoOn })) return;
  if (!await ask({ title: told.eraseSure, text: told.eraseNoWayBack(name), yes: told.eraseNow, grave: true })) return;
  try {
    await remove(`/api/sessions/${id}?confirm=${id}`);
    house.gone(id);
  } catch (error) { toast(error.message, "bad"); }
}
