// The tools of an MCP server: what each does, how it stands, what has changed in it; allowing, denying and trying it.

import { get, post } from "./api.js";
import { h, toast } from "./dom.js";
import { highlight } from "./highlight.js";
import { line } from "./lines.js";
import { told } from "./say-mcp.js";

export const at = (name, more = "") => `/api/mcp/${encodeURIComponent(name)}${more}`;

const hinted = (tool) => Object.entries(tool.hints).map(([hint, value]) => told.hints[hint]?.[value ? 0 : 1]).filter(Boolean).join(", ");

/** All that is to be seen before somebody allows it. */
export const toolFacts = (tool) => [
  h("div.row.spread", {}, h("code", {}, tool.tool.startsWith("@") ? told.readable(tool.tool) : tool.tool), h("span.state", { "data-state": tool.state }, told.toolStates[tool.state])),
  h("ul.facts", {}, [told.effects[tool.effect], hinted(tool) && told.hinted(hinted(tool)), tool.used > 0 && told.used(tool.used)].filter(Boolean).map((text) => h("li", {}, text))),
  tool.description && h("p", { dir: "auto" }, tool.description),
  tool.difference && h("pre", { tabindex: "0", role: "region", "aria-label": told.difference(tool.tool) }, highlight(tool.difference, "diff")),
  tool.definition && h("details", {}, h("summary", { "aria-label": told.definition(tool.tool) }, told.whole), h("div", {}, h("pre", { tabindex: "0", role: "region", "aria-label": told.definition(tool.tool) }, tool.definition))),
];

const ALLOWABLE = ["changed", "setup", "new"];

export class McpToolList {
  constructor(name, isOwner, done) {
    this.name = name;
    this.isOwner = isOwner;
    this.done = done;
    this.node = h("div", {});
  }

  async load() {
    try { this.draw((await get(at(this.name))).mcp); } catch (error) { this.node.replaceChildren(h("p.why", {}, error.message)); }
  }

  draw(shown) {
    const waiting = shown.tools.filter((tool) => ALLOWABLE.includes(tool.state));
    this.node.replaceChildren(...[
      shown.title && h("small", { dir: "auto" }, told.calls(shown.title, shown.version)),
      ...shown.tools.map((tool) => this.tool(tool)),
      this.isOwner && waiting.length > 1 && h("div.row", {}, h("button.small.primary", { type: "button", onclick: () => this.allow(waiting) }, told.allowAll)),
    ].filter(Boolean));
  }

  tool(tool) {
    const effect = h("select", { "aria-label": told.effectOf(tool.tool) }, Object.entries(told.effects).map(([name, text]) => h("option", { value: name, selected: name === tool.effect }, text)));
    const trying = h("div");
    const may = this.isOwner && ALLOWABLE.includes(tool.state);
    return h("div.tool", { "data-tool": tool.tool }, toolFacts(tool), this.isOwner && h("div.row", {},
      may && effect, may && h("button.small.primary", { type: "button", "aria-label": told.allowNamed(tool.tool), onclick: () => this.allow([tool], effect.value) }, told.allow),
      ["allowed", "changed", "setup", "collides"].includes(tool.state) && h("button.small", { type: "button", "aria-label": told.denyNamed(tool.tool), onclick: () => this.deny(tool) }, told.deny),
      tool.definition && tool.state !== "gone" && h("button.small", { type: "button", "aria-label": told.testNamed(tool.tool), onclick: () => this.trial(tool, trying) }, told.test)), trying);
  }

  async change(deed, text) {
    try { this.draw((await deed).mcp); toast(text); await this.done(); } catch (error) { toast(error.message, "bad"); await this.load(); }
  }

  allow(tools, effect) {
    const asked = { tools: Object.fromEntries(tools.map((tool) => [tool.tool, tool.digest])), ...(effect ? { effect } : {}) };
    return this.change(post(at(this.name, "/allow"), asked), told.allowed(tools.map((tool) => tool.tool).join(", ")));
  }

  deny(tool) { return this.change(post(at(this.name, "/deny"), { tools: [tool.tool] }), told.denied(tool.tool)); }

  trial(tool, place) {
    const args = h("textarea", { rows: 3, "aria-label": told.args(tool.tool), spellcheck: "false" });
    args.value = "{}";
    const answer = h("div", { role: "status" });
    const run = async (event) => {
      event.preventDefault();
      let given;
      try { given = JSON.parse(args.value); } catch { given = null; }
      if (given === null || typeof given !== "object" || Array.isArray(given)) { answer.replaceChildren(h("p.why", {}, told.notJson)); return; }
      try {
        const { text, pictures } = await post(at(this.name, "/test"), { tool: tool.tool, args: given });
        answer.replaceChildren(h("pre", { tabindex: "0", role: "region", dir: "auto", "aria-label": told.answered(tool.tool) }, text), pictures ? h("p.hint", {}, told.pictures(pictures)) : "");
      } catch (error) { answer.replaceChildren(h("p.why", {}, error.message)); }
    };
    place.replaceChildren(h("form", { onsubmit: run }, line(told.args(tool.tool), args), h("div.row", {}, h("button.small.primary", { type: "submit" }, told.run)), answer));
    args.focus();
  }
}
