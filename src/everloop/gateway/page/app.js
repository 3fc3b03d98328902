// The house: who is here, the socket, the sidebar, and the one view that is open. Addresses are `#/…`: Back and links
// work. Views other than the conversation are loaded when they are opened.

import { begin, login, logout } from "./api.js";
import { Chat } from "./chat.js";
import { h, icon, iconButton, styled, toast } from "./dom.js";
import { forgetDrafts, putBack } from "./drafts.js";
import { say } from "./say.js";
import { Sidebar } from "./sidebar.js";
import { Socket } from "./socket.js";

const VIEWS = {
  t: [say.trace, async (id) => new (await import("./trace.js")).TraceView(house, id)],
  files: [say.files, async (...at) => { await styled("workspace.css"); return new (await import("./workspace.js")).WorkspaceView(house, ...at); }],
  settings: [say.manage, async (id) => { await styled("setup.css"); return new (await import("./settings.js")).SettingsView(house, id); }],
  waiting: [say.waiting, async () => new (await import("./waiting.js")).WaitingView(house)],
};
const MOVED = { usage: "#/settings/usage", outbox: "#/settings/outbox" }; // old links
const THEMES = ["", "light", "dark"]; // the first is as the system has it

const root = document.getElementById("app");
let noticing; // is loaded once
const notices = () => noticing ??= import("./notify.js").then(({ Notices }) => new Notices(go));
const house = {
  go, changed: () => sidebar?.soon(), seen: (id, head) => sidebar?.saw(id, head), titled, told, menuButton, drawer, theme, themeNow: () => themeNow(), logout: leave,
  speech: async () => (await import("./speech-choice.js")).choose(), notify: async () => (await notices()).toggle(), help, socket: null, gone: (id) => gone(id),
};
let sidebar = null;
let view = null;
let title = "";
let waiting = 0;

function go(hash) {
  if (location.hash === hash) show(); else location.hash = hash;
}

function menuButton() {
  return iconButton("menu", say.openMenu, () => drawer(true), { class: "ghost menu", "aria-expanded": "false" });
}

function drawer(open) {
  document.body.classList.toggle("drawer", open);
  if (open) sidebar.field.focus();
}

function titled(text) {
  title = text;
  document.title = `${waiting ? `(${waiting}) ` : ""}${text ? `${text} · ` : ""}everloop`;
}

/** The list was looked at: what waits stands in the tab's title, and the browser may say so. */
function told(sessions, approvals) {
  waiting = approvals.length;
  titled(title);
  notices().then((each) => each.look(sessions, approvals));
}

const themeNow = () => document.documentElement.dataset.theme ?? "";

function theme() {
  const next = THEMES[(THEMES.indexOf(themeNow()) + 1) % THEMES.length];
  document.documentElement.dataset.theme = next;
  toast(say.themes[next]);
  sidebar.showTheme();
  try { localStorage.setItem("theme", next); } catch { /* it lasts as long as the page, then */ }
}

async function show() {
  const [, kind = "", id = "", seq = ""] = location.hash.split("/");
  if (Object.hasOwn(MOVED, kind)) { location.replace(MOVED[kind]); return; }
  const [name, make] = Object.hasOwn(VIEWS, kind) ? VIEWS[kind] : ["", null];
  drawer(false);
  for (const each of document.querySelectorAll("dialog")) each.dispatchEvent(new Event("cancel")); // Back leaves it
  const place = `${kind}/${id}/${seq}`;
  house.place = place;
  if (view?.moved?.(kind, id, seq)) return; // it shows another part of what it shows
  const opened = make ? await styled("views.css").then(() => make(id, seq)).catch(() => toast(say.notLoaded, "bad", [say.reload, () => location.reload()])) : new Chat(house, { thread: kind === "c" ? id : "", jump: Number(seq) || 0 });
  if (!opened || house.place !== place) { opened?.close?.(); return; } // another was opened meanwhile
  view?.close?.();
  view = opened;
  if (kind !== "c") titled(view.name || name);
  const main = document.getElementById("main");
  const held = make && main.contains(document.activeElement); // a conversation offers its field
  main.replaceChildren(view.node);
  if (held) view.node.querySelector("[aria-current], .scroller")?.focus();
  sidebar.mark();
}

const gone = async (id) => (await import("./deletion.js")).gone(id, view, sidebar, house);

function heard(frame) {
  if (frame.event === "deleted") { gone(frame.thread); return; }
  if (frame.type === "error" && !frame.session && !frame.id) toast(frame.content, "bad");
  view?.frame(frame);
  if (frame.event === "titled" || (frame.type !== "stream_chunk" && frame.session && frame.session !== view?.session)) sidebar.soon();
}

