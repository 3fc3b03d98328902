// The house: who is here, the socket, the sidebar, and the one view that is open. Addresses are `#/…`, so that the back
// button and links work.

import { begin, login, logout } from "./api.js";
import { Chat } from "./chat.js";
import { h, icon, iconButton, toast } from "./dom.js";
import { OutboxView } from "./outbox.js";
import { SettingsView } from "./settings.js";
import { Sidebar } from "./sidebar.js";
import { Socket } from "./socket.js";
import { TraceView } from "./trace.js";
import { UsageView } from "./usage.js";

const root = document.getElementById("app");
const house = { go, changed: () => sidebar?.soon(), menuButton, drawer, theme, logout: leave, socket: null };
let sidebar = null;
let view = null;

function go(hash) {
  if (location.hash === hash) show(); else location.hash = hash;
}

function menuButton() {
  return iconButton("menu", "Open the menu", () => drawer(true), { class: "ghost menu", "aria-expanded": "false" });
}

function drawer(open) {
  document.body.classList.toggle("drawer", open);
  if (open) sidebar.field.focus();
}

const THEMES = ["light", "dark"];

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  const next = THEMES[1 - THEMES.indexOf(now)];
  document.documentElement.dataset.theme = next;
  try { localStorage.setItem("theme", next); } catch { /* it lasts as long as the page, then */ }
}

function show() {
  const [, kind = "", id = "", seq = ""] = location.hash.split("/");
  drawer(false);
  view?.close?.();
  view = { c: () => new Chat(house, { thread: id, jump: Number(seq) || 0 }), t: () => new TraceView(house, id), usage: () => new UsageView(house), outbox: () => new OutboxView(house), settings: () => new SettingsView(house, id) }[kind]?.()
    ?? new Chat(house);
  if (kind !== "c") document.title = { usage: "Usage · everloop", outbox: "Outbox · everloop", settings: "Settings · everloop", t: "Trace · everloop" }[kind] ?? "everloop";
  document.getElementById("main").replaceChildren(view.node);
  sidebar.mark();
}

function heard(frame) {
  if (frame.type === "error" && !frame.session && !frame.id) toast(frame.content, "bad");
  view?.frame(frame);
  if (frame.type !== "stream_chunk" && frame.session && frame.session !== view?.session) sidebar.soon();
}

function connected(state) {
  sidebar.connected(state);
  document.body.classList.toggle("offline", state !== "open");
  if (state === "open") { view?.reconnected(); sidebar.soon(); }
}

/** The socket broke. Perhaps the gateway is gone for a moment, perhaps we are not logged in any more. */
async function lost() {
  const me = await begin().catch(() => undefined);
  if (me === null) enter();
}

function atHome(me) {
  sidebar = new Sidebar(house);
  root.replaceChildren(sidebar.node, h("div.veil", { onclick: () => drawer(false) }), h("main", { id: "main" }));
  document.body.classList.add("in");
  house.me = me;
  house.socket = new Socket({ onframe: heard, onstate: connected, onlost: lost });
  sidebar.load();
  show();
}

function enter() {
  house.socket?.close();
  document.body.classList.remove("in");
  const field = h("input", { type: "password", id: "password", autocomplete: "current-password", required: true });
  const wrong = h("p.wrong", { role: "alert" });
  const button = h("button.primary", { type: "submit" }, "Log in");
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    wrong.textContent = "";
    try {
      await login(field.value);
      await start();
    } catch (error) {
      wrong.textContent = error.message;
      field.select();
    }
    button.disabled = false;
  };
  root.replaceChildren(h("main.login", { id: "main" }, h("form", { onsubmit: submit },
    h("div.mark", {}, icon("loop")), h("h1", {}, "everloop"),
    h("label", { for: "password" }, "Password"), field, wrong, button,
    h("p.hint", {}, "No password yet? Open the one-time link that ", h("code", {}, "everloop gateway"), " printed when it started."))));
  field.focus();
}

async function leave() {
  await logout();
  enter();
}

async function start() {
  try {
    const me = await begin();
    if (me) atHome(me); else enter();
  } catch (error) {
    root.replaceChildren(h("main.login", { id: "main" }, h("div.empty", {}, h("h1", {}, "everloop cannot be reached"), h("p", {}, error.message),
      h("button", { type: "button", onclick: start }, "Try again"))));
  }
}

document.addEventListener("loggedout", enter);
document.addEventListener("visibilitychange", () => { if (!document.hidden && house.me) house.changed(); }); // other channels go on, too
window.addEventListener("hashchange", () => { if (sidebar && document.body.classList.contains("in")) show(); });
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || !document.body.classList.contains("in")) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); drawer(innerWidth < 800); sidebar.field.focus(); sidebar.field.select(); }
  else if (event.altKey && event.key.toLowerCase() === "n") { event.preventDefault(); go("#/"); }
  else if (event.key === "Escape" && document.body.classList.contains("drawer")) drawer(false);
  else if (event.key === "Escape" && !document.querySelector("dialog[open]") && view?.log?.running) view.stop();
});

try { document.documentElement.dataset.theme = localStorage.getItem("theme") ?? ""; } catch { /* as the system has it */ }
start();
