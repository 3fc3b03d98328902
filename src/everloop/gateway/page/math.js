// Formulas as models write them (a small part of TeX), turned into MathML, which browsers draw themselves. A formula that
// is not understood is shown as it was written; a command that is not known stands in it as its name.

const SPACE = "http://www.w3.org/1998/Math/MathML";
const DEEPEST = 40;

const LETTERS = {
  alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ϵ", varepsilon: "ε", zeta: "ζ", eta: "η", theta: "θ", vartheta: "ϑ",
  iota: "ι", kappa: "κ", lambda: "λ", mu: "μ", nu: "ν", xi: "ξ", pi: "π", varpi: "ϖ", rho: "ρ", varrho: "ϱ", sigma: "σ",
  varsigma: "ς", tau: "τ", upsilon: "υ", phi: "ϕ", varphi: "φ", chi: "χ", psi: "ψ", omega: "ω", Gamma: "Γ", Delta: "Δ",
  Theta: "Θ", Lambda: "Λ", Xi: "Ξ", Pi: "Π", Sigma: "Σ", Upsilon: "Υ", Phi: "Φ", Psi: "Ψ", Omega: "Ω", infty: "∞", ell: "ℓ",
  hbar: "ℏ", partial: "∂", nabla: "∇", emptyset: "∅", varnothing: "∅", aleph: "ℵ", Re: "ℜ", Im: "ℑ", ldots: "…", dots: "…",
  cdots: "⋯", vdots: "⋮", ddots: "⋱", prime: "′", angle: "∠", degree: "°", imath: "ı", jmath: "ȷ", top: "⊤", bot: "⊥",
};
const OPERATORS = {
  times: "×", cdot: "⋅", div: "÷", pm: "±", mp: "∓", ast: "∗", star: "⋆", circ: "∘", bullet: "∙", oplus: "⊕", ominus: "⊖",
  otimes: "⊗", cup: "∪", cap: "∩", setminus: "∖", wedge: "∧", land: "∧", vee: "∨", lor: "∨", neg: "¬", lnot: "¬", leq: "≤",
  le: "≤", geq: "≥", ge: "≥", neq: "≠", ne: "≠", ll: "≪", gg: "≫", approx: "≈", equiv: "≡", sim: "∼", simeq: "≃", cong: "≅",
  propto: "∝", to: "→", rightarrow: "→", longrightarrow: "⟶", leftarrow: "←", gets: "←", leftrightarrow: "↔", Rightarrow: "⇒",
  implies: "⟹", Leftarrow: "⇐", Leftrightarrow: "⇔", iff: "⟺", mapsto: "↦", uparrow: "↑", downarrow: "↓", in: "∈",
  notin: "∉", ni: "∋", subset: "⊂", subseteq: "⊆", supset: "⊃", supseteq: "⊇", forall: "∀", exists: "∃", nexists: "∄",
  mid: "∣", nmid: "∤", parallel: "∥", perp: "⊥", therefore: "∴", because: "∵", vdash: "⊢", models: "⊨", colon: ":",
  lbrace: "{", rbrace: "}", langle: "⟨", rangle: "⟩", lfloor: "⌊", rfloor: "⌋", lceil: "⌈", rceil: "⌉", vert: "|", lvert: "|",
  rvert: "|", Vert: "‖", lVert: "‖", rVert: "‖", backslash: "\\", "{": "{", "}": "}", "|": "‖", "%": "%", "#": "#", $: "$",
  "&": "&", _: "_",
};
const LARGE = { sum: "∑", prod: "∏", coprod: "∐", bigcup: "⋃", bigcap: "⋂", bigoplus: "⨁", bigotimes: "⨂", int: "∫", iint: "∬", iiint: "∭", oint: "∮" };
const NAMES = new Set(("sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp lim limsup liminf max min sup inf"
  + " det dim ker gcd deg arg hom Pr mod").split(" "));
