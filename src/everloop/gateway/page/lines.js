// A field of a form with its name above it.

import { h } from "./dom.js";

/** Whoever does not see it hears the name of the field itself. */
export const line = (label, field) => h("label.line", {}, h("span", { "aria-hidden": "true" }, label), field);
