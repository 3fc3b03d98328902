// The words of People.

import { spoken } from "./say.js";

export const told = spoken({
  waiting: "Waiting to be let in", waitingHint: "They have written from an account that is nobody's, and were told this code. Compare it with what they tell you.",
  letIn: "Let in", letInNamed: (account) => `Let in ${account}`, called: "Call them", callWhom: (account) => `What to call ${account}`, asked: (time, until) => `asked ${time}, until ${until}`,
  role: "Role", roleOf: (name) => `Role of ${name}`, roles: { guest: "guest: speaks, with few tools", user: "user: own files and tools", admin: "administrator: also approves, manages people", owner: "owner" },
  people: "People", accounts: "Accounts", noAccounts: "no account yet", since: (time) => `since ${time}`, blocked: "blocked", id: "Id: ",
  invite: "Invite", inviteNamed: (name) => `Invite ${name} to the page`, inviteTitle: (name) => `A link for ${name}`, inviteText: "Send it to them. It works once, for three days; whoever opens it is this person, and can set a password under Manage, Access.", inviteLink: "Link", close: "Done",
  rename: "Rename", renameNamed: (name) => `Rename ${name}`, renameTitle: (name) => `Rename ${name}`, save: "Save",
  block: "Block", unblock: "Unblock", blockNamed: (name) => `Block ${name}`, unblockNamed: (name) => `Unblock ${name}`, blockTitle: (name) => `Block ${name}?`, blockText: "They are heard nowhere any more: not on channels, not by tokens, not in the page. What they have stays.",
  link: "Add account", linkNamed: (name) => `Add an account of ${name}`, account: (name) => `Account of ${name}`, accountExample: "telegram:12345", unlink: (account) => `Remove the account ${account}`,
  unlinkTitle: (account) => `Remove ${account}?`, unlinkText: (name) => `Who writes from it is not ${name} any more, but a stranger.`, remove: "Remove",
  add: "Add a person", name: "Name", addAccount: "Account", addAccountHint: "Account, if any: telegram:12345", addThem: "Add person",
  done: (name) => `${name} is changed.`, isIn: (name) => `${name} is let in, and can write again.`, added: (name) => `${name} is added.`,
});
