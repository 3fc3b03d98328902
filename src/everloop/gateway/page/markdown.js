// Markdown as models write it, turned into nodes. What is not understood stays text; links lead out only by http(s) and
// mailto; images are shown as links, since a picture from elsewhere would tell its host that it was looked at.

import { copy, h } from "./dom.js";
import { highlight } from "./highlight.js";

const FENCE = /^(\s{0,3})(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^\s{0,3}(#{1,6})\s+(.*)$/;
const RULE = /^\s{0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^\s{0,3}>\s?/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(?:\s+|$)/;
const DELIMITER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const DEEPEST = 12;
const WIDEST = 60; // columns of a table

/** A fragment for this text. */
export function markdown(text) {
  const into = document.createDocumentFragment();
  blocks(into, text.replace(/\r\n?/g, "\n").split("\n"), 0);
  return into;
}

function blocks(into, lines, depth) {
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) { at += 1; continue; }
    if (depth > DEEPEST) { into.append(h("p", {}, lines.slice(at).join("\n"))); return; }
    const taken = fence(into, lines, at) || heading(into, line) || rule(into, line) || quote(into, lines, at, depth)
      || list(into, lines, at, depth) || table(into, lines, at) || paragraph(into, lines, at);
    at += taken;
  }
}

function fence(into, lines, at) {
  const opened = FENCE.exec(lines[at]);
  if (!opened) return 0;
  let end = at + 1;
  const closing = new RegExp(`^\\s{0,3}${opened[2][0] === "`" ? "`" : "~"}{${opened[2].length},}\\s*$`);
  while (end < lines.length && !closing.test(lines[end])) end += 1;
  const strip = opened[1].length;
  const code = lines.slice(at + 1, end).map((line) => line.replace(new RegExp(`^\\s{0,${strip}}`), "")).join("\n");
  into.append(codeBlock(code, opened[3]));
  return end - at + 1;
}

export function codeBlock(code, language = "") {
  const copying = h("button.ghost.small", { type: "button", onclick: () => copy(code) }, "Copy");
  return h("figure.code", {},
    h("figcaption", {}, h("span", {}, language || "text"), copying),
    h("pre", { tabindex: "0" }, h("code", {}, highlight(code, language))));
}

function heading(into, line) {
  const found = HEADING.exec(line);
  if (!found) return 0;
  const level = Math.min(6, found[1].length + 2); // the page itself has the first two
  into.append(h(`h${level}`, {}, inline(withoutHashes(found[2]))));
  return 1;
}

/** A heading may be closed as it was opened. */
function withoutHashes(text) {
  let end = text.trimEnd().length;
  while (end > 0 && text[end - 1] === "#") end -= 1;
  return text.slice(0, end).trimEnd();
}

function rule(into, line) {
  if (!RULE.test(line)) return 0;
  into.append(h("hr"));
  return 1;
}

function quote(into, lines, at, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  if (end === at) return 0;
  const quoted = h("blockquote");
  blocks(quoted, lines.slice(at, end).map((line) => line.replace(QUOTE, "")), depth + 1);
  into.append(quoted);
  return end - at;
}

function list(into, lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  if (!first) return 0;
  const indent = first[1].length;
  const ordered = /\d/.test(first[2]);
  const start = ordered ? parseInt(first[2], 10) : 1;
  const shown = h(ordered ? "ol" : "ul", ordered && start !== 1 ? { start } : {});
  let end = at;
  while (end < lines.length) {
    const item = ITEM.exec(lines[end]);
    if (!item || item[1].length !== indent || /\d/.test(item[2]) !== ordered) break;
    const body = [lines[end].slice(item[0].length)];
    const width = item[0].length;
    end += 1;
    while (end < lines.length && belongs(lines, end, indent, width)) {
      body.push(lines[end].slice(Math.min(width, lines[end].length - lines[end].trimStart().length)));
      end += 1;
    }
    shown.append(listItem(body, depth));
    while (end < lines.length && !lines[end].trim() && sibling(lines[end + 1], indent, ordered)) end += 1;
  }
  into.append(shown);
  return end - at;
}

const leading = (line) => line.length - line.trimStart().length;

function sibling(line, indent, ordered) {
  const item = line === undefined ? null : ITEM.exec(line);
  return item && item[1].length === indent && /\d/.test(item[2]) === ordered;
}

function belongs(lines, at, indent, width) {
  const line = lines[at];
  if (!line.trim()) return at + 1 < lines.length && lines[at + 1].trim() && leading(lines[at + 1]) > indent;
  if (leading(line) > indent) return true;
  return lines[at - 1].trim() && !ITEM.test(line) && !FENCE.test(line) && !HEADING.test(line) && !QUOTE.test(line)
    && width > 0;
}

function listItem(body, depth) {
  const task = /^\[([ xX])\]\s+/.exec(body[0]);
  if (task) body[0] = body[0].slice(task[0].length);
  const item = h(task ? "li.task" : "li");
  if (task) item.append(h("input", { type: "checkbox", disabled: true, checked: task[1] !== " ", "aria-label": "task" }));
  blocks(item, body, depth + 1);
  for (const only of [...item.children].filter((child) => child.tagName === "P" && item.querySelectorAll(":scope > p").length === 1)) {
    only.replaceWith(...only.childNodes); // a single paragraph needs no air around it
  }
  return item;
}

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));

