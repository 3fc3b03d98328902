// The words of the views that are loaded when they are opened: settings, usage, the trace. As say.js has the others.

import { spoken } from "./say.js";

export const told = spoken({
  // Deleting a conversation
  eraseTitle: "Delete this conversation?",
  eraseText: (title) => `“${title}” goes for good: what was said, its files, what waits in it, and earlier versions of it (edited, answered again, undone). Copies that you made stay.`,
  eraseGoOn: "Delete …", eraseSure: "Are you sure?", eraseNoWayBack: (title) => `There is no way back, and no archive that holds “${title}” afterwards.`, eraseNow: "Delete for good", erased: "The conversation is deleted.",

  // Settings
  manage: "Manage", pagesLabel: "Pages", back: "Back to the list", noSuchPage: "There is no page of that name. Choose one from the list.",
  groups: { agent: "Agent", reach: "Reach", house: "House" },
  pages: {
    models: ["Models", "Who answers, presets, API keys, prices"], behaviour: ["Behaviour", "System prompt, workspace, limits of a turn"], tools: ["Tools", "Permissions, commands, web search"],
    skills: ["Skills", "What it knows how to do"],
    mcp: ["MCP servers", "Tools of others, and what was allowed of them"],
    personas: ["Personas", "Who it is at which channel, server or chat"],
    memory: ["Memory", "What it remembers of you, and from where"],
    schedules: ["Schedules", "What it does later, or again and again"],
    tasks: ["Tasks", "What goes on in the background, and sub-agents"],
    channels: ["Channels", "Where people speak with the agent"],
    outbox: ["Outbox", "Answers that were not delivered"],
    people: ["People", "Who may speak with it, roles, accounts"],
    access: ["Access", "Password, tokens, what is allowed"], files: ["Attachments", "What you sent and were given, and your quota"], usage: ["Usage", "Tokens and cost by day"], audit: ["Audit", "Who did what, by which authority"], backup: ["Backup", "Everything in one file, and back"], import: ["Import", "Move in from another agent, or from ChatGPT or Claude"], health: ["Health", "What runs, and what has failed"], doctor: ["Doctor", "What is wrong and what to do; the log"],
    server: ["Server", "Address, TLS, database, proxy, telemetry"], all: ["All settings", "Every setting, with a filter"],
  },
  accessOfUsers: "Password, what you may spend, what is kept",
  sections: {
    identity: "Who it is", turns: "Turns", answers: "How it answers", models: "More about presets", providers: "Providers", prices: "Prices", permissions: "Permissions and plugins", commands: "Commands", web: "Web", mcp: "MCP servers",
    users: "Strangers", gateway: "Gateway", store: "Database", net: "Network", telemetry: "Telemetry", files: "Files",
  },
  waits: "in force after a restart",
  onlyAdmins: "Only administrators see the settings.", afterRestart: "In force after the gateway is started again:", saved: (file) => `Saved in ${file}`,
  filter: "Filter settings", writtenInto: "Changes are written into", nextTurn: "in the home, and the next turn knows them. What an", changedThere: "variable says is changed there.",
  noneYet: "None yet.", nothingFits: "No setting has that in it.", remove: "Remove", removeNamed: (name) => `Remove ${name}`, removeTitle: (name) => `Remove ${name}?`, removeText: (key) => `${key} is taken out of the file, with all that is set in it.`,
  itsName: (label) => `${label}: its name`,
  adding: {
    models: ["Add a preset", "Name of the preset, such as quick", "provider/model"],
    providers: ["Add a provider", "Name, such as mine", "Its address, such as http://127.0.0.1:8080/v1"],
    prices: ["Add a price", "Pattern of models, such as mine/*", "Dollars for a million tokens that are read"],
  },
  save: "Save", cancel: "Cancel", reset: "Reset", resetTitle: (key) => `Take ${key} out of the file`, notJson: (key) => `${key} is not valid JSON.`,
  setBy: (place) => `set by ${place}; change it there`, setAtStart: "given when the gateway was started", byHand: "changed in the settings file only",
  notSet: "not set", on: "on", oneInLine: "one in each line", secretSet: "set; type another to replace it",

  // Words of the browser
  notificationsOn: "The browser tells you of questions and of long work that is done, while you look elsewhere.", notificationsOff: "Notifications are off.", notificationsDenied: "The browser does not allow notifications for this page. Allow them in its settings.", noNotifications: "This browser has no notifications.",

  // A message that is edited in its place
  editHint: "What came of it stays as an older version, files as they are. Enter asks again, Shift+Enter makes a line.", askAgain: "Ask again",

  // The help for the keyboard
  keysHelp: [
    [["Enter"], "send"], [["Shift", "Enter"], "new line"], [["Esc"], "stop what runs"], [["↑"], "in an empty field: what you said before"], [["/"], "commands"], [["@"], "files"],
    [["Ctrl", "K"], "search"], [["Alt", "N"], "new conversation"], [["?"], "this list"],
  ],

  // Questions, versions, previews
  nothingWaits: "Nothing waits for you", nothingWaitsHint: "Questions of all conversations stand here until you answer them.", nobodys: "no conversation", until: (time) => `until ${time}`, wantedBy: (who) => `for ${who}`,
  version: (at, all) => `${at}/${all}`, versionBefore: "Version before", versionAfter: "Next version",
  downloadToOpen: "It cannot be shown here. Download it to open it.",

  // The list of models
  yourModels: "Your models", lastUsed: "Last used", searchModels: "Search models", noModels: "lists no models", noModelFits: "No model fits.", useTyped: "Use", answersNow: "answers now",
  moreModels: (number) => `${number} more: search for them`, window: (tokens) => `reads ${tokens}`, saysUpTo: (tokens) => `answers up to ${tokens}`,
  costs: (read, said) => `${read} in / ${said} out per million`, costsNothing: "free", sees: "sees images", callsTools: "uses tools", callsNone: "no tools",

  // Models
  nobodyAnswers: "Nobody can answer yet: connect a model below.", whoAnswers: "Who answers", main: ["Usual model", "Fallback models", "Small model for summaries and titles", "Reasoning effort"],
  presets: "Presets", presetsHint: "A model under a name of your own, for the usual model and for", presetsHint2: "in one conversation.", keys: "Keys",
  presetName: "Name of the preset", presetModel: "Model of the preset", presetExample: "Name, such as quick", addPreset: "Add a preset",
  removePreset: (name) => `Remove the preset ${name}`, removePresetTitle: (name) => `Remove the preset ${name}?`, removePresetText: "Conversations that use it go on with the usual model.",
  asking: "asking …", test: (name) => (name ? `Test ${name}` : "Test the usual model"),
  provider: "Provider", key: "Key", pasteKey: "Paste the key", keyKept: (name) => `The key of ${name} is kept in the vault.`, keyHint: "A key is kept in the vault, encrypted, and never shown again.", saveKey: "Save key",
  forgetKey: (name) => `Forget the key of ${name}`, forgetKeyTitle: (name) => `Forget the key of ${name}?`, forgetKeyText: "It cannot be shown again; you would need to paste it anew.", forget: "Forget", keyForgotten: (name) => `The key of ${name} is forgotten.`,
  where: { vault: "in the vault", settings: "in the settings file", file: "in a file of its own" }, whereElse: (place) => `from ${place}`, whereUnused: "in the vault, not used",
  began: (time) => `began after ${time}, `, ended: (time) => `ended after ${time}`, dimensions: (number) => `${number} dimensions`, tokens: (read, written) => `${read} tokens in, ${written} out`,

  // Access
  scopes: { read: "look at everything", chat: "speak and change conversations", approve: "answer questions", admin: "settings and tokens" },
  password: "Password", currentPassword: "Current password", newPassword: "New password", newPasswordHint: "New password, 8 characters or more", passwordSet: "The password is set. Other browsers are logged out.",
  hasPassword: "With it you log in from any browser.", noPassword: "There is none yet: set one, or you will need a new link each time you log in.", changePassword: "Change password", setPassword: "Set password",
  tokensTitle: "Tokens for programs", tokensHint: "Sent as Authorization: Bearer …, to the API, the WebSocket, /v1 and, for bots, /message.", tokenName: "Name of the token", tokenExample: "Name, such as laptop", makeToken: "Create token", tokenPlatforms: "Platforms that a bot with this token speaks for", tokenPlatformsHint: "Bot's platforms: discord, irc",
  tokenRow: (name, scopes, platforms) => (platforms ? `${name}: ${scopes}; speaks for ${platforms}` : `${name}: ${scopes}`), made: (time) => `made ${time}`,
  newToken: "The new token", shownOnce: "It is shown this once; only a hash of it is kept.", copy: "Copy", done: "Done",
  revoke: "Revoke", revokeNamed: (name) => `Revoke ${name}`, revokeTitle: (name) => `Revoke ${name}?`, revokeText: "Programs that use it are refused from this moment on.",
  allowedAhead: "Standing permissions", allowedHint: "Calls like one that you were asked about, which are not asked again.",
  grant: (runs, until, user, risk) => `${runs === null ? "As often as it comes," : `${runs} more ${runs === 1 ? "time" : "times"},`} until ${until}, for ${user}, up to ${risk} risk. Given with:`,
  takeBack: "Revoke", takeBackNamed: (what) => `Revoke ${what}`, takeBackTitle: "Revoke this permission?", takeBackText: (what) => `${what}. From now on you are asked.`,

  // Usage
  usedFor: (model, purpose) => `${model} (for ${purpose})`, show: "Show", days: "Days", kindsOfUsage: { tokens: "Tokens", cost: "Cost", calls: "Calls" }, lastDays: (number) => `${number} days`,
  usedBy: "By", usedBys: { model: "Model", person: "Person", channel: "Channel", job: "Job", tool: "Tool" }, nameless: { job: "turns", channel: "deleted", person: "nobody" }, ofOne: (name) => `Only ${name}`, ofAll: "Show everybody again",
  byTool: "Calls of each tool, with the tokens and the cost of the answers that made them: an answer that calls two tools counts for both.",
  nothingUsed: "Nothing has been used yet", noneOfThis: "Nothing of this kind", noneOfThisHint: "In this time nothing was used that way. Choose other days, or look by something else.", nothingUsedHint: "What models cost stands here, day by day, from the first question on.",
  cost: "Cost", calls: "Calls", read: "Input", written: "Output", unpriced: (number) => `${number === "1" ? "of 1 call" : `of ${number} calls`} the price is not known`, priced: "at the prices of that day", ownPaid: (amount) => `${amount} with own keys`, toModels: "to models",
  fromCache: (percent) => `${percent}% from the cache`, thought: (number) => `${number} of it reasoning`, byDay: (what) => `${what} by day; the table below has the numbers`,
  columns: ["Model", "Calls", "Input", "Cached", "Output", "Cost"], notKnown: "not known",

  // The outbox
  allArrived: "Everything has arrived", allArrivedHint: "Answers that a channel could not deliver stand here, with the reason, to be sent again or dropped.",
  givenUp: "Given up", givenUpHint: "They are kept until you send them again or drop them.", triedAgain: "Tried again", triedAgainHint: "For a day, less and less often; then they are given up.",
  forBots: "For bots to fetch", forBotsHint: "Said on a platform: a bot with a token that names it fetches them at /message/outbox.", waitsForBot: "no bot has confirmed it yet", botHasIt: (time) => `a bot has it until ${time}`,
  next: (time) => `next ${time}`, beingSent: "being sent now", noText: "(no text)", noReason: "no reason was given", tries: (number, time) => `${number} ${number === 1 ? "try" : "tries"} since ${time}`,
  sendAgain: "Send again", sendAgainTo: (chat) => `Send again to ${chat}`, sentAgain: "It is sent again, where the channel runs.",
  drop: "Drop", dropTo: (chat) => `Drop what goes to ${chat}`, dropTitle: "Never send it?", dropText: (chat) => `What waits for ${chat} stays in the conversation, and does not leave any more.`, dropped: "It is not sent any more.",
  runsWell: "What runs here: all is well", runsBadly: "What runs here: something has failed", taskColumns: ["Task", "State", "Since", "Restarts", "Last error"],
  taskStates: { running: "running", standby: "done by another process", waiting: "failed, is begun again soon", ended: "ended", failed: "failed" },

  // The workspace
  files: "Files", workspace: "Workspace", whereYouAre: "Where you are", entries: "What is in this folder", upload: "Upload", uploadHere: "Upload files into this folder", dropHere: "Drop to upload",
  showHidden: (number) => `Show ${number} hidden`, hideHidden: "Hide hidden ones", moreOf: (shown, all) => `${shown} of ${all}. Show more`, tooMany: "There are more than are counted; use a terminal for this folder.",
  emptyFolder: "Nothing is here yet", emptyFolderHint: "Drop files here, or ask for something to be made.",
  uploading: (name, at, all) => (all > 1 ? `Uploading ${name} (${at} of ${all}) …` : `Uploading ${name} …`), uploaded: (number) => (number === 1 ? "1 file is uploaded." : `${number} files are uploaded.`),
  noFolders: (name) => `${name} is a folder, or cannot be read. Upload its files.`,
  replaceTitle: (name) => `Replace ${name}?`, replaceText: "There is a file of that name already. What it holds now is kept, if it is not larger than 5 MB, and can be put back.", replace: "Replace",
  putBack: "Put back", isBack: "It is back.", units: [(number) => `${number} B`, (number) => `${number} kB`, (number) => `${number} MB`, (number) => `${number} GB`, (number) => `${number} TB`], odd: "This name holds characters that cannot be written here. Rename it in a terminal.", notAFile: "neither a file nor a folder", linkOut: "a link that leads out of the workspace, or nowhere",
  backToFolder: "Back to the folder", download: "Download", deleteFile: "Delete", deleteTitle: (name) => `Delete ${name}?`, deleteText: "It is removed from the workspace.", deleteLarge: "It is removed from the workspace, and too large to be kept for putting it back.", deleted: (name) => `${name} is deleted.`, deleteFolder: "Delete this folder",
  choose: "Choose a file to look at it.", chosenFile: "The chosen file", asPage: "Show as a page", asPageHint: "It is shown without scripts and without the network; links lead nowhere.", asText: "Show as text", pageOf: (name) => `${name}, as a page`, pdfOf: (name) => `${name}, in the browser's viewer`,
  firstOf: (shown, all) => `The first ${shown} of ${all} are shown.`, rowsOf: (shown) => `The first ${shown} rows are shown.`, noViewer: "This browser shows no PDF here. Download it to open it.",
  loading: "Loading …",

  // The trace
  trace: "Trace", whereTime: "Where the time went", personaHere: (name, by) => `Persona: ${name} (${by})`, toConversation: "To the conversation", nothingHappened: "Nothing has happened here yet. Say something first.",
  spans: { queue: "Queue", model: "Model", tool: "Tool", approval: "Approval", summary: "Summary", delivery: "Delivery" }, endings: { answered: "answered", failed: "gave up", stopped: "stopped", open: "not over" },
  steps: "Steps in order", traceHint: "Under this id a collector knows the turn, if one is configured", traceId: (id) => `Trace ${id}`, inOut: (read, written) => `${read} in, ${written} out`,
});
