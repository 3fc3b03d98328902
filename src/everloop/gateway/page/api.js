// Requests to the gateway. The cookie says who we are only together with an Origin, which browsers do not send when a
// page reads from its own site; so the page exchanges it once for a token that lives in this memory and nowhere else.

import { say } from "./say.js";

let token = "";
let renewing = null;

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Who is logged in, or null. */
export async function begin() {
  const answer = await speak("/auth/session", { method: "POST" });
  if (answer.status === 401 || answer.status === 403) return null;
  const me = await understood(answer);
  token = me.token;
  return me;
}

export async function login(password, user = "") {
  await understood(await speak("/auth/login", json("POST", { password, user })));
}

export async function logout() {
  await speak("/auth/logout", { method: "POST" });
  token = "";
}

export const get = (path, query = {}) => {
  const asked = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  return call(asked.length ? `${path}?${new URLSearchParams(asked)}` : path);
};
export const post = (path, body = {}) => call(path, json("POST", body));
export const remove = (path) => call(path, { method: "DELETE" });
export const put = (path, body) => call(path, json("PUT", body));

export function patch(path, body, headers = {}) {
  const options = json("PATCH", body);
  return call(path, { ...options, headers: { ...options.headers, ...headers } });
}

export async function upload(file) {
  const query = new URLSearchParams({ name: file.name || "file" });
  return call(`/api/files?${query}`, { method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" } });
}

/** Into the workspace. */
export const place = (path, file, replace) => call(`/api/workspace/file?${new URLSearchParams({ path, replace })}`, { method: "PUT", body: file });

export async function blob(url) {
  const answer = await authorized(url);
  return answer.ok ? answer.blob() : understood(answer);
}

/** The beginning of it, and how long it is as a whole. */
export async function part(url, most) {
  const answer = await authorized(url, { headers: { Range: `bytes=0-${most - 1}` } });
  if (!answer.ok) return understood(answer);
  const data = await answer.blob();
  return { data, length: Number(answer.headers.get("Content-Range")?.split("/")[1] ?? data.size) };
}

export async function call(path, options = {}) {
  return understood(await authorized(path, options));
}

export async function authorized(path, options = {}) {
  let answer = await speak(path, signed(options));
  if (answer.status === 401) {
    renewing ??= begin().finally(() => { renewing = null; });
    if (!(await renewing)) {
      document.dispatchEvent(new CustomEvent("loggedout"));
      throw new Refused(401, "unauthorized", say.loggedOut);
    }
    answer = await speak(path, signed(options));
  }
  return answer;
}

const signed = (options) => ({ ...options, headers: { ...options.headers, Authorization: `Bearer ${token}` } });
const json = (method, body) => ({ method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });

let asked = 0; // and not answered yet: a line on top moves when that takes long
const asking = (by) => { asked += by; document.body.classList.toggle("loading", asked > 0); };

async function speak(path, options) {
  asking(1);
  try {
    return await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new Refused(0, "unreachable", say.unreachable);
  } finally { asking(-1); }
}

export async function understood(answer) {
  const body = await answer.json().catch(() => null);
  if (answer.ok && body) return body;
  const error = body?.error;
  throw new Refused(answer.status, error?.code ?? "failed", error?.message ?? say.answeredStatus(answer.status));
}
