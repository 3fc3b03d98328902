// The words for connecting a model and for fetching the one of this machine. As say.js has the others.

import { spoken } from "./say.js";

export const words = spoken({
  connect: "Connect a model", hint: "Choose who is to answer, or paste the address of a server of your own.", search: "Provider or address", searchHint: "OpenAI, Ollama, http://…",
  groups: { hosted: "Providers", local: "On this machine", own: "Your own" }, another: "Another address (OpenAI-compatible)", useAddress: (address) => `Use ${address}`, noneFits: "No provider has that in its name. An address begins with http:// or https://.",
  more: (number) => `${number} more …`, change: "Change", address: "Address", addressHint: "http://127.0.0.1:8080/v1", key: "Key", keyHint: "Paste the key", keyMaybe: "Key, if it wants one", keyKept: "A key is kept already. Paste another to replace it.",
  loginFirst: "It has no key: log in to it at a terminal with", loginThen: "and come back here.", look: "Look for models", looking: "Looking …",
  model: "Model", searchModels: (number) => `Search ${number} models`, nameModel: "Name of the model", noModels: "It lists no models. Write the name of the one you want.", noneCalled: "None is called that. It is used as you wrote it.",
  use: (name) => `Use ${name}`, useNone: "Use this model", saving: "Saving …", reads: (number) => `reads ${number}`, price: (read, written) => `$${read} in, $${written} out per million tokens`,
  done: (model) => `${model} answers from now on.`, test: "Test it", asking: "asking …", well: "It answers, and it can use tools.", another2: "Connect another",

  nobody: "Nobody can answer yet. Connect a model, and it does.", nobodyWhy: "Why", nobodyHere: "Nobody can answer yet.",
  small: (size) => `Answers come from a small model on this machine (${size}, fetched once).`, ready: "Answers come from a small model on this machine: private and free, but slow and easily mistaken.",
  fetch: "Fetch it", resume: (done) => `Go on fetching (${done} are here)`, later: "Leave it for later", better: "Connect a better one", fetching: "Fetching the model", failed: "It could not be fetched.",
  progress: (done, all, percent) => `${done} of ${all} · ${percent}%`, left: (time) => `${time} left`, checking: "Checking it …", beginning: "Beginning …", fetched: "The model is here. Ask away.",
});
