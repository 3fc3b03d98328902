// Building the page out of nodes. Text becomes text nodes only: nothing, anywhere, parses HTML.

import { say } from "./say.js";

const SVG = "http://www.w3.org/2000/svg";

/** h("button.primary", {onclick, "aria-label": "Send"}, "Send") */
export function h(tag, attributes, ...children) {
  const [name, ...classes] = tag.split(".");
  return fill(document.createElement(name || "div"), classes, attributes, children);
}

/** The same for SVG. */
export function s(tag, attributes, ...children) {
  const [name, ...classes] = tag.split(".");
  return fill(document.createElementNS(SVG, name), classes, attributes, children);
}

function fill(node, classes, attributes, children) {
  if (classes.length) node.setAttribute("class", classes.join(" "));
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false)); // before `dir`, which looks at them all each time
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [name, text] of Object.entries(value)) node.style.setProperty(name, text);
    else if (key === "value") node.value = value;
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  return node;
}

/** Resolves when a style sheet that not every view needs is there. */
export const styled = (name) => new Promise((resolve, reject) => {
  const href = new URL(name, import.meta.url).href;
  if (document.querySelector(`link[href="${href}"]`)) resolve();
  else document.head.append(h("link", { rel: "stylesheet", href, onload: resolve, onerror: () => reject(new Error(name)) }));
});

const PATHS = {
  menu: "M4 7h16M4 12h16M4 17h16",
  plus: "M12 5v14M5 12h14",
  search: "M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM20 20l-4.5-4.5",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M8 8h8v8H8z",
  copy: "M9 9h10v10H9zM15 9V5H5v10h4",
  again: "M20 11a8 8 0 1 0-2.3 6.3M20 5v6h-6",
  fork: "M7 4v6a4 4 0 0 0 4 4h6M7 4v16M14 11l3 3-3 3",
  edit: "M4 20l1-4L16 5l3 3L8 19z",
  undo: "M9 7l-5 5 5 5M4 12h10a6 6 0 0 1 6 6",
  trace: "M4 6h9M8 12h9M12 18h8",
  chart: "M5 19v-6M12 19V5M19 19v-9",
  gear: "M5 7h8M17 7h2M5 17h2M11 17h8M15 5v4M9 15v4",
  archive: "M4 6h16v4H4zM6 10v9h12v-9M10 14h4",
  dark: "M12 4a8 8 0 1 0 8 8 6 6 0 0 1-8-8z",
  light: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 3v1M12 20v1M3 12h1M20 12h1M6 6l.500.500M17.500 17.500l.500.500M18 6l-.500.500M6.500 17.500L6 18",
  system: "M4 5h16v11H4zM9 20h6",
  clock: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4l3 2",
  person: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM5 20c0-4 3-6 7-6s7 2 7 6",
  clip: "M19 11l-7.5 7.5a4.5 4.5 0 0 1-6.4-6.4L13 4.3a3 3 0 0 1 4.3 4.3l-7.8 7.8a1.5 1.5 0 0 1-2.2-2.1L14 7.5",
  close: "M6 6l12 12M18 6L6 18",
  bin: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  down: "M12 5v14M6 13l6 6 6-6",
  out: "M14 5H6v14h8M10 12h10M17 9l3 3-3 3",
  check: "M5 13l4 4 10-10",
  pin: "M9 4h6l-1 6 3 3v2H7v-2l3-3zM12 15v5",
  print: "M7 9V4h10v5M7 17H5v-7h14v7h-2M7 14h10v6H7z",
  more: "M4.500 12h1M11.500 12h1M18.500 12h1",
  fold: "M7 10l5 5 5-5",
  left: "M14 6l-6 6 6 6",
  right: "M10 6l6 6-6 6",
  bell: "M6 16V11a6 6 0 0 1 12 0v5l1.500 2h-15zM10 20h4",
  help: "M9 9.500a3 3 0 1 1 4.500 2.600c-1 .600-1.500 1.200-1.500 2.400M12 18h.010",
  tool: "M14.500 6.500a4 4 0 0 0-5 5L4 17l3 3 5.500-5.500a4 4 0 0 0 5-5l-2.500 2.500-3-3z",
  folder: "M4 18V6h5l2 2h9v10z",
  loop: "M12 12c-2-2.700-3.600-4.100-5.600-4.100a4.100 4.100 0 0 0 0 8.200c2 0 3.600-1.400 5.600-4.100s3.600-4.100 5.600-4.100a4.100 4.100 0 0 1 0 8.200c-2 0-3.600-1.400-5.600-4.100z",
};

