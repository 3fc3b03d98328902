// What is written and not sent yet, with its files, for each session: it is there again after a look elsewhere, after a
// reload, and when the gateway has refused it. It lasts as long as the tab.

const PREFIX = "draft ";
const known = new Map();

/** {text, files: [{name, kept?}], why}: `why` is what the gateway said when it refused it. */
export function draftOf(session) {
  if (!known.has(session)) known.set(session, { text: "", files: [], why: "", ...read(PREFIX + session) });
  return known.get(session);
}

export function keepDraft(session) {
  const { text, files, why } = draftOf(session);
  const kept = files.filter((each) => each.kept).map(({ name, kept: file }) => ({ name, kept: file }));
  write(PREFIX + session, text || kept.length ? { text, files: kept, why } : null);
}

/** A message that was refused is a draft again; what has been written since stands below it. */
export function putBack({ session, content, files = [] }, why) {
  const draft = draftOf(session);
  draft.text = [content, draft.text].filter(Boolean).join("\n\n");
  draft.files = [...files.map((kept) => ({ name: kept.name, kept })), ...draft.files];
  draft.why = why;
  keepDraft(session);
}

/** Messages that were not acknowledged yet, as the socket keeps them over a reload. */
export const readUnsent = () => read("unsent") ?? [];
export const keepUnsent = (frames) => write("unsent", frames.length ? frames : null);

/** Messages that were taken and not heard yet, with the entry after which they were said. */
export const readWaiting = (session) => read(`waits ${session}`) ?? [];
export const keepWaiting = (session, pending) => write(`waits ${session}`, pending.size ? [...pending].map(([id, { text, files, after }]) => ({ id, content: text, files, after })) : null);

/** The session of the conversation that is about to begin: the same one until it has begun. */
export function nextSession(make) {
  const found = read("next") ?? make();
  write("next", found);
  return found;
}

export const takeSession = (session) => { if (read("next") === session) write("next", null); };

/** The model that was chosen before anything was said. */
export const chosenFor = (session) => read(`model ${session}`);
export const keepChosen = (session, model) => write(`model ${session}`, model);

export function forgetDrafts() {
  known.clear();
  try { sessionStorage.clear(); } catch { /* then nothing was kept */ }
}

function read(key) {
  try { return JSON.parse(sessionStorage.getItem(key)); } catch { return null; }
}

function write(key, value) {
  try {
    if (value === null) sessionStorage.removeItem(key); else sessionStorage.setItem(key, JSON.stringify(value));
  } catch { /* it lasts as long as the page, then */ }
}
