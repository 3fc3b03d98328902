// All words of the page, in one place; those of the views that are loaded later stand in say-manage.js. Another language
// is another table with the same names. The pseudo-language puts every one of them in brackets, by which a test sees
// whether any word stands elsewhere: localStorage.language = "pseudo".

/** A table as it is spoken: itself, or each of its words in brackets. */
export function spoken(table) {
  let language = "";
  try { language = localStorage.getItem("language"); } catch { /* then it is English */ }
  return language === "pseudo" ? bracketed(table) : table;
}

function bracketed(value) {
  if (typeof value === "string") return `⟦${value}⟧`;
  if (typeof value === "function") return (...given) => bracketed(value(...given));
  if (Array.isArray(value)) return value.map(bracketed);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, bracketed(each)]));
}

export const say = spoken({
  everloop: "everloop", ok: "OK", cancel: "Cancel", close: "Close", copy: "Copy", copied: "Copied", more: "More", tryAgain: "Try again", undo: "Undo", file: "file", files: "Files",
  notCopied: "The browser does not let this page use the clipboard; select the text and copy it.",
  isEmpty: "(it is empty)",

  // Coming in
  skip: "Skip to the conversation", logIn: "Log in", logOut: "Log out", password: "Password", notOwner: "Not the owner?", yourName: "Your name",
  noPasswordYet: "No password yet? Open the one-time link that", noPasswordThen: "printed when it started, or that you were sent.",
  usedLink: "That link was used already, or is too old. Log in with your password, or start the gateway anew for another link.",
  notReached: "everloop cannot be reached",
  notLoaded: "This part of the page could not be loaded. Perhaps everloop was updated.", reload: "Reload",
  noConnection: "No connection to everloop. Nothing is lost; trying again …", tryNow: "Try now",

  // The sidebar
  navigation: "Navigation", openMenu: "Open the menu", closeMenu: "Close the menu", conversations: "Conversations",
  newConversation: "New conversation", newKey: "New conversation (Alt+N)", search: "Search", searchConversations: "Search conversations",
  manage: "Manage", waiting: "Waiting", account: "Your account", trace: "Trace",
  themes: { "": "Theme: as the system", light: "Theme: light", dark: "Theme: dark" },
  speech: "Speech", notifications: "Notifications", finished: "Done",
  untitled: "Untitled", nothingYet: "Conversations stand here once you have said something.",
  showArchived: "Archived conversations", archivedOnes: "Archived", backToList: "Back to all conversations", nothingArchived: "Nothing is archived.", isArchived: "archived", pinnedOnes: "Pinned",
  questionsWait: (number) => (number === 1 ? "1 question waits for you" : `${number} questions wait for you`),
  itemTitle: (title, messages) => `${title} · ${messages} messages`,
  states: { running: "running", waiting: "waits for you", unread: "not read yet" },
  titles: "Titles", messages: "Messages", nothingFound: (words) => `Nothing was found for “${words}”. Try fewer words.`,
  now: "now", minutes: (number) => `${number} min`, hours: (number) => `${number} h`,
  today: "Today", yesterday: "Yesterday", thisWeek: "This week", thisMonth: "This month", earlier: "Earlier",

  // A conversation
  chat: "Chat", conversation: "Conversation", loadingEarlier: "Loading earlier messages …", toEnd: "Go to the end",
  modelHere: "Model that answers here", free: "runs on this machine, free", price: (read, said) => `${read} in / ${said} out per million tokens`, noPrice: "price not known", greeting: "What shall we do?",
  whatItDoes: "It reads and writes in your workspace, runs commands in a sandbox, and asks before anything leaves it.",
  starters: [
    ["Look around", "What is in my workspace? Tell me in a few lines."],
    ["Plan something", "Help me plan my week: ask me what you need to know."],
    ["Read a page", "Summarise a web page for me. I will give you its address."],
  ],
  notHere: "This conversation is not here", notHereWhy: "It is deleted, or someone else's, or the address is not complete.",
  notOpened: "This conversation could not be opened",
  olderVersion: "This is an older version. The conversation has gone on from another one.", continueThis: "Continue from here", continueToWrite: "Continue from here to write",
  compacting: "Making a summary of what was said before …", contextFull: (percent) => `The context is ${percent}% full.`, compact: "Compact",
  rename: "Rename", titleLabel: "Title", pin: "Pin", unpin: "Unpin", showTrace: "Show how the time was spent", fork: "Continue in a copy",
  exportMarkdown: "Export as Markdown", exportJson: "Export as JSON", print: "Print", archive: "Archive", unarchive: "Take out of the archive", archived: "Archived.", deleteForGood: "Delete …",
  undoTitle: "Undo the last turn?", undoText: "Your last message, its answer, and what it did to files are undone. The old conversation stays in the archive.",
  copyOf: (title) => `${title} (copy)`, forked: (title) => `This is a copy: ${title}`,

  // What is said in it
  you: "You", youSending: "You, being sent", answering: "everloop, answering", working: "everloop is working", thinking: "Thinking …", thoughts: "Thoughts", thoughtFor: (time) => `Thought for ${time}`, heartbeat: "Heartbeat",
  editMessage: "Edit and ask again",
  copyAnswer: "Copy the answer", answerAgain: "Answer again", answerWith: "Answer again with …", forkHere: "Continue from here in a copy", tokens: (read, written) => `${read} in, ${written} out`,
  cutOff: "The answer was cut off at the limit of tokens.", goOn: "Go on", goOnSaid: "Go on from where you stopped.", declined: "The model declined to say more.",
  stopped: "Stopped.", cutAnswer: "everloop, cut off", noAnswer: "No answer this time", triedBefore: "What was tried before", callFailed: (why) => `A model call failed: ${why}`,
  resumed: "everloop was restarted, and began this answer again.", answeredBy: (model) => `Answered by ${model} from here on.`, answeredByUsual: "Answered by the usual model again.",
  becameSummary: "What was said before became a summary", takenBack: (said) => `Undone: ${said}`, lasting: (what) => `This could not be undone: ${what}`, fileLeft: (what) => `A file was left as it is: ${what}.`,
  toldElsewhere: "everloop, from another conversation", toldFrom: (sender) => `Told from ${sender}`,
  sending: "sending …", heardNext: "will be heard at the next step", waitsForConnection: "waits for the connection",
  plainText: "text", wrap: "Wrap", allLines: (number) => `Show all ${number} lines`, fewerLines: "Show fewer lines", task: "task", details: "Details",
  download: (name) => `Download ${name}`, inWorkspace: (name) => `Show ${name} in the workspace`, enlarge: (name) => `Enlarge ${name}`, cannotBeShown: "cannot be shown",

  // What it did
  running: "running …", waitsBehind: "waits for your answer", waitsForYou: "waits for you", notAllowed: "not allowed", allowed: "allowed",
  verdicts: { allowed: "allowed", denied: "you said no", expired: "not answered in time", withdrawn: "withdrawn: you went on", unattended: "nobody was there to be asked" },
  outcomes: { done: "", failed: "failed", repeated: "not run again", unknown: "outcome not known", cancelled: "stopped", abandoned: "given up", handed: "handed over" },
  outputSoFar: "Output so far", result: "Result", resultOf: (origin) => `Result, in the words of ${origin}`, wholeResult: "the whole result",
  shortened: (all, shown) => `${all} characters; the first ${shown} are shown.`, notKnown: (call) => `Not known whether this took effect: ${call}`,
  made: (path) => `Made ${path}`, changedFile: (path) => `Changed ${path}`, removedFile: (path) => `Removed ${path}`,
  steps: (number) => `${number} steps`, failedSteps: (number) => `${number} failed`,
  mayIRun: (tool) => `May I run ${tool}?`, yourAnswer: "Your answer", allow: "Allow", deny: "Deny",
  risks: { low: "low risk", medium: "medium risk", high: "high risk" }, mutates: "changes something", leaves: "leaves the sandbox", privileged: "wants privileges",

  // Where one writes
  message: "Message", askAnything: "Ask anything, or /help", answerAbove: "Answer above, or go on", steer: "Steer it while it works", send: "Send", sendKey: "Send (Enter)", stop: "Stop", stopKey: "Stop (Esc)", toBackground: "Let it go on in the background",
  attach: "Attach a file", removeFile: (name) => `Remove ${name}`, dropHere: "Drop to attach", sendsThen: "is sent when its files are here", completions: "Completions",
  keyboardHelp: "Keyboard",

  unreachable: "everloop does not answer. Is the gateway still running?", loggedOut: "You are logged out.", answeredStatus: (status) => `everloop answered ${status}. Try again.`,
});