/** By its name, or as its path. */
export function icon(name) {
  const drawn = s("path", { d: PATHS[name] ?? name });
  return s("svg.icon", { viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" }, drawn);
}

/** A button that shows only a picture, and says what it does to everyone. */
export function iconButton(name, label, onclick, more = {}) {
  return h("button.ghost", { type: "button", "aria-label": label, title: label, onclick, ...more }, icon(name));
}

/** A word in passing; `act` is [label, what it does], to take it back. */
export function toast(text, kind = "note", act = null) {
  const shown = h(`div.toast.${kind}`, {}, h("span", {}, text),
    act && h("button.small", { type: "button", onclick: () => { shown.remove(); act[1](); } }, act[0]));
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), kind === "bad" || act ? 9000 : 4000);
}

/** A button that opens a list; `items()` gives [icon, label, what it does] for each line. */
export function menu(label, items) {
  const close = (focus) => { list.hidden = true; button.setAttribute("aria-expanded", "false"); if (focus) button.focus(); };
  const line = ([name, text, act]) => h("button.line", { type: "button", role: "menuitem", onclick: () => { close(true); act(); } }, icon(name), text);
  const step = (by) => { const all = [...list.children]; all[(all.indexOf(document.activeElement) + by + all.length) % all.length].focus(); };
  const list = h("div.popup", { role: "menu", "aria-label": label, hidden: true });
  const button = h("button.ghost", { type: "button", "aria-label": label, title: label, "aria-haspopup": "menu", "aria-expanded": "false", onclick: () => {
    if (!list.hidden) { close(true); return; }
    list.replaceChildren(...items().map(line));
    list.hidden = false;
    button.setAttribute("aria-expanded", "true");
    list.firstChild.focus();
  } }, icon("more"));
  return h("span.menu-of", {
    onkeydown: (event) => {
      if (list.hidden || !["Escape", "ArrowDown", "ArrowUp"].includes(event.key)) return;
      event.preventDefault();
      if (event.key === "Escape") close(true); else step(event.key === "ArrowDown" ? 1 : -1);
    },
    onfocusout: (event) => { if (!event.currentTarget.contains(event.relatedTarget)) close(false); },
  }, button, list);
}

/** Ask for a line of text, or (without a label) for a yes. Resolves to null when the person thinks better of it. */
/** What is `grave` is not done by a stray Enter. */
export function ask({ title, text = "", label = "", value = "", yes = say.ok, area = false, grave = false }) {
  return new Promise((resolve) => {
    const field = label && h(area ? "textarea" : "input", { value, rows: 6, "aria-label": label });
    const done = (answer) => { dialog.close(); dialog.remove(); resolve(answer); };
    const submit = (event) => { event.preventDefault(); done(field ? field.value.trim() || null : true); };
    const send = (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) dialog.querySelector("form").requestSubmit(); };
    const dialog = h("dialog", { "aria-label": title, oncancel: () => done(null) },
      h("form", { onsubmit: submit, onkeydown: send },
        h("h2", {}, title), text && h("p", {}, text), field,
        h("div.row.end", {},
          h("button", { type: "button", onclick: () => done(null) }, say.cancel),
          h(grave ? "button.grave" : "button.primary", { type: "submit" }, yes))));
    document.body.append(dialog);
    dialog.showModal();
    if (field) { field.focus(); field.select(); }
  });
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast(say.copied);
  } catch {
    toast(say.notCopied, "bad");
  }
}
