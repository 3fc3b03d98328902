// Building the page out of nodes. Text only ever becomes text nodes: nothing here, or anywhere, parses HTML.

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
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [name, text] of Object.entries(value)) node.style.setProperty(name, text);
    else if (key === "value") node.value = value;
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

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
  theme: "M12 4a8 8 0 1 0 8 8 6 6 0 0 1-8-8z",
  clip: "M19 11l-7.5 7.5a4.5 4.5 0 0 1-6.4-6.4L13 4.3a3 3 0 0 1 4.3 4.3l-7.8 7.8a1.5 1.5 0 0 1-2.2-2.1L14 7.500",
  close: "M6 6l12 12M18 6L6 18",
  down: "M12 5v14M6 13l6 6 6-6",
  out: "M14 5H6v14h8M10 12h10M17 9l3 3-3 3",
  check: "M5 13l4 4 10-10",
  tool: "M14.500 6.500a4 4 0 0 0-5 5L4 17l3 3 5.500-5.500a4 4 0 0 0 5-5l-2.500 2.500-3-3z",
  loop: "M12 12c-2-2.700-3.600-4.100-5.600-4.100a4.100 4.100 0 0 0 0 8.200c2 0 3.600-1.400 5.600-4.100s3.600-4.100 5.600-4.100a4.100 4.100 0 0 1 0 8.200c-2 0-3.600-1.400-5.600-4.100z",
};

export function icon(name) {
  const drawn = s("path", { d: PATHS[name] });
  return s("svg.icon", { viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" }, drawn);
}

/** A button that shows only a picture, and says what it does to everyone. */
export function iconButton(name, label, onclick, more = {}) {
  return h("button.ghost", { type: "button", "aria-label": label, title: label, onclick, ...more }, icon(name));
}

export function toast(text, kind = "note") {
  const shown = h(`div.toast.${kind}`, {}, text);
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), kind === "bad" ? 9000 : 4000);
}

/** Ask for a line of text, or (without a label) for a yes. Resolves to null when the person thinks better of it. */
export function ask({ title, text = "", label = "", value = "", yes = "OK", area = false }) {
  return new Promise((resolve) => {
    const field = label && h(area ? "textarea" : "input", { value, rows: 6, "aria-label": label });
    const done = (answer) => { dialog.close(); dialog.remove(); resolve(answer); };
    const submit = (event) => { event.preventDefault(); done(field ? field.value.trim() || null : true); };
    const dialog = h("dialog", { "aria-label": title, oncancel: () => done(null) },
      h("form", { onsubmit: submit },
        h("h2", {}, title), text && h("p", {}, text), field,
        h("div.row.end", {},
          h("button", { type: "button", onclick: () => done(null) }, "Cancel"),
          h("button.primary", { type: "submit" }, yes))));
    document.body.append(dialog);
    dialog.showModal();
    if (field) { field.focus(); field.select(); }
  });
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied");
  } catch {
    toast("The browser does not let this page use the clipboard; select the text and copy it.", "bad");
  }
}
