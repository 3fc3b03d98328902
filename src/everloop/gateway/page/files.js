// Files as they stand in a conversation: pictures are shown, texts can be looked at, and everything can be taken along.
// Whatever a file holds becomes a picture or plain text here, and never a page.

import { blob } from "./api.js";
import { h, icon, iconButton, toast } from "./dom.js";

const PICTURE = /^image\/(png|jpeg|gif|webp)$/;
const LONGEST = 20_000; // characters of a text that are shown

/** A link of the gateway: {name, mime, url}. */
export function attachment(link) {
  const name = link.name || "file";
  const take = iconButton("down", `Download ${name}`, () => download(link));
  return PICTURE.test(link.mime) ? picture(link, name, take) : text(link, name, take);
}

function picture(link, name, take) {
  const shown = h("img.picture", { alt: name, loading: "lazy" });
  blob(link.url).then((data) => { shown.src = URL.createObjectURL(data); shown.onload = () => URL.revokeObjectURL(shown.src); },
    () => shown.replaceWith(h("span", {}, "cannot be shown")));
  return h("figure.file", {}, shown, h("figcaption.chip", {}, name, take));
}

/** What it holds is fetched when someone wants to see it. */
function text(link, name, take) {
  const shown = h("pre.result", { tabindex: "0", hidden: true });
  const open = h("button.link", { type: "button", "aria-expanded": "false", onclick: () => toggle() }, icon("clip"), name);
  const toggle = async () => {
    if (shown.hidden && !shown.textContent) {
      try { shown.textContent = await words(link); } catch (error) { toast(error.message, "bad"); return; }
    }
    shown.hidden = !shown.hidden;
    open.setAttribute("aria-expanded", String(!shown.hidden));
  };
  return h("div.file", {}, h("span.chip", {}, open, take), shown);
}

async function words(link) {
  const data = await blob(link.url);
  if (!data.type.startsWith("text/plain")) return "It cannot be shown here. Download it to open it.";
  const text = await data.slice(0, 4 * LONGEST).text();
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}\n…` : text || "(it is empty)";
}

async function download(link) {
  try {
    const url = URL.createObjectURL(await blob(link.url));
    h("a", { href: url, download: (link.name || "file").split("/").at(-1) }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  } catch (error) { toast(error.message, "bad"); }
}
