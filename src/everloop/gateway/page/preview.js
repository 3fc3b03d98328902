// What a file holds, as it can be looked at: Markdown and tables as such, code with colours, pictures, and a page or PDF in
// a frame. Texts become text nodes; a page is never shown unasked, and only in a frame that has nothing of this page.

import { blob, part } from "./api.js";
import { h } from "./dom.js";
import { enlarged, isPicture } from "./files.js";
import { language } from "./given.js";
import { codeBlock, markdown } from "./markdown.js";
import { told } from "./say-manage.js";
import { say } from "./say.js";

const LONGEST = 200_000; // characters of a text that are shown
const ROWS = 500; // of a table
const PLAIN = new Set(["", "txt", "log", "text"]);

/** For a chip below an answer: {name, url}. */
export async function preview(name, link) {
  const data = await blob(link.url);
  return texts(data) ? shown(name, await beginning(data), false) : h("p.hint", {}, told.downloadToOpen);
}

/** For a file of the workspace. Resolves to nodes, and says first how long it is, once that is known. */
export async function looked({ name, path, url }, known) {
  const { data, length } = await part(url, 4 * LONGEST);
  known(size(length));
  if (isPicture(data.type)) return [picture(name, data.size < length ? await blob(url) : data)];
  if (data.type === "application/pdf") return [pdf(name, path)];
  if (!texts(data)) return [h("p.hint", {}, told.downloadToOpen)];
  const content = await beginning(data);
  const cut = content.length >= LONGEST || data.size < length ? h("p.hint", {}, told.firstOf(size(new Blob([content]).size), size(length))) : null;
  const text = shown(name, content, true);
  return [/\.(x?html?|svg)$/i.test(name) ? asPage(name, path, text) : text, cut].filter(Boolean);
}

/** Bytes, as people read them. */
export function size(bytes) {
  if (bytes < 1000) return told.units[0](bytes);
  const step = Math.min(4, Math.floor(Math.log10(bytes) / 3));
  const number = bytes / 1000 ** step;
  return told.units[step](number.toFixed(number < 9.95 ? 1 : 0));
}

const texts = (data) => data.type.startsWith("text/plain");

async function beginning(data) {
  const content = await data.slice(0, 4 * LONGEST).text();
  return content.length > LONGEST ? content.slice(0, LONGEST) : content;
}

/** `whole`: code is shown with its colours rather than as a few lines. */
function shown(name, content, whole) {
  if (!content) return h("p.hint", {}, say.isEmpty);
  if (/\.(md|markdown)$/i.test(name)) return h("div.prose.sheet", {}, markdown(content));
  if (/\.[ct]sv$/i.test(name)) return table(content, /\.tsv$/i.test(name) ? "\t" : ",");
  const kind = language(name);
  return whole && !PLAIN.has(kind) ? codeBlock(content, kind) : h("pre.result", { tabindex: "0", dir: "auto" }, content);
}

function picture(name, data) {
  const url = URL.createObjectURL(data);
  const image = h("img.picture", { src: url, alt: name });
  return h("button.enlarge", { type: "button", "aria-label": say.enlarge(name), onclick: () => enlarged(url, name) }, image);
}

function pdf(name, path) {
  return navigator.pdfViewerEnabled ? framed(told.pdfOf(name), path, null) : h("p.hint", {}, told.noViewer);
}

/** The text, and a button for those who want to see it as a page. */
function asPage(name, path, text) {
  const body = h("div", {}, text);
  let open = false;
  const toggle = () => {
    open = !open;
    body.replaceChildren(open ? framed(told.pageOf(name), path, "") : text);
    button.textContent = open ? told.asText : told.asPage;
    hint.hidden = !open;
  };
  const button = h("button.small", { type: "button", onclick: toggle }, told.asPage);
  const hint = h("span.hint", { hidden: true }, told.asPageHint);
  return h("div.as-page", {}, h("div.row", {}, button, hint), body);
}

/** A frame that the gateway fills in answer to a form, since only what is posted says whose it is. Its policy comes with
    the answer (gateway/api/framed.py); `sandbox` says the same of it here. */
function framed(label, path, sandbox) {
  const name = `frame-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
  const action = `/api/workspace/frame?${new URLSearchParams({ path })}`;
  const form = h("form", { method: "post", action, target: name, hidden: true });
  const frame = h("iframe.shown", { name, title: label, sandbox: sandbox ?? undefined, referrerpolicy: "no-referrer" });
  queueMicrotask(() => requestAnimationFrame(() => { if (form.isConnected) form.submit(); }));
  return h("div", {}, frame, form);
}

function table(content, separator) {
  const [first = [], ...rows] = cells(content, separator);
  const more = rows.length > ROWS;
  return h("div", {}, h("div.scroll", { tabindex: "0" }, h("table", {}, h("thead", {}, h("tr", {}, first.map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, rows.slice(0, ROWS).map((row) => h("tr", {}, row.map((each) => h("td", {}, each))))))), more && h("p.hint", {}, told.rowsOf(ROWS)));
}

/** RFC 4180, leniently: a field may stand in quotes, and then hold separators, line breaks and quotes written twice. */
function cells(content, separator) {
  const rows = [[]];
  const field = new RegExp(`("(?:[^"]|"")*"|[^${separator}\n]*)(${separator}|\n|$)`, "y");
  while (field.lastIndex < content.length && rows.length <= ROWS + 2) {
    const found = field.exec(content);
    if (!found) break; // letters after a closing quote: the rest is not a table
    const [, value, end] = found;
    rows.at(-1).push(value.startsWith('"') ? value.slice(1, -1).replaceAll('""', '"') : value.trim());
    if (end === "\n") rows.push([]);
    else if (!end) break;
  }
  return rows.filter((row) => row.length);
}
