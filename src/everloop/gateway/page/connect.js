// The card that connects a model: whom, with which key, which of its models; one press keeps all of it. Nothing is kept
// before, and a key that is kept already is not sent to an address that is written here.

import { get, post } from "./api.js";
import { h, styled } from "./dom.js";
import { ModelChoice } from "./connect-models.js";
import { words } from "./say-connect.js";

const SHOWN = 8; // providers that are offered before one searches
const ADDRESS = /^(https?:\/\/\S+|[\w.-]+:\d{2,5}(\/\S*)?)$/i;

/** As it would be dialled: a server that is named without a scheme is one of this network. */
const dialled = (text) => (/^https?:/i.test(text) ? text : `http://${text}`);

export class ConnectCard {
  /** `done(model)` is called when a model is connected. */
  constructor(done) {
    this.done = done;
    this.providers = [];
    this.all = false;
    this.field = h("input", { type: "text", "aria-label": words.search, placeholder: words.searchHint, autocomplete: "off", spellcheck: "false", oninput: () => this.searched() });
    this.list = h("div.offers");
    this.rest = h("div.rest");
    this.wrong = h("p.wrong", { role: "alert" });
    this.node = h("form.connect", { "aria-label": words.connect, onsubmit: (event) => { event.preventDefault(); this.submit(); }, novalidate: true },
      h("h2", {}, words.connect), h("p.hint", {}, words.hint), this.field, this.list, this.rest, this.wrong);
    this.ready = this.load();
  }

  async load() {
    try {
      const [{ providers }] = await Promise.all([get("/api/models/providers"), styled("connect.css")]);
      this.providers = providers;
      if (providers.length) this.offer(); else this.node.remove(); // where one model was handed over there is no other
    } catch (error) {
      if (error.status === 403) this.node.remove(); else this.wrong.textContent = error.message;
    }
  }

  searched() {
    this.wrong.textContent = "";
    const text = this.field.value.trim();
    if (ADDRESS.test(text)) this.ask(this.providers.find((each) => each.name === "custom"), dialled(text), true);
    else { this.rest.replaceChildren(); this.chosen = null; }
    this.offer();
  }

  /** What fits the words, in groups; without words the best known. */
  offer() {
    const text = this.field.value.trim().toLowerCase();
    this.list.hidden = Boolean(this.chosen);
    const fitting = this.providers.filter((each) => `${each.name} ${each.title}`.toLowerCase().includes(text));
    const hosted = fitting.filter((each) => each.group === "hosted");
    const shown = text || this.all ? hosted : hosted.slice(0, SHOWN);
    const groups = [["hosted", shown], ...["local", "own"].map((group) => [group, fitting.filter((each) => each.group === group)])];
    this.list.replaceChildren(...groups.filter(([, rows]) => rows.length).map(([group, rows]) => h("div.offered", { role: "group", "aria-label": words.groups[group] },
      h("span.over", {}, words.groups[group]), rows.map((each) => this.button(each)),
      group === "hosted" && rows.length < hosted.length && h("button.small.ghost", { type: "button", onclick: () => { this.all = true; this.offer(); } }, words.more(hosted.length - rows.length)))),
    ...(fitting.length || !text ? [] : [h("p.hint", {}, words.noneFits)]));
  }

  button(provider) {
    return h("button.small", { type: "button", onclick: () => this.ask(provider) }, provider.name === "custom" ? words.another : h("span.name", {}, provider.title));
  }