function connected(state) {
  const open = state === "open";
  document.body.classList.toggle("offline", !open);
  document.querySelector(".cut-off").hidden = open;
  view?.connection?.(open);
  if (!open) return;
  house.socket.put({ type: "watch" });
  if (house.met) { view?.reconnected(); sidebar.soon(); } // at the first time all of it is being read anyway
  house.met = true;
}

/** The gateway is gone for a moment, or we are not logged in any more. */
async function lost() {
  const me = await begin().catch(() => undefined);
  if (me === null) enter();
}

function atHome(me) {
  house.me = me;
  sidebar = new Sidebar(house);
  root.replaceChildren(sidebar.node, h("div.veil", { onclick: () => drawer(false) }), h("div.half", {},
    h("div.cut-off", { hidden: true, role: "status" }, say.noConnection, h("button.small", { type: "button", onclick: () => house.socket.connect() }, say.tryNow)),
    h("main", { id: "main" })));
  document.body.classList.add("in");
  house.met = false;
  house.socket = new Socket({ onframe: heard, onstate: connected, onlost: lost, onrefused: putBack });
  sidebar.load();
  show();
}

function enter() {
  house.socket?.close();
  document.body.classList.remove("in");
  titled("");
  const field = h("input", { type: "password", id: "password", autocomplete: "current-password", required: true });
  const name = h("input", { id: "name", autocomplete: "username", "aria-label": say.yourName, placeholder: say.yourName });
  const wrong = h("p.wrong", { role: "alert" }, location.hash === "#/used-link" ? say.usedLink : "");
  const button = h("button.primary", { type: "submit" }, say.logIn);
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    wrong.textContent = "";
    try {
      await login(field.value, name.value.trim());
      await start();
    } catch (error) {
      wrong.textContent = error.message;
      field.select();
    }
    button.disabled = false;
  };
  root.replaceChildren(h("main.login", { id: "main" }, h("form", { onsubmit: submit },
    h("div.mark", {}, icon("loop")), h("h1", {}, say.everloop),
    h("label", { for: "password" }, say.password), field,
    h("details", {}, h("summary", {}, say.notOwner), name), wrong, button,
    h("p.hint", {}, say.noPasswordYet, " ", h("code", {}, "everloop gateway"), " ", say.noPasswordThen))));
  field.focus();
}

async function leave() {
  await logout();
  forgetDrafts();
  enter();
}

async function start() {
  try {
    const me = await begin();
    if (me) atHome(me); else enter();
  } catch (error) {
    root.replaceChildren(h("main.login", { id: "main" }, h("div.empty", {}, h("h1", {}, say.notReached), h("p", {}, error.message),
      h("button", { type: "button", onclick: start }, say.tryAgain))));
  }
}

async function help() { (await import("./help.js")).help(); }

/** Whether a key was pressed while somebody writes, or is in a list or dialog of their own. */
const isBusy = (target) => document.querySelector("dialog[open]") || target.closest?.("input, textarea, select, [role=menu], .sidebar");

function pressed(event) {
  if (event.defaultPrevented || event.isComposing || !document.body.classList.contains("in")) return;
  const key = event.key.toLowerCase();
  const command = event.ctrlKey || event.metaKey;
  const acts = {
    search: () => { drawer(innerWidth < 800); sidebar.field.focus(); sidebar.field.select(); }, fresh: () => go("#/"), help,
    shut: () => drawer(false), stop: () => view.stop(),
  };
  const meant = command && key === "k" ? "search" : event.altKey && key === "n" ? "fresh" : (command && key === "/") || (key === "?" && !isBusy(event.target)) ? "help"
    : key !== "escape" ? "" : document.body.classList.contains("drawer") ? "shut" : view?.log?.running && !isBusy(event.target) ? "stop" : "";
  if (!meant) return;
  event.preventDefault();
  acts[meant]();
}

document.addEventListener("loggedout", enter);
document.addEventListener("visibilitychange", () => { if (!document.hidden && house.me) house.changed(); }); // other channels go on, too
setInterval(() => { if (!document.hidden && house.me) house.changed(); }, 60_000); // and another machine may have done something
window.addEventListener("hashchange", () => { if (sidebar && document.body.classList.contains("in")) show(); });
document.addEventListener("keydown", pressed);
document.querySelector(".skip").textContent = say.skip;

try { document.documentElement.dataset.theme = localStorage.getItem("theme") ?? ""; } catch { /* as the system has it */ }
start();
