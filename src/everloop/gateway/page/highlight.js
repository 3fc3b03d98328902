// Colours for code: comments, strings, numbers, words of the language. One pass, no grammar, and never wrong about the text.

import { h } from "./dom.js";

const WORDS = new Set(("abstract and as assert async await begin bool break case catch char class const continue def default del do done"
  + " double elif else elsif end enum esac except export extends false False fi final finally float fn for foreach from func"
  + " function global go if impl implements import in include instanceof int interface is lambda let local long loop match mod"
  + " module mut namespace new nil None not null of or package pass private protected pub public raise range readonly ref"
  + " require return self short sizeof static string struct super switch then this throw trait true True try type typedef"
  + " typeof union unless unsigned until use using val var virtual void when where while with yield"
  + " SELECT FROM WHERE INSERT INTO UPDATE DELETE CREATE TABLE JOIN LEFT ON GROUP BY ORDER LIMIT AND OR NOT NULL AS VALUES SET").split(" "));
const HASH = new Set(["py", "python", "sh", "bash", "shell", "zsh", "console", "ruby", "rb", "toml", "yaml", "yml", "r", "make", "makefile", "dockerfile", "perl", "ini", "conf"]);
const PLAIN = new Set(["", "text", "txt", "plain", "markdown", "md", "output", "log"]);
const LONGEST = 30_000;

const C_LIKE = /(\/\/[^\n]*|\/\*[\s\S]*?\*\/|--[ ][^\n]*)|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\]){0,2000}`)|(\b\d[\w.]*)|([A-Za-z_$][\w$]*)/g;
const HASH_LIKE = /(#[^\n]*)|("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(\b\d[\w.]*)|([A-Za-z_$][\w$]*)/g;
const DIFF = /^(?:([+][^\n]*)|([-][^\n]*)|(@@[^\n]*))$/gm;

/** The nodes of a piece of code. */
export function highlight(code, language = "") {
  const kind = language.toLowerCase();
  if (PLAIN.has(kind) || code.length > LONGEST) return [code];
  if (kind === "diff" || kind === "patch") return colour(code, DIFF, ["added", "removed", "comment"]);
  return colour(code, HASH.has(kind) ? HASH_LIKE : C_LIKE, ["comment", "string", "number", "word"]);
}

function colour(code, pattern, names) {
  const nodes = [];
  let plain = 0;
  for (const found of code.matchAll(pattern)) {
    const which = found.findIndex((text, i) => i > 0 && text !== undefined) - 1;
    if (names[which] === "word" && !WORDS.has(found[0])) continue;
    if (found.index > plain) nodes.push(code.slice(plain, found.index));
    nodes.push(h(`span.t-${names[which]}`, {}, found[0]));
    plain = found.index + found[0].length;
  }
  nodes.push(code.slice(plain));
  return nodes;
}