const BENEATH = new Set("sum prod coprod bigcup bigcap bigoplus bigotimes lim limsup liminf max min sup inf det gcd Pr".split(" "));
const WIDTHS = { ",": ".17em", ":": ".22em", ">": ".22em", ";": ".28em", " ": ".3em", "!": "-.17em", quad: "1em", qquad: "2em" };
const ACCENTS = { hat: "^", widehat: "^", bar: "¯", overline: "¯", vec: "→", dot: "˙", ddot: "¨", tilde: "~", widetilde: "~", overrightarrow: "→", overbrace: "⏞" };
const UNDER = { underline: "_", underbrace: "⏟" };
const FONTS = { mathrm: "normal", text: "text", textrm: "text", textbf: "text", textit: "text", mbox: "text", operatorname: "normal", mathbf: "bold", boldsymbol: "bold", bm: "bold", mathbb: "double", mathcal: "script", mathscr: "script", mathfrak: "plain", mathit: "plain", mathsf: "plain", mathtt: "plain", rm: "normal" };
const FENCES = { matrix: ["", ""], smallmatrix: ["", ""], pmatrix: ["(", ")"], bmatrix: ["[", "]"], Bmatrix: ["{", "}"], vmatrix: ["|", "|"], Vmatrix: ["‖", "‖"], cases: ["{", ""], array: ["", ""], aligned: ["", ""], align: ["", ""], "align*": ["", ""], gathered: ["", ""], "gather*": ["", ""], gather: ["", ""], split: ["", ""], equation: ["", ""], "equation*": ["", ""] };
const IGNORED = new Set(["displaystyle", "textstyle", "limits", "nolimits", "big", "Big", "bigg", "Bigg", "bigl", "bigr", "Bigl", "Bigr", "nonumber", "notag", "hline"]);

const m = (name, attributes, ...children) => {
  const node = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes ?? {})) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
/** What a table has under this name; a name may be anything, also one that every object knows. */
const own = (table, name) => (Object.hasOwn(table, name) ? table[name] : undefined);
const row = (nodes) => (nodes.length === 1 ? nodes[0] : m("mrow", {}, ...nodes));

class NotUnderstood extends Error {}

/** The formula as a node. What was written can be copied from it. */
export function formula(tex, display = false) {
  const source = tex.trim();
  try {
    const drawn = row(new Reader(source).all());
    const written = m("annotation", { encoding: "application/x-tex" }, source);
    return m("math", { display: display ? "block" : "inline", alttext: source }, m("semantics", {}, drawn, written));
  } catch (error) {
    if (!(error instanceof NotUnderstood)) throw error;
    const plain = document.createElement("code");
    plain.textContent = display ? `$$${source}$$` : `$${source}$`;
    return plain;
  }
}

class Reader {
  constructor(text) {
    this.tokens = text.match(/\\(?:[A-Za-z]+\*?|[\s\S])|\d+(?:[.,]\d+)*|\s+|[\s\S]/gu)?.filter((token) => token.trim() || token.startsWith("\\")) ?? [];
    this.spaced = text;
    this.at = 0;
    this.deep = 0;
  }

  get next() { return this.tokens[this.at]; }
  take() { return this.tokens[this.at++]; }

  all() {
    const nodes = this.until(() => this.next === undefined);
    if (!nodes.length) throw new NotUnderstood("it is empty");
    return nodes;
  }

  until(ended) {
    if (++this.deep > DEEPEST) throw new NotUnderstood("it is too deep");
    const nodes = [];
    while (!ended()) {
      if (this.next === undefined || this.next === "}") throw new NotUnderstood("a brace is missing");
      nodes.push(...this.scripted());
    }
    this.deep -= 1;
    return nodes;
  }

