// A conversation as a file: all that happened in it as JSON, or what was said as Markdown.

import { get } from "./api.js";
import { toast } from "./dom.js";
import { save } from "./files.js";
import { say } from "./say.js";
import { moment } from "./words.js";

export async function exported(about, kind) {
  try {
    const entries = await all(about.id);
    const text = kind === "json" ? JSON.stringify({ conversation: about, entries }, null, 1) : written(about, entries);
    save(new Blob([text], { type: "application/octet-stream" }), `${named(about.title)}.${kind}`);
  } catch (error) { toast(error.message, "bad"); }
}

async function all(id) {
  const found = [];
  for (;;) {
    const { entries, head } = await get(`/api/sessions/${id}/entries`, { after: found.at(-1)?.seq ?? 0, limit: 500 });
    found.push(...entries);
    if (!entries.length || entries.at(-1).seq >= head) return found;
  }
}

function written(about, entries) {
  const parts = [`# ${about.title || say.untitled}`, moment(about.created)];
  for (const entry of entries) {
    if (entry.kind === "user_said") parts.push(`## ${say.you}`, entry.parts.map((part) => part.text ?? `[${part.name ?? say.file}]`).join("\n\n"));
    if (entry.kind === "model_said" && entry.text.trim()) parts.push(`## ${entry.model || say.everloop}`, entry.text);
    for (const call of entry.calls ?? []) parts.push(`> ${call.name} \`${call.args.replace(/\s+/g, " ").slice(0, 200)}\``);
  }
  return `${parts.join("\n\n")}\n`;
}

/** What every system takes as the name of a file. */
const named = (title) => title.replace(/[^\p{L}\p{N} ._-]+/gu, " ").trim().slice(0, 60) || "conversation";