function table(into, lines, at) {
  if (!lines[at].includes("|") || at + 1 >= lines.length || !DELIMITER.test(lines[at + 1]) || !lines[at + 1].includes("-")) return 0;
  const heads = cells(lines[at]);
  const sides = cells(lines[at + 1]).map((cell) => (/^:-+:$/.test(cell) ? "center" : /-:$/.test(cell) ? "right" : ""));
  if (heads.length !== sides.length || heads.length > WIDEST) return 0;
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|") && lines[end].trim()) end += 1;
  const row = (line, tag) => {
    const found = cells(line);
    return h("tr", {}, heads.map((_, i) => h(sides[i] ? `${tag}.${sides[i]}` : tag, tag === "th" ? { scope: "col" } : {}, inline(found[i] ?? ""))));
  };
  into.append(h("div.scroll", { tabindex: "0" }, h("table", {},
    h("thead", {}, row(lines[at], "th")),
    h("tbody", {}, lines.slice(at + 2, end).map((line) => row(line, "td"))))));
  return end - at;
}

function paragraph(into, lines, at) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !FENCE.test(lines[end]) && !HEADING.test(lines[end])
    && !QUOTE.test(lines[end]) && !RULE.test(lines[end]) && !ITEM.test(lines[end])) end += 1;
  into.append(h("p", {}, inline(lines.slice(at, end).join("\n"))));
  return end - at;
}

const SPANS = [
  [/^\\([\\`*_{}[\]()#+\-.!|~<>"'$&])/, (found) => found[1]],
  [/^(`+)([\s\S]*?[^`])\1(?!`)/, (found) => h("code", {}, found[2].replace(/^ (.+) $/, "$1"))],
  [/^!\[([^\]\n]*)\]\(\s*<?([^\s)>]+)>?(?:\s+"[^"\n]*")?\s*\)/, (found) => link(found[2], [`🖼 ${found[1] || found[2]}`])],
  [/^\[((?:[^\[\]\n]|\[[^\[\]\n]*\])+)\]\(\s*<?((?:[^\s()<>]|\([^\s()]*\))+)>?(?:\s+"[^"\n]*")?\s*\)/, (found, deep) => link(found[2], inline(found[1], deep + 1))],
  [/^<((?:https?:\/\/|mailto:)[^\s<>]+)>/, (found) => link(found[1], [found[1]])],
  [/^\*\*(?=\S)([\s\S]*?\S)\*\*(?!\*)/, (found, deep) => h("strong", {}, inline(found[1], deep + 1))],
  [/^__(?=\S)([\s\S]*?\S)__(?![\w_])/, (found, deep) => h("strong", {}, inline(found[1], deep + 1)), "word"],
  [/^~~(?=\S)([\s\S]*?\S)~~/, (found, deep) => h("del", {}, inline(found[1], deep + 1))],
  [/^\*(?=[^\s*])([^*\n]*?[^\s*])\*(?!\*)/, (found, deep) => h("em", {}, inline(found[1], deep + 1))],
  [/^_(?=[^\s_])([^_\n]*?[^\s_])_(?![\w_])/, (found, deep) => h("em", {}, inline(found[1], deep + 1)), "word"],
  [/^https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*_]/, (found) => link(found[0], [found[0]]), "word"],
  [/^ {2,8}\n/, () => h("br")],
];
const SPECIAL = /[\\`!\[<*_~h ]/g;

/** The nodes of a line or paragraph. */
export function inline(text, deep = 0) {
  if (deep > DEEPEST) return [text];
  const nodes = [];
  let plain = "";
  let at = 0;
  while (at < text.length) {
    SPECIAL.lastIndex = at;
    const next = SPECIAL.exec(text);
    if (!next) break;
    plain += text.slice(at, next.index);
    at = next.index;
    const made = span(text, at, deep);
    if (made) {
      if (plain) nodes.push(plain);
      plain = "";
      nodes.push(made.node);
      at += made.length;
    } else {
      plain += text[at];
      at += 1;
    }
  }
  plain += text.slice(at);
  if (plain) nodes.push(plain);
  return nodes;
}

function span(text, at, deep) {
  const rest = text.slice(at, at + 4000); // a span longer than that is none, and looking on would take its square
  for (const [pattern, make, where] of SPANS) {
    if (where === "word" && at > 0 && /[\w]/.test(text[at - 1])) continue;
    const found = pattern.exec(rest);
    if (found) return { node: make(found, deep), length: found[0].length };
  }
  return null;
}

function link(target, children) {
  let url;
  try { url = new URL(target); } catch { return h("span", {}, children); }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return h("span", {}, children);
  return h("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow", title: url.href }, children);
}