  /** One thing, with what stands above and below it. */
  scripted() {
    const name = this.next;
    let base = "^_".includes(name) ? m("mrow") : this.atom();
    if (base === null) return [];
    let above = null;
    let below = null;
    let primes = "";
    for (;;) {
      if (this.next === "'") { this.take(); primes += "′"; }
      else if (this.next === "\\limits" || this.next === "\\nolimits") this.take();
      else if (this.next === "^" && !above) { this.take(); above = this.argument(); }
      else if (this.next === "_" && !below) { this.take(); below = this.argument(); }
      else break;
    }
    if (primes) above = above ? m("mrow", {}, m("mo", {}, primes), above) : m("mo", {}, primes);
    const beneath = BENEATH.has(name?.slice(1)) || base.localName === "munder" || base.localName === "mover";
    const [both, under, over] = beneath ? ["munderover", "munder", "mover"] : ["msubsup", "msub", "msup"];
    if (above && below) base = m(both, {}, base, below, above);
    else if (below) base = m(under, {}, base, below);
    else if (above) base = m(over, {}, base, above);
    return [base];
  }

  argument() {
    if (this.next === undefined) throw new NotUnderstood("something is missing at the end");
    return this.atom() ?? m("mrow");
  }

  group() {
    const nodes = this.until(() => this.next === "}");
    this.take();
    return row(nodes);
  }

  atom() {
    const token = this.take();
    if (token === "{") return this.group();
    if (token.startsWith("\\")) return this.command(token.slice(1));
    if (/^\d/.test(token)) return m("mn", {}, token);
    if (/^\p{L}$/u.test(token)) return m("mi", {}, token);
    if (token === "&" || token === "~") return m("mspace", { width: ".3em" });
    return m("mo", "()[]|".includes(token) ? { stretchy: "false" } : {}, token === "-" ? "−" : token === "*" ? "∗" : token);
  }

  command(name) {
    if (IGNORED.has(name)) return null;
    if (own(WIDTHS, name)) return m("mspace", { width: WIDTHS[name] });
    if (own(LETTERS, name)) return m("mi", {}, LETTERS[name]);
    if (own(LARGE, name)) return m("mo", {}, LARGE[name]);
    if (own(OPERATORS, name)) return m("mo", { stretchy: "false" }, OPERATORS[name]);
    if (NAMES.has(name)) return m("mi", {}, name);
    if (own(ACCENTS, name)) return m("mover", { accent: "true" }, this.argument(), m("mo", {}, ACCENTS[name]));
    if (own(UNDER, name)) return m("munder", {}, this.argument(), m("mo", {}, UNDER[name]));
    if (own(FONTS, name) || name === "operatorname*") return this.inFont(own(FONTS, name) ?? "normal");
    if (["frac", "dfrac", "tfrac", "cfrac"].includes(name)) return m("mfrac", {}, this.argument(), this.argument());
    if (name === "binom" || name === "dbinom") return m("mrow", {}, m("mo", {}, "("), m("mfrac", { linethickness: "0" }, this.argument(), this.argument()), m("mo", {}, ")"));
    if (name === "sqrt") return this.root();
    if (name === "overset" || name === "stackrel") { const over = this.argument(); return m("mover", {}, this.argument(), over); }
    if (name === "underset") { const under = this.argument(); return m("munder", {}, this.argument(), under); }
    if (name === "boxed") return m("mrow", { class: "boxed" }, this.argument());
    if (name === "not") return m("mo", {}, `${this.argument().textContent}\u0338`);
    if (name === "pmod") return m("mrow", {}, m("mo", {}, "("), m("mi", {}, "mod"), m("mspace", { width: ".3em" }), this.argument(), m("mo", {}, ")"));
    if (name === "left") return this.fenced();
    if (name === "begin") return this.table(this.word());
    if (name === "\\") return m("mspace", { linebreak: "newline" });
    return m("mtext", {}, `\\${name}`);
  }

  root() {
    if (this.next !== "[") return m("msqrt", {}, this.argument());
    this.take();
    const degree = row(this.until(() => this.next === "]"));
    this.take();
    return m("mroot", {}, this.argument(), degree);
  }

