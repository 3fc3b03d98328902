// The words of questions that are about no call.

import { spoken } from "./say.js";

export const told = spoken({
  heldBack: (file) => `${file} was changed, and the change is held back. May it stay?`, whyAsked: (why) => `Why you are asked: ${why}.`, letItStay: "Let it stay", putItBack: "Put it back",
  itStays: "It stays, and is told from the next turn on.", itIsPutBack: "It is put back to what it was.",
  beyond: "Go beyond the budget?", goOn: "Go on", stopHere: "Stop here", goesOn: "It goes on, for this turn.", ends: "The turn ends here.",
  serverAsks: (name) => `The MCP server ${name} asks you, in its own words:`, goesToServer: (name) => `What you answer goes to ${name}.`, answerIt: "Answer", declineIt: "Decline",
  othersAnswer: "Those who may answer this were asked. The turn goes on when they say yes; stop it if you don't want to wait.",
});
