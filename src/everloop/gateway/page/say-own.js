// The words of what people keep for themselves.

import { spoken } from "./say.js";

export const told = spoken({
  keys: "Your own keys", keysHint: "Give a key of a model provider, and its models answer you with it: you pay the provider for that, your budget here stays as it is, and nobody else is answered with it. When it is refused you are told, and nobody else is asked in its place. No page ever shows it.",
  keysOfOwner: "The keys that you are answered with are the house's, under Models.",
  provider: "Provider", key: "Your key", keepKey: "Keep key", keyKept: (name) => `Models of ${name} answer you with your own key from now on.`, since: (time) => `kept ${time}`,
  forgetKey: (name) => `Forget your key of ${name}`, forgetKeyTitle: (name) => `Forget your key of ${name}?`, forgetKeyText: "From then on you are answered with the house's key again, out of your budget, where the house has one.", forget: "Forget",
  credentials: "Credentials for your tools", credentialsHint: "A password or token that the agent uses in your name. The model knows only its name. It is sent to the hosts that you write here and to no other, and only in conversations that are yours alone.",
  name: "Name", nameHint: "Name, such as github", value: "Credential", hosts: "Hosts that it may be sent to", hostsHint: "Hosts, such as api.github.com", header: "Header", headerHint: "Header (Authorization, if you leave it empty)", commands: "Commands may have it too, without a network, each after a person has said yes",
  keepCredential: "Keep credential", credentialKept: (name) => `${name} is kept.`, sentTo: (hosts, header) => `sent to ${hosts} as ${header}`, toCommands: (variable) => `to commands as $${variable}`,
  forgetCredential: (name) => `Forget ${name}`, forgetCredentialTitle: (name) => `Forget ${name}?`, forgetCredentialText: "Your tools cannot use it any more.",
});
