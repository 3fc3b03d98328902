// Which of it a person wants, in this browser.

import { get } from "./api.js";
import { h, styled, toast } from "./dom.js";
import { told } from "./say-speech.js";
import { read, write } from "./seen.js";

export async function choose() {
  let standing = { seconds: 0, characters: 0 };
  try { [standing] = await Promise.all([get("/api/speech"), styled("speech.css")]); } catch (error) { toast(error.message, "bad"); return; }
  const chosen = read("speech") ?? {};
  const can = {
    provider: Boolean(standing.seconds && navigator.mediaDevices && window.MediaRecorder),
    browser: Boolean(window.SpeechRecognition ?? window.webkitSpeechRecognition),
    browserVoice: "speechSynthesis" in window,
    providerVoice: Boolean(standing.characters),
  };
  const talk = check(told.talk, Boolean(chosen.talk), can.provider || can.browser);
  const by = chosen.talk || (can.provider ? "provider" : ""); // the browser is never taken by itself
  const provider = radio(told.byProvider, by === "provider" && can.provider, can.provider);
  const browser = radio(told.byBrowser, by === "browser" && can.browser, can.browser);
  const atOnce = check(told.atOnce, chosen.atOnce);
  const canRead = can.browserVoice || can.providerVoice;
  const aloud = check(told.aloud, chosen.aloud && canRead, canRead);
  const always = check(told.always, chosen.always && canRead, canRead);
  const paid = chosen.by === "provider" && can.providerVoice; // never taken by itself, for it costs
  const readers = { browser: radio(told.readByBrowser, !paid && can.browserVoice, can.browserVoice, "speech-reader"), provider: radio(told.readByProvider, paid, can.providerVoice, "speech-reader") };
  const hint = (text) => h("p.hint", {}, text);
  const close = () => { dialog.close(); dialog.remove(); };
  const wrong = h("p.wrong", { role: "alert" });
  const lacks = (label, text) => { wrong.textContent = text; label.querySelector("input").focus(); };
  const submit = (event) => {
    event.preventDefault();
    const way = on(talk) ? (on(provider) ? "provider" : on(browser) ? "browser" : "") : "";
    if (on(talk) && !way) { lacks(browser, told.whoHears); return; } // it has to be said
    const reads = on(aloud) || on(always);
    const reader = on(readers.provider) ? "provider" : on(readers.browser) ? "browser" : "";
    if (reads && !reader) { lacks(readers.provider, told.whoReads); return; } // it may cost
    const now = { talk: way, atOnce: on(atOnce), aloud: reads, always: on(always), by: reader };
    write("speech", way || now.aloud ? now : null);
    close();
    document.dispatchEvent(new Event("speech"));
  };
  const missing = !navigator.mediaDevices ? told.noMicrophone : standing.seconds ? "" : told.noProvider;
  const dialog = h("dialog.speech", { "aria-label": told.title, oncancel: close },
    h("form", { onsubmit: submit }, h("h2", {}, told.title), hint(told.intro), talk, hint(told.talkHint),
      h("fieldset", {}, h("legend", {}, told.by), provider, missing && hint(missing), browser, hint(can.browser ? told.privacy : told.noBrowser)),
      atOnce, hint(told.atOnceHint), aloud, always,
      h("fieldset", {}, h("legend", {}, told.aloudBy), readers.browser, !can.browserVoice && hint(told.noVoice), readers.provider, hint(can.providerVoice ? told.readCost : told.noReader)),
      wrong, h("div.row.end", {}, h("button", { type: "button", onclick: close }, told.cancel), h("button.primary", { type: "submit" }, told.save))));
  document.body.append(dialog);
  dialog.showModal();
}

const on = (label) => label.querySelector("input").checked;
const check = (text, checked, enabled = true) => h("label.option", {}, h("input", { type: "checkbox", checked: Boolean(checked), disabled: !enabled }), text);
const radio = (text, checked, enabled, name = "speech-by") => h("label.option", {}, h("input", { type: "radio", name, checked, disabled: !enabled, required: false }), text);
