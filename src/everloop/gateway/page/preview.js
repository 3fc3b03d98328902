// What a file holds, as it can be looked at: Markdown and tables as such, other texts as they are.

import { blob } from "./api.js";
import { h } from "./dom.js";
import { markdown } from "./markdown.js";
import { say } from "./say.js";

const LONGEST = 20_000; // characters of a text that are shown
const ROWS = 200; // of a table

export async function preview(name, link) {
  const content = await words(link);
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
