// An answer, read aloud: by a voice of the browser, or by the model that is set for it.

import { authorized, understood } from "./api.js";
import { toast } from "./dom.js";
import { told } from "./say-speech.js";
import { pieces } from "./speakable.js";

/** `by` is "provider" or "browser". `mark(node)` is told what is being read, or null; `thread()` is the conversation. */
export const reader = (by, mark, thread) => by === "provider" ? new Played(mark, thread) : new Synthesized(mark);

class Reader {
  constructor(mark) {
    this.mark = mark;
    this.reading = null;
  }

  read(answer) {
    this.stop();
    if (!this.begin(answer)) return;
    this.reading = answer;
    this.mark(answer);
  }

  stop() {
    if (!this.reading) return;
    this.reading = null;
    this.end();
    this.mark(null);
  }
}

class Synthesized extends Reader {
  begin(answer) {
    const all = [...answer.querySelectorAll(":scope > .prose")].flatMap(pieces);
    all.forEach((text, at) => {
      const utterance = new SpeechSynthesisUtterance(text);
      const voice = local();
      if (voice) { utterance.voice = voice; utterance.lang = voice.lang; }
      const over = () => { if (this.reading === answer) this.stop(); };
      utterance.onerror = over;
      if (at === all.length - 1) utterance.onend = over;
      speechSynthesis.speak(utterance);
    });
    return all.length;
  }

  end() { speechSynthesis.cancel(); }
}

/** The next part is fetched while one is heard; who stops pays for no more than that. */
class Played extends Reader {
  constructor(mark, thread) {
    super(mark);
    this.thread = thread;
  }

  begin(answer) {
    this.going = new AbortController();
    this.play(answer, this.thread(), Number(answer.dataset.seq), this.going.signal);
    return true;
  }

  async play(answer, thread, seq, signal) {
    const fetched = (part) => aloud(thread, seq, part, signal);
    try {
      let next = fetched(0);
      for (let part = 0; next; part += 1) {
        const { sound, parts } = await next;
        next = part + 1 < parts ? fetched(part + 1) : null;
        next?.catch(() => {}); // told when it is its turn
        if (signal.aborted) return;
        await this.hear(sound, signal);
      }
    } catch (error) { if (!signal.aborted) toast(error.message, "bad"); }
    if (!signal.aborted && this.reading === answer) this.stop();
  }

  /** Until it is over, or stopped. */
  hear(sound, signal) {
    const url = URL.createObjectURL(sound);
    const player = new Audio(url);
    return new Promise((resolve, reject) => {
      player.onended = resolve;
      player.onerror = () => reject(new Error(told.unplayable));
      signal.addEventListener("abort", () => { player.pause(); resolve(); });
      player.play().catch(reject);
    }).finally(() => URL.revokeObjectURL(url));
  }

  end() { this.going.abort(); }
}

/** A part of an answer as sound, and how many parts there are. */
async function aloud(thread, seq, part, signal) {
  const answer = await authorized(`/api/sessions/${thread}/speech`, { method: "POST", body: JSON.stringify({ seq, part }), headers: { "Content-Type": "application/json" }, signal });
  if (!answer.ok) return understood(answer);
  return { sound: await answer.blob(), parts: Number(answer.headers.get("Everloop-Parts")) };
}

/** A voice of this machine for the person's language; others are made by servers of somebody's. */
function local() {
  const voices = speechSynthesis.getVoices().filter((each) => each.localService);
  const own = navigator.language.split("-")[0];
  return voices.find((each) => each.lang === navigator.language) ?? voices.find((each) => each.lang.split(/[-_]/)[0] === own) ?? null;
}
