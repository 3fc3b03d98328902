// The words of Backup.

import { spoken } from "./say.js";

export const told = spoken({
  none: "There is no backup yet", noneHint: "A backup is one file with everything: conversations, files, memory, settings. It is made while everything runs.",
  create: "Create one now", creating: "Being made …", made: (name) => `${name} was made.`, list: "Backups, the newest first", download: "Download", downloadNamed: (name) => `Download ${name}`,
  encrypted: "encrypted", plain: "not encrypted", folder: (path) => `They lie in ${path}.`,
  noPassphrase: "Without a passphrase the key of the vault is left out. Set backup.passphrase in the settings file to ${vault:NAME} to have them encrypted.",
  schedule: "Backups made by themselves", every: "How often", never: "Never", daily: "Daily", weekly: "Weekly", keep: "How many are kept", save: "Save", saved: "Saved.",
  copy: (name) => `This home is restored from ${name}. Channels are off, and nothing is sent or begun by itself while the original may do so.`,
  adopt: "This is the one that goes on", adopted: "This home goes on. Answers that may have been sent since wait in the outbox.",
  size: (bytes) => (bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`),
});
