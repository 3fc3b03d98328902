// Setting up an MCP server: it is looked at, its tools are shown, and what was shown is what is allowed.

import { post, put } from "./api.js";
import { ask, h, toast } from "./dom.js";
import { line } from "./lines.js";
import { at, toolFacts } from "./mcp-tools.js";
import { told } from "./say-mcp.js";

/** The words of a command line; quotes hold words together. */
const words = (line) => [...line.matchAll(/"((?:\\.|[^"\\])*)"|'([^']*)'|(\S+)/g)].map(([, double, single, plain]) => double?.replaceAll(/\\(.)/g, "$1") ?? single ?? plain);

/** A table of what stands in lines; throws the line that is none. */
const pairs = (text, mark) => Object.fromEntries(text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
  const place = line.indexOf(mark);
  if (place < 1) throw new Error(told.badLine(line.slice(0, 20)));
  return [line.slice(0, place).trim(), line.slice(place + 1).trim()];
}));

const input = (label, more = {}) => h(more.rows ? "textarea" : "input", { "aria-label": label, autocomplete: "off", spellcheck: "false", autocapitalize: "off", ...more });

export class McpAdding {
  constructor(done) {
    this.done = done;
    this.node = h("div.mcp");
    this.form();
  }

  form() {
    this.node.replaceChildren(this.filled = this.fields());
  }

  fields() {
    const name = input(told.name, { required: true, maxlength: 50, pattern: "[A-Za-z0-9][A-Za-z0-9_.\\-]*" });
    const kind = h("select", { "aria-label": told.kind, onchange: () => this.turn(commands, address, kind.value) }, h("option", { value: "command" }, told.command), h("option", { value: "url" }, told.address));
    const command = input(told.commandLine, { placeholder: "uvx mcp-server-time" });
    const env = input(told.env, { rows: 2 });
    const network = input(told.network, { placeholder: "api.example.com" });
    const workspace = h("input", { type: "checkbox" });
    const url = input(told.url, { type: "url", placeholder: "https://mcp.example.com/mcp" });
    const headers = input(told.headers, { rows: 2 });
    const permission = h("select", { "aria-label": told.permission }, Object.entries(told.roles).map(([role, text]) => h("option", { value: role }, text)));
    const commands = h("div.inputs", {}, line(told.commandLine, command), line(told.env, env), line(told.network, network), h("label.row", {}, workspace, h("span", {}, told.seesWorkspace)));
    const address = h("div.inputs", { hidden: true }, line(told.url, url), line(told.headers, headers));
    const wrong = h("p.wrong", { role: "alert" });
    const button = h("button.primary", { type: "submit" }, told.look);
    const values = () => (kind.value === "url"
      ? { url: url.value.trim(), headers: pairs(headers.value, ":"), permission: permission.value }
      : { command: words(command.value)[0] ?? "", args: words(command.value).slice(1), env: pairs(env.value, "="), network: words(network.value), workspace: workspace.checked, permission: permission.value });
    const submit = async (event) => {
      event.preventDefault();
      wrong.textContent = "";
      Object.assign(button, { disabled: true, textContent: told.looking });
      try { await this.look(name.value.trim(), values()); } catch (error) { wrong.textContent = error.message; }
      Object.assign(button, { disabled: false, textContent: told.look });
    };
    return h("form.tile", { onsubmit: submit, "aria-label": told.add },
      line(told.name, name), line(told.kind, kind), commands, address, line(told.permission, permission), h("p.hint", {}, told.secret), wrong, h("div.row", {}, button));
  }

  turn(commands, address, kind) {
    commands.hidden = kind === "url";
    address.hidden = kind !== "url";
  }

  async look(name, values, install = false) {
    try {
      const { review } = await post("/api/mcp-reviews", { name, values, install });
      this.show(review, { values, install });
    } catch (error) {
      if (error.code !== "install_first") throw error;
      if (await ask({ title: told.install, text: error.message, yes: told.fetch })) await this.look(name, values, true);
    }
  }

  show(review, asked) {
    const fresh = review.tools.filter((tool) => tool.state === "new");
    const wanted = fresh.filter((tool) => !tool.tool.startsWith("@")).length; // what it has to read is no tool
    const wrong = h("p.wrong", { role: "alert" });
    const keep = async (event) => {
      const button = event.currentTarget;
      button.disabled = true;
      try {
        await put(at(review.name), { ...asked, pin: review.pin });
        toast(told.kept(review.name));
        this.form();
        await this.done();
      } catch (error) { wrong.textContent = error.message; button.disabled = false; }
    };
    const button = h("button.primary", { type: "button", onclick: keep }, told.keep(wanted, fresh.length > wanted));
    this.node.replaceChildren(h("article.tile.mcp-review", { "data-review": review.name, role: "region", "aria-label": told.offers(review.name) },
      h("b", {}, told.offers(review.name)), h("code.where", {}, review.where), review.title && h("small", { dir: "auto" }, told.calls(review.title, review.version)),
      review.secrets.length > 0 && h("small", {}, told.vault(review.secrets.join(", "))),
      review.tools.length ? review.tools.map((tool) => h("div.tool", {}, toolFacts(tool))) : h("p", {}, told.loginFirst), wrong,
      h("div.row", {}, button, h("button", { type: "button", onclick: () => this.node.replaceChildren(this.filled) }, told.cancel))));
    button.focus();
  }
}
