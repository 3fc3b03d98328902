// The words of speaking, and of reading aloud.

import { spoken } from "./say.js";

export const told = spoken({
  title: "Speech", intro: "For this browser alone. Nothing is recorded or read before you ask for it.",
  talk: "Push to talk", talkHint: "A microphone beside the field: hold it, or press it to begin and again to end.",
  by: "Who transcribes", byProvider: "The model that is set for it (voice.model), at your expense", noProvider: "Nobody is set to transcribe: voice.model in the settings.",
  byBrowser: "The browser", privacy: "The maker of the browser may then hear what you say: most browsers send it there.", noBrowser: "This browser does not recognise speech.",
  noMicrophone: "The browser gives no microphone to this page: it needs https, or the page of this machine.",
  atOnce: "Send at once what was said", atOnceHint: "Otherwise it stands in the field, to be looked at first.",
  aloud: "A button on each answer that reads it aloud", always: "Read new answers aloud by themselves", aloudBy: "Who reads", noVoice: "This browser does not read aloud.",
  readByBrowser: "The browser, with a voice of this machine if it has one", readByProvider: "The model that is set for it (speech.model), at your expense", readCost: "Each answer that is read is paid for, once; with the second box each new one is.", noReader: "Nobody else is set to read aloud: speech.model in the settings.",
  unplayable: "The browser cannot play what the model has spoken; another speech.format may do.",
  whoHears: "Choose who transcribes what you say.", whoReads: "Choose who reads.",
  save: "Save", cancel: "Cancel",
  speak: "Speak", finish: "Finish speaking", recording: "Recording. Esc throws it away.", throwAway: "Throw it away", writing: "Writing down what you said …", thrown: "It was thrown away.",
  denied: "The browser does not allow the microphone for this page. Allow it in its settings.", noDevice: "There is no microphone here.", failed: (why) => `That could not be recorded: ${why}`,
  silent: "Nothing was heard.", network: "The browser's speech recognition cannot be reached.",
  read: "Read aloud", stopReading: "Stop reading", code: (language, lines) => `A block of ${language ? `${language} ` : ""}code, ${lines === 1 ? "1 line" : `${lines} lines`}.`,
  picture: (name) => name ? `A picture: ${name}.` : "A picture.", formula: "A formula.", address: (host) => `a link to ${host}`,
});
