// What a tool call was given, as people read it: a command, a program, a text, a diff; the rest by name. It goes by what
// the arguments are called, so that tools that nobody here knows read well, too.

import { h } from "./dom.js";
import { codeBlock } from "./markdown.js";
import { say } from "./say.js";

const SHORT = 200; // letters that stand in a line
const MOST = 600; // lines of either side that are compared one by one
const ENDINGS = { py: "python", js: "javascript", ts: "typescript", sh: "bash", md: "markdown", yml: "yaml", htm: "html", rs: "rust" };

/** The nodes for the arguments of a call, which are JSON or were meant to be. */
export function given(args) {
  const values = parsed(args);
  if (values === null) return [codeBlock(args, "text")];
  const { command, code, patch, old_text: before, new_text: after, content, ...rest } = values;
  const nodes = [];
  if (isText(command)) nodes.push(codeBlock(command, "bash"));
  else if (command !== undefined) rest.command = command;
  if (isText(code)) nodes.push(codeBlock(code, "python"));
  if (isText(patch)) nodes.push(codeBlock(patch, "diff"));
  if (isText(before) && isText(after)) nodes.push(codeBlock(difference(before, after), "diff"));
  if (isText(content)) nodes.push(codeBlock(content, language(rest.path)));
  return [named(rest), ...nodes].filter(Boolean);
}

/** What a call is about, in a few words: its command, or its first short text. */
export function gist(args) {
  const values = parsed(args) ?? {};
  const found = values.command ?? Object.values(values).find((value) => typeof value === "string" || typeof value === "number");
  return String(found ?? "").replace(/\s+/g, " ").slice(0, 120);
}

/** Two texts, line by line, as `diff` would write it. */
export function difference(before, after) {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let first = 0;
  while (first < old.length && first < now.length && old[first] === now[first]) first += 1;
  let last = 0;
  while (last < old.length - first && last < now.length - first && old.at(-1 - last) === now.at(-1 - last)) last += 1;
  const same = (lines) => lines.map((line) => `  ${line}`);
  return [...same(old.slice(0, first)), ...changed(old.slice(first, old.length - last), now.slice(first, now.length - last)),
    ...same(last ? old.slice(-last) : [])].join("\n");
}

/** By the longest common part; where that would take long, all of the one and then all of the other. */
function changed(old, now) {
  if (old.length > MOST || now.length > MOST) return [...old.map((line) => `- ${line}`), ...now.map((line) => `+ ${line}`)];
  const length = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) length[i][j] = old[i] === now[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
  }
  const lines = [];
  for (let i = 0, j = 0; i < old.length || j < now.length;) {
    if (i < old.length && j < now.length && old[i] === now[j]) { lines.push(`  ${old[i]}`); i += 1; j += 1; }
    else if (i < old.length && (j === now.length || length[i + 1][j] >= length[i][j + 1])) lines.push(`- ${old[i++]}`);
    else lines.push(`+ ${now[j++]}`);
  }
  return lines;
}

function named(values) {
  const rows = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  if (!rows.length) return null;
  return h("dl.given", {}, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, shown(value)))));
}

function shown(value) {
  if (!isText(value)) return h("code", {}, JSON.stringify(value));
  return value.length <= SHORT && !value.includes("\n") ? value : codeBlock(value, say.plainText);
}

function parsed(args) {
  try {
    const values = JSON.parse(args || "{}");
    return values && typeof values === "object" && !Array.isArray(values) ? values : null;
  } catch { return null; }
}

const isText = (value) => typeof value === "string";

/** The language of a file, by its name. */
export function language(path) {
  const ending = isText(path) ? /\.(\w+)$/.exec(path)?.[1].toLowerCase() ?? "" : "";
  return Object.hasOwn(ENDINGS, ending) ? ENDINGS[ending] : ending;
}
