// What is new for a person: what they have not read yet in this browser.

const MOST = 500; // conversations whose state is remembered

/** How far each conversation was read in this browser. */
export class Seen {
  constructor() {
    const { since = Date.now() / 1000, heads = [] } = read("seen") ?? {};
    this.since = since; // what is older than the first visit was read elsewhere
    this.heads = new Map(heads);
  }

  at(id, head) {
    if ((this.heads.get(id) ?? 0) >= head) return;
    this.heads.delete(id);
    this.heads.set(id, head); // the latest stands last
    write("seen", { since: this.since, heads: [...this.heads].slice(-MOST) });
  }

  unread({ id, head, active }) { return this.heads.has(id) ? head > this.heads.get(id) : active > this.since; }
}

export function read(key) {
  try { return JSON.parse(localStorage.getItem(key)); } catch { return null; }
}

export function write(key, value) {
  try { localStorage.setItem(key, JSON.stringify(value)); } catch { /* then it is new at the next visit, too */ }
}
