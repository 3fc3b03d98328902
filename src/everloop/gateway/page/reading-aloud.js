// An answer, read by a voice of the browser.

import { pieces } from "./speakable.js";

export class Reader {
  /** `mark(node)` is told what is being read, or null. */
  constructor(mark) {
    this.mark = mark;
    this.reading = null;
  }

  read(answer) {
    this.stop();
    const prose = [...answer.querySelectorAll(":scope > .prose")];
    const all = prose.flatMap(pieces);
    if (!all.length) return;
    this.reading = answer;
    this.mark(answer);
    all.forEach((text, at) => {
      const utterance = new SpeechSynthesisUtterance(text);
      const voice = local();
      if (voice) { utterance.voice = voice; utterance.lang = voice.lang; }
      const over = () => { if (this.reading === answer) this.stop(); };
      utterance.onerror = over;
      if (at === all.length - 1) utterance.onend = over;
      speechSynthesis.speak(utterance);
    });
  }

  stop() {
    if (!this.reading) return;
    this.reading = null;
    speechSynthesis.cancel();
    this.mark(null);
  }
}

/** A voice of this machine for the person's language; others are made by servers of somebody's. */
function local() {
  const voices = speechSynthesis.getVoices().filter((each) => each.localService);
  const own = navigator.language.split("-")[0];
  return voices.find((each) => each.lang === navigator.language) ?? voices.find((each) => each.lang.split(/[-_]/)[0] === own) ?? null;
}