  /** What it has to be given. Where that is nothing, it is asked for its models at once. */
  ask(provider, address = provider.address, typed = false) {
    const same = this.chosen?.provider === provider && typed; // whoever types on has not begun anew
    const own = provider.group !== "hosted" || !provider.address;
    this.chosen = { provider, typed };
    this.models = null;
    this.address = h("input", { type: "url", "aria-label": words.address, placeholder: words.addressHint, value: address, spellcheck: "false" });
    if (!same) this.key = h("input", { type: "password", "aria-label": words.key, placeholder: words.keyHint, autocomplete: "off" });
    this.found = h("div.found");
    this.button_ = h("button.primary", { type: "submit" }, words.look);
    const wants = provider.needs_key || provider.group === "own";
    this.rest.replaceChildren(...(provider.login && !provider.ready ? [this.named(provider), h("p.hint", {}, words.loginFirst, " ", h("code", {}, `everloop models login ${provider.name}`), " ", words.loginThen)]
      : [typed ? null : this.named(provider), own && !typed && labelled(words.address, this.address), wants && labelled(provider.group === "own" ? words.keyMaybe : words.key, this.key),
        wants && provider.ready && provider.needs_key && h("p.hint", {}, words.keyKept), this.found, h("div.row", {}, this.button_)].filter(Boolean)));
    this.field.hidden = !typed;
    this.offer();
    if (typed) return;
    if (provider.ready && (provider.needs_key || provider.group === "local")) this.look();
    else (own && !address ? this.address : this.key).focus();
  }

  named(provider) {
    const back = () => { this.chosen = null; this.field.hidden = false; this.field.value = ""; this.rest.replaceChildren(); this.wrong.textContent = ""; this.offer(); this.field.focus(); };
    return h("div.row.spread", {}, h("b.name", {}, provider.title), h("button.small", { type: "button", onclick: back }, words.change));
  }

  get asked() { return { provider: this.chosen.provider.name, address: this.chosen.provider.group === "hosted" && this.chosen.provider.address ? "" : this.address.value.trim() && dialled(this.address.value.trim()), key: this.key.value.trim() }; }

  submit() {
    if (!this.chosen) { const only = this.list.querySelectorAll("button:not(.ghost)"); if (only.length) only[0].click(); return; }
    if (this.models) this.keep(); else this.look();
  }

  async look() {
    await this.working(words.looking, words.look, async () => {
      const found = await post("/api/models/look", this.asked);
      if (!this.address.value.trim() || this.asked.address) this.address.value = found.address;
      this.choose(found);
    }, (error) => { if (error.code === "no_list") this.choose({ models: [], usual: "" }); });
  }

  choose(found) {
    this.models = new ModelChoice(found, (name) => { this.button_.textContent = name ? words.use(name) : words.useNone; });
    this.found.replaceChildren(this.models.node);
    for (const field of [this.address, this.key]) field.oninput = () => { this.models = null; this.found.replaceChildren(); this.button_.textContent = words.look; };
  }

  async keep() {
    const model = this.models.value;
    if (!model) { this.models.field.focus(); return; }
    await this.working(words.saving, words.use(model), async () => {
      const kept = await post("/api/models/connect", { ...this.asked, model });
      this.finish(kept);
    });
  }

  /** The button says what goes on, and is pressed once. */
  async working(during, after, work, failed = () => {}) {
    const button = this.button_;
    this.wrong.textContent = "";
    button.disabled = true;
    button.textContent = during;
    let mended = button;
    try { await work(); } catch (error) {
      this.wrong.textContent = error.message;
      failed(error);
      mended = error.code === "key_refused" ? this.key : button;
    }
    if (button.textContent === during) button.textContent = this.models ? (this.models.value ? words.use(this.models.value) : words.useNone) : after;
    button.disabled = false;
    if (!button.isConnected) return;
    (this.models && !this.models.value ? this.models.field : mended).focus();
    (this.wrong.textContent ? this.wrong : button).scrollIntoView({ block: "nearest" });
  }

  finish({ model, notes }) {
    const shown = h("p.hint", { role: "status" });
    const test = h("button.small", { type: "button", onclick: async () => {
      test.disabled = true;
      shown.textContent = words.asking;
      try {
        const { checks } = await post("/api/models/test", { name: "" });
        shown.textContent = checks.every((each) => each.ok) ? words.well : checks.filter((each) => !each.ok).map((each) => `${each.name}: ${each.why}`).join(" ");
      } catch (error) { shown.textContent = error.message; }
      test.disabled = false;
    } }, words.test);
    this.node.replaceChildren(h("p.good", { role: "status" }, words.done(model)), ...notes.map((each) => h("p.hint", {}, each)), h("div.row", {}, test), shown);
    this.done(model);
  }
}

const labelled = (label, field) => h("label.labelled", {}, h("span", {}, label), field);
