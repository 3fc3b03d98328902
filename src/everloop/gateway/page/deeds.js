// What can be done with a conversation as a whole: the menu above it, and what its buttons lead to.

import { patch, post } from "./api.js";
import { ask, toast } from "./dom.js";
import { say } from "./say.js";
import { newId } from "./socket.js";

// Threads that were just begun and hold nothing yet, with their sessions: they are not told of before their first entry.
export const begun = new Map();

export class Deeds {
  /** `of()` is the conversation as the API tells it; `known(about)` is told when it has changed. */
  constructor(house, of, known) {
    this.house = house;
    this.of = of;
    this.known = known;
  }

  menu(fork) {
    const about = this.of();
    const { pinned, archived } = about;
    return [
      ["edit", say.rename, () => this.rename()],
      pinned !== undefined && ["pin", pinned ? say.unpin : say.pin, () => this.change({ pinned: !pinned })],
      ["trace", say.showTrace, () => this.house.go(`#/t/${about.id}`)],
      ["undo", say.undo, () => this.undo()],
      ["fork", say.fork, fork],
      ["down", say.exportMarkdown, () => this.save("md")],
      ["down", say.exportJson, () => this.save("json")],
      ["print", say.print, () => print()],
      archived ? ["archive", say.unarchive, () => this.change({ archived: false })] : ["archive", say.archive, () => this.archive()],
      ["bin", say.deleteForGood, () => this.delete()],
    ].filter(Boolean);
  }

  /** Resolves to where the session is afterwards, or to null. With a title, that place is named so. */
  async act(what, body = {}, title = "") {
    const { id } = this.of();
    if (!id || this.acting) return null; // a second click means the first
    this.acting = true;
    try {
      const moved = await post(`/api/sessions/${id}/${what}`, body);
      if (title) await patch(`/api/sessions/${moved.thread}`, { title }).catch(() => {}); // it is there all the same
      if (moved.reply) toast(moved.reply);
      this.house.changed();
      begun.set(moved.thread, moved.session);
      if (moved.thread !== id) this.house.go(`#/c/${moved.thread}`);
      return moved;
    } catch (error) { toast(error.message, "bad"); return null; } finally { this.acting = false; }
  }

  /** The last message is said differently; for an earlier one the conversation goes on in a copy that ends before it. */
  async edit(seq, content, last) {
    if (last) { await this.act("edit", { content }); return; }
    const { session } = this.of();
    const moved = await this.act("fork", { at: seq - 1, session, replaces: true });
    if (moved) this.house.socket.say({ type: "message", id: newId(), session: moved.session, content });
  }

  /** Its session goes back to it; that of another channel stays where its people are. */
  async takeUp(newSession) {
    const { id, session } = this.of();
    try {
      const moved = await post(`/api/sessions/${id}/resume`, session.startsWith("page:") ? {} : { session: newSession() });
      this.house.go(`#/c/${moved.thread}`);
      this.house.changed();
    } catch (error) { toast(error.message, "bad"); }
  }

  async undo() {
    if (await ask({ title: say.undoTitle, text: say.undoText, yes: say.undo })) await this.act("undo");
  }

  /** Go on in a copy that ends with this entry. It has a name by which it can be told from the first. */
  async fork(at, session) {
    const title = say.copyOf(this.of().title || say.untitled).slice(0, 200);
    if (await this.act("fork", { at, session }, title)) toast(say.forked(title));
  }

  async save(kind) { await (await import("./export.js")).exported(this.of(), kind); }

  async rename() {
    const title = await ask({ title: say.rename, label: say.titleLabel, value: this.of().title, yes: say.rename });
    if (title) await this.change({ title: title.slice(0, 200) });
  }

  async archive() {
    const { id } = this.of();
    if (!await this.change({ archived: true })) return;
    toast(say.archived, "note", [say.undo, async () => { if (await this.change({ archived: false })) this.house.go(`#/c/${id}`); }]);
    this.house.go("#/");
  }

  async delete() { await (await import("./deletion.js")).deleted(this.of(), this.house); }

  async change(body) {
    try {
      this.known((await patch(`/api/sessions/${this.of().id}`, body)).session);
      this.house.changed();
      return true;
    } catch (error) { toast(error.message, "bad"); return false; }
  }
}
