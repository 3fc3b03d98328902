// A conversation is deleted for good: it is asked twice, for there is no way back.

import { remove } from "./api.js";
import { ask, toast } from "./dom.js";
import { say } from "./say.js";
import { told } from "./say-manage.js";

export async function deleted({ id, title }, house) {
  const name = title || say.untitled;
  if (!await ask({ title: told.deleteTitle, text: told.deleteText(name), yes: told.deleteGoOn })) return;
  if (!await ask({ title: told.deleteSure, text: told.deleteNoWayBack(name), yes: told.deleteNow, grave: true })) return;
  try {
    await remove(`/api/sessions/${id}?confirm=${id}`);
    house.gone(id);
  } catch (error) { toast(error.message, "bad"); }
}
