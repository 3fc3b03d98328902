// One setting as a field: what it is, what it may be, where it comes from, and a way to change it.

import { h } from "./dom.js";
import { told } from "./say-manage.js";
import { labels } from "./say-settings.js";

const SOURCES = { file: (row) => row.place, environment: (row) => told.setBy(row.place), start: () => told.setAtStart, default: () => "" };

const origin = (row) => [SOURCES[row.source](row), row.by_hand && told.byHand, row.waits && told.waits].filter(Boolean).join("; ");

/** Keys are kept in the vault, not here; one that stands in the file can be taken out of it. */
export const isKey = (row) => row.key.startsWith("providers.") && row.key.endsWith(".api_key");

export const isOpen = (row) => row.source !== "environment" && row.source !== "start" && !row.by_hand && !(row.kind === "switch" && row.options.length);

/** A name as it stands in a key: in quotes, if it is more than a word. */
export const quoted = (name) => (/^[\w-]+$/.test(name) ? name : JSON.stringify(name));

/** The second part of a key, which may stand in quotes. */
export function nameIn(key) {
  const rest = key.slice(key.indexOf(".") + 1);
  return rest.startsWith('"') ? JSON.parse(rest.match(/^"(?:\\.|[^"\\])*"/)[0]) : rest.split(".")[0];
}

/** What a setting is called; of a named one, with the name. */
export function labelOf(key) {
  const pattern = key.replace(/^(models|personas|providers|prices|tools\.mcp_servers)\.("(?:\\.|[^"\\])*"|[^.]*)\./, "$1.<name>.");
  return labels[key] ?? (labels[pattern] ? `${nameIn(key.replace("tools.mcp_servers.", "mcp."))}: ${labels[pattern]}` : key);
}

/** `save(key, value)` resolves to nothing, or to the sentence that says why not; `value` null takes it out of the file. */
export function settingField(row, save, { label = labelOf(row.key), resets = true } = {}) {
  const control = controlOf(row, label);
  const wrong = h("p.wrong", { role: "alert" });
  const apply = h("button.small.primary", { type: "submit", hidden: true }, told.save);
  const back = h("button.small", { type: "button", hidden: true, onclick: () => revert() }, told.cancel);
  const reset = h("button.small", { type: "button", hidden: row.source !== "file" || !resets, title: told.resetTitle(row.key), onclick: () => send(null) }, told.reset);
  const touched = () => { wrong.textContent = ""; apply.hidden = back.hidden = !control.changed(); };
  const revert = () => { control.revert(); touched(); };
  const send = async (value) => {
    apply.disabled = reset.disabled = true;
    wrong.textContent = (await save(row.key, value)) ?? "";
    apply.disabled = reset.disabled = false;
  };
  control.node.addEventListener("input", touched);
  control.node.addEventListener("change", touched);
  control.node.addEventListener("keydown", (event) => { if (event.key === "Escape" && control.changed()) { event.preventDefault(); revert(); } });
  const submit = (event) => {
    event.preventDefault();
    let value;
    try { value = control.read(); } catch { wrong.textContent = told.notJson(row.key); return; }
    send(value);
  };
  const open = isOpen(row);
  for (const each of [control.node, ...control.node.querySelectorAll("input, select, textarea")]) each.disabled = !open || isKey(row);
  return h("form.setting", { onsubmit: submit, "data-key": row.key, novalidate: true },
    h("div.what-for", {}, h("span.label", {}, label), h("code", {}, broken(row.key)), row.about && h("small", {}, row.about)),
    h("div.control", {}, control.node, h("div.row", {}, apply, back, open && reset, h("small.origin", {}, origin(row))), wrong));
}

/** A key, which may go on in the next line after a dot or an underscore, and nowhere else. */
function broken(key) {
  return key.split(/(?<=[._])/).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));
}

function controlOf(row, label) {
  const named = { "aria-label": label };
  if (row.secret) return secret(named, row);
  if (row.kind === "switch") return checkbox(named, row);
  if (row.kind === "choice") return choice(named, row);
  if (row.kind === "list") return lines(named, row);
  if (row.kind === "rows" || row.kind === "table") return raw(named, row);
  if (row.kind === "whole" || row.kind === "number") return number(named, row);
  return text(named, row);
}

function of(node, shown, read) {
  node.value = shown;
  return { node, read: () => read(node.value), changed: () => node.value !== shown, revert: () => { node.value = shown; } };
}

function text(named, row) {
  const long = row.key.endsWith("system_prompt") || String(row.value ?? "").includes("\n");
  const node = long ? h("textarea", { ...named, rows: 4 }) : h("input", { ...named, type: "text", spellcheck: "false", placeholder: row.default ? String(row.default) : told.notSet, ...(row.list ? { list: row.list } : {}) });
  return of(node, row.value ?? "", (value) => (value === "" && row.optional ? null : value));
}

function number(named, row) {
  const bounds = { min: row.least, max: row.most, step: row.kind === "whole" ? 1 : "any" };
  const node = h("input", { ...named, type: "number", inputmode: "decimal", placeholder: row.default === null ? told.notSet : String(row.default), ...bounds });
  // What is no number is sent as it was typed: the gateway says what is wrong with it.
  return of(node, row.value === null ? "" : String(row.value), (value) => (value === "" ? null : Number.isNaN(Number(value)) ? value : Number(value)));
}

function checkbox(named, row) {
  const box = h("input", { ...named, type: "checkbox", checked: Boolean(row.value) });
  const node = h("label.check", {}, box, told.on);
  return { node, read: () => box.checked, changed: () => box.checked !== Boolean(row.value), revert: () => { box.checked = Boolean(row.value); } };
}

function choice(named, row) {
  const options = [...(row.optional ? [null] : []), ...row.options];
  const node = h("select", named, options.map((each) => h("option", { value: each ?? "" }, each === null || each === "" ? told.notSet : String(each))));
  return of(node, row.value ?? "", (value) => (value === "" && row.optional ? null : value));
}

function lines(named, row) {
  const shown = (row.value ?? []).join("\n");
  const node = h("textarea", { ...named, rows: Math.min(6, Math.max(2, (row.value ?? []).length)), placeholder: told.oneInLine, spellcheck: "false" });
  return of(node, shown, (value) => { const found = value.split("\n").map((each) => each.trim()).filter(Boolean); return found.length || !row.optional ? found : null; });
}

function raw(named, row) {
  const shown = row.value && Object.keys(row.value).length ? JSON.stringify(row.value, null, 1) : "";
  const node = h("textarea", { ...named, rows: shown ? 6 : 2, placeholder: row.kind === "rows" ? '[{"tool": "exec*", "stance": "ask"}]' : "{}", spellcheck: "false" });
  return of(node, shown, (value) => (value.trim() ? JSON.parse(value) : null));
}

function secret(named, row) {
  const node = h("input", { ...named, type: "password", autocomplete: "off", placeholder: row.is_set ? told.secretSet : told.notSet });
  return of(node, "", (value) => (row.kind === "table" ? JSON.parse(value) : value));
}
