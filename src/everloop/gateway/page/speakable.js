// What is shown of an answer, as words to be read aloud: code, pictures and formulas are announced, not spelled.

import { told } from "./say-speech.js";

const LONG = 220; // letters at a time: some browsers fall silent in a longer one
const BLOCKS = "P, LI, H1, H2, H3, H4, H5, H6, BLOCKQUOTE, TR, DT, DD, DIV, FIGURE, PRE, TABLE, UL, OL";

/** The pieces, in order, each of one or more sentences. */
export function pieces(node) {
  return words(node).split("\n").flatMap((line) => parts(line.replace(/\s+/g, " ").trim())).filter((part) => /[\p{L}\p{N}]/u.test(part));
}

function words(node) {
  if (node.nodeType === Node.TEXT_NODE) return node.data.replace(/https?:\/\/[^\s)]+/g, (url) => told.address(host(url)));
  if (node.nodeType !== Node.ELEMENT_NODE || node.matches("button, summary, [aria-hidden=true]")) return "";
  if (node.matches(".code, pre")) return `\n${block(node)}\n`;
  if (node.localName === "math") return ` ${told.formula} `;
  if (node.localName === "img") return ` ${told.picture(node.alt)} `;
  if (node.matches("td, th")) return `${inside(node)}, `;
  const text = inside(node);
  return node.matches(BLOCKS) ? `\n${ended(text.trim())}\n` : text;
}

const inside = (node) => [...node.childNodes].map(words).join("");

/** A heading or a line of a list is a sentence of its own. */
const ended = (text) => /[\p{L}\p{N})\]"”’]$/u.test(text) ? `${text}.` : text.replace(/,$/, ".");

function block(node) {
  const code = (node.querySelector("pre") ?? node).textContent.replace(/\n$/, "");
  return told.code(node.querySelector("figcaption span")?.textContent.trim() ?? "", code.split("\n").length);
}

function host(url) { try { return new URL(url).host; } catch { return url; } }

/** No longer than LONG, cut where a sentence or at least a word ends. */
function parts(line) {
  const found = [];
  let rest = line;
  while (rest.length > LONG) {
    const head = rest.slice(0, LONG);
    const at = Math.max(head.search(/[.!?…][^.!?…]*$/) + 1, 0) || head.lastIndexOf(" ") + 1 || LONG;
    found.push(rest.slice(0, at).trim());
    rest = rest.slice(at);
  }
  return [...found, rest.trim()];
}