  /** What stands in braces, as plain letters. */
  word() {
    if (this.take() !== "{") throw new NotUnderstood("a name is missing");
    let text = "";
    while (this.next !== "}") {
      if (this.next === undefined) throw new NotUnderstood("a brace is missing");
      text += this.take();
    }
    this.take();
    return text;
  }

  inFont(kind) {
    if (kind === "text") return m("mtext", {}, this.written());
    const inside = this.argument();
    for (const each of [inside, ...inside.querySelectorAll("*")].filter((node) => node.localName === "mi" || node.localName === "mn")) {
      if (kind === "normal") each.setAttribute("mathvariant", "normal");
      else if (kind !== "plain") each.textContent = [...each.textContent].map((letter) => styled(letter, kind)).join("");
    }
    if (kind === "normal" && inside.localName === "mrow" && [...inside.children].every((each) => each.localName === "mi")) return m("mi", {}, inside.textContent);
    return inside;
  }

  /** Words keep their spaces, which the tokens have lost. */
  written() {
    const nth = this.tokens.slice(0, this.at).filter((token) => /^\\(text|mbox)/.test(token)).length;
    const found = [...this.spaced.matchAll(/\\(?:text\w*|mbox)\s*\{([^{}]*)\}/g)][nth - 1];
    this.word();
    return found?.[1].replace(/ /g, "\u00a0").replace(/\\([%$&#_])/g, "$1") ?? "";
  }

  fence() {
    const token = this.take() ?? "";
    if (token === ".") return m("mo", {}, "");
    return m("mo", { stretchy: "true" }, token.startsWith("\\") ? own(OPERATORS, token.slice(1)) ?? token : token);
  }

  fenced() {
    const open = this.fence();
    const inside = this.until(() => this.next === "\\right");
    this.take();
    return m("mrow", {}, open, ...inside, this.fence());
  }

  table(kind) {
    const [open, close] = own(FENCES, kind) ?? ["", ""];
    if (kind === "array" && this.next === "{") this.word();
    const rows = [[]];
    while (this.next !== "\\end") {
      const cell = this.until(() => ["&", "\\\\", "\\end", undefined].includes(this.next));
      rows.at(-1).push(m("mtd", {}, ...cell));
      if (this.next === undefined) throw new NotUnderstood("\\end is missing");
      if (this.next === "&") this.take();
      else if (this.next === "\\\\") { this.take(); rows.push([]); }
    }
    this.take();
    this.word();
    const side = kind === "cases" ? "left" : /^(align|split)/.test(kind) ? "sides" : "";
    const made = m("mtable", side ? { class: side } : {}, ...rows.filter((cells) => cells.length && cells.some((cell) => cell.textContent)).map((cells) => m("mtr", {}, ...cells)));
    return open || close ? m("mrow", {}, m("mo", { stretchy: "true" }, open), made, m("mo", { stretchy: "true" }, close)) : made;
  }
}

const ODD = { script: { B: "ℬ", E: "ℰ", F: "ℱ", H: "ℋ", I: "ℐ", L: "ℒ", M: "ℳ", R: "ℛ" }, double: { C: "ℂ", H: "ℍ", N: "ℕ", P: "ℙ", Q: "ℚ", R: "ℝ", Z: "ℤ" }, bold: {} };
const FIRST = { script: [0x1d49c, 0x1d4b6], double: [0x1d538, 0x1d552, 0x1d7d8], bold: [0x1d400, 0x1d41a, 0x1d7ce] };

function styled(letter, kind) {
  if (own(ODD[kind], letter)) return ODD[kind][letter];
  const [large, small, digit] = FIRST[kind];
  if (/[A-Z]/.test(letter)) return String.fromCodePoint(large + letter.charCodeAt(0) - 65);
  if (/[a-z]/.test(letter)) return String.fromCodePoint(small + letter.charCodeAt(0) - 97);
  return /\d/.test(letter) && digit ? String.fromCodePoint(digit + Number(letter)) : letter;
}
