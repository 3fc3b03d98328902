// What people keep for themselves: keys of model providers, and credentials for their tools. Values go in, never out.

import { get, put, remove } from "./api.js";
import { ask, h, iconButton, toast } from "./dom.js";
import { told } from "./say-own.js";
import { moment } from "./words.js";

const KEYS = "/api/me/keys";
const CREDENTIALS = "/api/me/credentials";

/** The two tiles, filled when what they show has come. */
export function ownSecrets(me) {
  const keys = h("form.tile", { "aria-label": told.keys, "data-own": "keys" });
  const credentials = h("form.tile", { "aria-label": told.credentials, "data-own": "credentials" });
  const mayGive = me.role !== "guest";
  drawKeys(keys, me, mayGive);
  drawCredentials(credentials, mayGive);
  return [keys, credentials];
}

async function drawKeys(tile, me, mayGive) {
  const again = () => drawKeys(tile, me, mayGive);
  if (me.role === "owner") { tile.replaceChildren(h("b", {}, told.keys), h("small", {}, told.keysOfOwner)); return; }
  try {
    const { keys, providers } = await get(KEYS);
    tile.replaceChildren(h("b", {}, told.keys), h("small", {}, told.keysHint),
      ...keys.map((each) => row(each.provider, each.problem || told.since(moment(each.at)), told.forgetKey(each.provider),
        () => forget(`${KEYS}/${encodeURIComponent(each.provider)}`, told.forgetKeyTitle(each.provider), told.forgetKeyText, again))),
      ...(mayGive ? keyFields(tile, providers, again) : []));
  } catch (error) { tile.replaceChildren(h("b", {}, told.keys), h("p.hint", {}, error.message)); }
}

function keyFields(tile, providers, again) {
  const provider = h("select.pick", { "aria-label": told.provider, required: true }, providers.map((name) => h("option", { value: name }, name)));
  const key = h("input", { type: "password", "aria-label": told.key, placeholder: told.key, autocomplete: "off", required: true });
  const wrong = h("p.wrong", { role: "alert" });
  tile.onsubmit = async (event) => {
    event.preventDefault();
    try {
      const { notes } = await put(`${KEYS}/${encodeURIComponent(provider.value)}`, { key: key.value });
      toast([told.keyKept(provider.value), ...notes].join(" "));
      again();
    } catch (error) { wrong.textContent = error.message; }
  };
  return [provider, key, wrong, h("div.row", {}, h("button", { type: "submit" }, told.keepKey))];
}

async function drawCredentials(tile, mayGive) {
  const again = () => drawCredentials(tile, mayGive);
  try {
    const { credentials } = await get(CREDENTIALS);
    tile.replaceChildren(h("b", {}, told.credentials), h("small", {}, told.credentialsHint),
      ...credentials.map((each) => row(each.name, each.problem || uses(each), told.forgetCredential(each.name),
        () => forget(`${CREDENTIALS}/${encodeURIComponent(each.name)}`, told.forgetCredentialTitle(each.name), told.forgetCredentialText, again))),
      ...(mayGive ? credentialFields(tile, again) : []));
  } catch (error) { tile.replaceChildren(h("b", {}, told.credentials), h("p.hint", {}, error.message)); }
}

const uses = (each) => [each.origins.length && told.sentTo(each.origins.join(", "), each.header), each.variable && told.toCommands(each.variable)].filter(Boolean).join("; ");

function credentialFields(tile, again) {
  const field = (label, hint, more = {}) => h("input", { "aria-label": label, placeholder: hint, autocomplete: "off", spellcheck: "false", ...more });
  const name = field(told.name, told.nameHint, { maxlength: 100, required: true });
  const value = field(told.value, told.value, { type: "password", required: true });
  const hosts = field(told.hosts, told.hostsHint);
  const header = field(told.header, told.headerHint);
  const commands = h("input", { type: "checkbox" });
  const wrong = h("p.wrong", { role: "alert" });
  tile.onsubmit = async (event) => {
    event.preventDefault();
    const asked = { value: value.value, hosts: hosts.value.split(/[\s,]+/).filter(Boolean), commands: commands.checked, ...(header.value ? { header: header.value.trim() } : {}) };
    try {
      await put(`${CREDENTIALS}/${encodeURIComponent(name.value.trim())}`, asked);
      toast(told.credentialKept(name.value.trim()));
      again();
    } catch (error) { wrong.textContent = error.message; }
  };
  return [name, value, hosts, header, h("label.check", {}, commands, told.commands), wrong,
    h("div.row", {}, h("button", { type: "submit" }, told.keepCredential))];
}

const row = (name, about, label, act) => h("div.row.spread", { style: { "flex-wrap": "nowrap" } }, h("span", { dir: "auto", style: { "overflow-wrap": "anywhere", "min-width": 0 } }, `${name}: ${about}`), iconButton("close", label, act));

async function forget(at, title, text, again) {
  if (!await ask({ title, text, yes: told.forget })) return;
  try { await remove(at); } catch (error) { toast(error.message, "bad"); }
  again();
}
