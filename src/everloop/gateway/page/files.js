// Files as they stand in a conversation: pictures are shown, texts can be looked at, and everything can be taken along.
// Whatever a file holds becomes a picture, text or a table here, and never a page.

import { blob } from "./api.js";
import { h, icon, iconButton, toast } from "./dom.js";
import { say } from "./say.js";

const PICTURE = /^image\/(png|jpeg|gif|webp)$/;

/** The link of a file that an entry tells of. */
export const linked = (entry, { file }) => (entry.links ?? []).find((link) => link.file === file) ?? {};

export const isPicture = (mime) => PICTURE.test(mime);

/** Where the workspace shows a file of it. */
export function placeOf(path) {
  const cut = path.lastIndexOf("/");
  return `#/files/${encodeURIComponent(path.slice(0, Math.max(0, cut)))}/${encodeURIComponent(path.slice(cut + 1))}`;
}

/** A file that came of a turn is one of the workspace, as it was then. */
export const madeFile = (link) => attachment(link, h("a.ghost.button", { href: placeOf(link.name), "aria-label": say.inWorkspace(link.name), title: say.inWorkspace(link.name) }, icon("folder")));

/** A link of the gateway: {name, mime, url}. */
export function attachment(link, more = null) {
  const name = link.name || say.file;
  if (/^https?:/.test(link.url)) return h("a.chip", { href: link.url, target: "_blank", rel: "noreferrer" }, name);
  const take = [iconButton("down", say.download(name), () => download(link)), more];
  return isPicture(link.mime) ? picture(link, name, take) : text(link, name, take);
}

function picture(link, name, take) {
  const shown = h("img.picture", { alt: name, loading: "lazy" });
  const enlarge = h("button.enlarge", { type: "button", "aria-label": say.enlarge(name), onclick: () => enlarged(shown.src, name) }, shown);
  blob(link.url).then((data) => { shown.src = URL.createObjectURL(data); },
    () => enlarge.replaceWith(h("span", {}, say.cannotBeShown)));
  return h("figure.file", {}, enlarge, h("figcaption.chip", {}, name, take));
}

/** As large as the window. */
export function enlarged(src, name) {
  const close = () => { dialog.close(); dialog.remove(); };
  const dialog = h("dialog.large", { "aria-label": name, oncancel: close, onclick: close },
    h("img", { src, alt: name }), iconButton("close", say.close, close));
  document.body.append(dialog);
  dialog.showModal();
}

/** What it holds is fetched when someone wants to see it. */
function text(link, name, take) {
  const shown = h("div.preview", { hidden: true });
  const open = h("button.link", { type: "button", "aria-expanded": "false", onclick: () => toggle() }, icon("clip"), name);
  const toggle = async () => {
    if (shown.hidden && !shown.firstChild) {
      try { shown.append(await (await import("./preview.js")).preview(name, link)); } catch (error) { toast(error.message, "bad"); return; }
    }
    shown.hidden = !shown.hidden;
    open.setAttribute("aria-expanded", String(!shown.hidden));
  };
  return h("div.file", {}, h("span.chip", {}, open, take), shown);
}

export async function download(link) {
  try { save(await blob(link.url), (link.name || "file").split("/").at(-1)); } catch (error) { toast(error.message, "bad"); }
}

/** Hand it to the browser as a download. */
export function save(data, name) {
  const url = URL.createObjectURL(data);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
