// Markdown as models write it, turned into nodes. What is not understood stays text; links lead out only by http(s) and
// mailto; images are shown as links, since a picture from elsewhere would tell its host that it was looked at.

import { copy, h } from "./dom.js";
import { say } from "./say.js";

const FENCE = /^(\s{0,3})(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^\s{0,3}(#{1,6})\s+(.*)$/;
const RULE = /^\s{0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^\s{0,3}>\s?/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(?:\s+|$)/;
const MATH = /^\s{0,3}(\$\$|\\\[)/;
const DETAILS = /^\s{0,3}<details(?:\s+open)?>\s*(?:<summary>(.*?)<\/summary>)?\s*$/i;
const DELIMITER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const DEEPEST = 12;
const WIDEST = 60; // columns of a table
const LONG = 40; // letters of a cell that is a text rather than a value
const HIGHEST = 60; // lines of a formula
const TALL = 40; // lines of code that are shown without being asked for
const AUTO = { dir: "auto" }; // each block runs as its first letters do
const RIGHT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/;

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
    if (depth > DEEPEST) { into.append(h("p", AUTO, lines.slice(at).join("\n"))); return; }
    const taken = fence(into, lines, at) || math(into, lines, at) || details(into, lines, at, depth) || heading(into, line) || rule(into, line) || quote(into, lines, at, depth)
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

/** A piece of code. A long one shows its beginning first, and can be copied from below, too. */
export function codeBlock(code, language = "") {
  const lines = code.split("\n").length;
  const pre = h("pre", { tabindex: "0", dir: "ltr" }, coloured(code, language));
  const copying = () => h("button.ghost.small", { type: "button", onclick: () => copy(code) }, say.copy);
  const wraps = h("button.ghost.small", { type: "button", "aria-pressed": "false", onclick: () => pressed(wraps, pre.classList.toggle("wrapped")) }, say.wrap);
  const shown = h("figure.code", {}, h("figcaption", {}, h("span", {}, language || say.plainText), wraps, copying()), pre);
  if (lines <= TALL + 10) return shown;
  const unfold = h("button.ghost.small", { type: "button", "aria-expanded": "false", onclick: () => {
    const open = shown.classList.toggle("folded") === false;
    unfold.setAttribute("aria-expanded", String(open));
    unfold.textContent = open ? say.fewerLines : say.allLines(lines);
  } }, say.allLines(lines));
  shown.classList.add("folded");
  shown.append(h("div.row.below", {}, unfold, copying()));
  return shown;
}

let colours = null; // what colours code, once there is some

function coloured(code, language) {
  const shown = h("code", {}, colours ? colours(code, language) : code);
  if (!colours) import("./highlight.js").then(({ highlight }) => { colours = highlight; shown.replaceChildren(...highlight(code, language)); }, () => {}); // it can be read without
  return shown;
}

const pressed = (button, on) => button.setAttribute("aria-pressed", String(on));

let drawn = null; // what draws formulas, once somebody has written one

function formula(tex, display = false) {
  if (drawn) return drawn(tex, display);
  const waiting = h("code", {}, tex);
  import("./math.js").then((math) => { drawn = math.formula; waiting.replaceWith(drawn(tex, display)); }, () => {}); // then it can be read as it was written
  return waiting;
}

/** A formula that stands by itself, over one line or several. */
function math(into, lines, at) {
  const opened = MATH.exec(lines[at]);
  if (!opened) return 0;
  const closing = opened[1] === "$$" ? "$$" : "\\]";
  let text = lines[at].slice(opened[0].length);
  let end = at;
  while (!text.includes(closing) && end + 1 < lines.length && lines[end + 1].trim() && end - at < HIGHEST) text += `\n${lines[end += 1]}`;
  const length = text.indexOf(closing);
  if (length < 0 || text.slice(length + closing.length).replace(/[.,; ]/g, "")) return 0;
  into.append(h("div.math", { tabindex: "0" }, formula(text.slice(0, length), true)));
  return end - at + 1;
}

/** The one piece of HTML with an inside that models write by themselves. */
function details(into, lines, at, depth) {
  const opened = DETAILS.exec(lines[at]);
  if (!opened) return 0;
  let end = at + 1;
  while (end < lines.length && !/^\s*<\/details>\s*$/i.test(lines[end])) end += 1;
  const inside = lines.slice(at + 1, end);
  const named = opened[1] === undefined ? /^\s*<summary>(.*)<\/summary>\s*$/i.exec(inside[0] ?? "") : null;
  const shown = h("details", {}, h("summary", {}, inline(opened[1] ?? named?.[1] ?? say.details)));
  blocks(shown, named ? inside.slice(1) : inside, depth + 1);
  into.append(shown);
  return end - at + 1;
}

function heading(into, line) {
  const found = HEADING.exec(line);
  if (!found) return 0;
  const level = Math.min(6, found[1].length + 1); // the page itself has the first
  into.append(h(`h${level}`, AUTO, inline(withoutHashes(found[2]))));
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
  const quoted = h("blockquote", side(lines[at]));
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
  const shown = h(ordered ? "ol" : "ul", { ...(ordered && start !== 1 ? { start } : {}), ...side(lines[at]) });
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

/** What holds blocks runs as the first letter in it: `auto` does not look into those that have a direction of their own. */
const side = (line) => (RIGHT.test(/\p{L}/u.exec(line)?.[0]) ? { dir: "rtl" } : {});

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
  if (task) item.append(h("input", { type: "checkbox", disabled: true, checked: task[1] !== " ", "aria-label": say.task }));
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
    const kind = (i) => [tag, sides[i], (found[i] ?? "").length > LONG && "long"].filter(Boolean).join(".");
    return h("tr", {}, heads.map((_, i) => h(kind(i), tag === "th" ? { scope: "col", ...AUTO } : AUTO, inline(found[i] ?? ""))));
  };
  into.append(h("div.scroll", { tabindex: "0" }, h("table", side(lines[at]),
    h("thead", {}, row(lines[at], "th")),
    h("tbody", {}, lines.slice(at + 2, end).map((line) => row(line, "td"))))));
  return end - at;
}

function paragraph(into, lines, at) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !FENCE.test(lines[end]) && !HEADING.test(lines[end])
    && !QUOTE.test(lines[end]) && !RULE.test(lines[end]) && !ITEM.test(lines[end]) && !MATH.test(lines[end])) end += 1;
  into.append(h("p", AUTO, inline(lines.slice(at, end).join("\n"))));
  return end - at;
}

const SPANS = [
  [/^\\\(([\s\S]{1,1500}?)\\\)/, (found) => formula(found[1])],
  [/^\\\[([\s\S]{1,3000}?)\\\]/, (found) => formula(found[1], true)],
  [/^\$\$([^$]{1,3000}?)\$\$/, (found) => formula(found[1], true)],
  [/^\$(?![\s$])([^$\n`]{0,400}?[^\s$\\])\$(?!\w)/, (found) => (isFormula(found[1]) ? formula(found[1]) : found[0]), "word"],
  [/^\\([\\`*_{}#+\-.!|~<>"'$&])/, (found) => found[1]], // brackets keep theirs, for they open formulas
  [/^(`+)([\s\S]*?[^`])\1(?!`)/, (found) => h("code", {}, found[2].replace(/^ (.+) $/, "$1"))],
  [/^<br\s*\/?>\n?/i, () => h("br")],
  [/^<(sub|sup|kbd|mark|u|s|small|b|i|em|strong)>([^<>\n]{1,400}|(?:[^<]|<(?!\/?\1>)){1,400})<\/\1>/i, (found, deep) => h(found[1].toLowerCase(), {}, inline(found[2], deep + 1))],
  [/^\[\^([\w-]{1,20})\]:?/, (found) => h("sup", {}, found[1])],
  [/^!\[([^\]\n]*)\]\(\s*<?([^\s)>]+)>?(?:\s+"[^"\n]*")?\s*\)/, (found) => link(found[2], [`🖼 ${found[1] || found[2]}`])],
  [/^\[((?:[^\[\]\n]|\[[^\[\]\n]*\])+)\]\(\s*<?((?:[^\s()<>]|\([^\s()]*\))+)>?(?:\s+"[^"\n]*")?\s*\)/, (found, deep) => link(found[2], inline(found[1], deep + 1))],
  [/^<((?:https?:\/\/|mailto:)[^\s<>]+)>/, (found) => link(found[1], [found[1]])],
  [/^\*\*(?=\S)([\s\S]*?\S)\*\*(?!\*)/, (found, deep) => h("strong", {}, inline(found[1], deep + 1))],
  [/^__(?=\S)([\s\S]*?\S)__(?![\w_])/, (found, deep) => h("strong", {}, inline(found[1], deep + 1)), "word"],
  [/^~~(?=\S)([\s\S]*?\S)~~/, (found, deep) => h("del", {}, inline(found[1], deep + 1))],
  [/^\*(?=[^\s*])([^*\n]*?[^\s*])\*(?!\*)/, (found, deep) => h("em", {}, inline(found[1], deep + 1))],
  [/^_(?=[^\s_])([^_\n]*?[^\s_])_(?![\w_])/, (found, deep) => h("em", {}, inline(found[1], deep + 1)), "word"],
  [/^https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*_]/, (found) => link(found[0], [found[0]]), "word"],
];
const SPECIAL = /[\\`!\[<*_~h$\n]/g;

/** Whether what stands between two dollars is a formula, and not the words between two sums of money. */
const isFormula = (text) => !/\s/.test(text) || /[\\^_=+<>{}]|[a-z]\s*[-*/]/i.test(text);

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
    const made = text[at] === "\n" ? { node: h("br"), length: 1 } : span(text, at, deep); // who chats means the lines that they make
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
