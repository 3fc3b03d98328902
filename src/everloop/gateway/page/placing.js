// Files that are put into the workspace or taken out of it; what was there before can be put back. `after` is called when
// that has been done.

import { blob, place, remove } from "./api.js";
import { ask, toast } from "./dom.js";
import { told } from "./say-manage.js";

const KEPT = 5 * 1024 * 1024; // bytes of a file that can be put back

export const joined = (folder, name) => (folder ? `${folder}/${name}` : name);
export const urlOf = (path) => `/api/workspace/file?${new URLSearchParams({ path })}`;

/** One after the other; `tell` is told which. */
export async function uploaded(folder, files, tell, after) {
  let done = 0;
  for (const [i, file] of files.entries()) {
    tell(told.uploading(file.name, i + 1, files.length));
    if (await put(joined(folder, file.name), file, false, after)) done += 1;
  }
  tell("");
  if (done) toast(told.uploaded(done));
}

async function put(path, file, replace, after) {
  try {
    const { kept } = await place(path, file, replace);
    if (kept) toast(told.uploaded(1), "note", [told.putBack, () => putBack(path, kept, after)]);
    return !kept;
  } catch (error) {
    if (error.code !== "exists" || replace) { toast(error.status ? `${file.name}: ${error.message}` : told.noFolders(file.name), "bad"); return false; }
    return await ask({ title: told.replaceTitle(file.name), text: told.replaceText, yes: told.replace }) ? put(path, file, true, after) : false;
  }
}

/** Resolves to whether it is gone. */
export async function removed(path, name, length, after) {
  if (!await ask({ title: told.deleteTitle(name), text: length > KEPT ? told.deleteLarge : told.deleteText, yes: told.deleteFile, grave: length > KEPT })) return false;
  try {
    const { kept } = await remove(urlOf(path));
    toast(told.deleted(name), "note", kept ? [told.putBack, () => putBack(path, kept, after)] : null);
    return true;
  } catch (error) { toast(error.message, "bad"); return false; }
}

async function putBack(path, kept, after) {
  try { await place(path, await blob(`/api/files/${kept}`), true); toast(told.isBack); } catch (error) { toast(error.message, "bad"); }
  await after();
}
