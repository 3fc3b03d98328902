// Files as they stand in a conversation: pictures are shown, texts can be looked at, and everything can be taken along.
// Whatever a file holds becomes a picture, text or a table here, and never a page.

import { blob } from "./api.js";
import { h, icon, iconButton, toast } from "./dom.js";
import { markdown } from "./markdown.js";
import { say } from "./say.js";

const PICTURE = /^image\/(png|jpeg|gif|webp)$/;
const LONGEST = 20_000; // characters of a text that are shown
const ROWS = 200; // of a table

/** The link of a file that an entry tells of. */
export const linked = (entry, { file }) => (entry.links ?? []).find((link) => link.file === file) ?? {};

export const isPicture = (mime) => PICTURE.test(mime);

/** A link of the gateway: {name, mime, url}. */
export function attachment(link) {
  const name = link.name || say.file;
  const take = iconButton("down", say.download(name), () => download(link));
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
      try { shown.append(preview(name, await words(link))); } catch (error) { toast(error.message, "bad"); return; }
    }
    shown.hidden = !shown.hidden;
    open.setAttribute("aria-expanded", String(!shown.hidden));
  };
  return h("div.file", {}, h("span.chip", {}, open, take), shown);
}

function preview(name, content) {
  if (/\.(md|markdown)$/i.test(name)) return h("div.prose.sheet", {}, markdown(content));
  if (/\.[ct]sv$/i.test(name)) return table(content, /\.tsv$/i.test(name) ? "\t" : ",");
  return h("pre.result", { tabindex: "0", dir: "auto" }, content);
}

function table(content, separator) {
  const [first, ...rows] = cells(content, separator).slice(0, ROWS + 1);
  return h("div.scroll", { tabindex: "0" }, h("table", {}, h("thead", {}, h("tr", {}, first.map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((each) => h("td", {}, each)))))));
}

/** RFC 4180, leniently: a field may stand in quotes, and then hold separators, line breaks and quotes written twice. */
function cells(content, separator) {
  const rows = [[]];
  const field = new RegExp(`("(?:[^"]|"")*"|[^${separator}\n]*)(${separator}|\n|$)`, "y");
  while (field.lastIndex < content.length && rows.length <= ROWS + 1) {
    const [, value, end] = field.exec(content);
    rows.at(-1).push(value.startsWith('"') ? value.slice(1, -1).replaceAll('""', '"') : value.trim());
    if (end === "\n") rows.push([]);
    else if (!end) break;
  }
  return rows.filter((row) => row.length);
}

async function words(link) {
  const data = await blob(link.url);
  if (!data.type.startsWith("text/plain")) return say.downloadToOpen;
  const content = await data.slice(0, 4 * LONGEST).text();
  return content.length > LONGEST ? `${content.slice(0, LONGEST)}\n…` : content || say.isEmpty;
}

async function download(link) {
  try { save(await blob(link.url), (link.name || "file").split("/").at(-1)); } catch (error) { toast(error.message, "bad"); }
}

/** Hand it to the browser as a download. */
export function save(data, name) {
  const url = URL.createObjectURL(data);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
