// A turn goes to the background: what runs goes on, and its chat in a copy from before it.

import { post } from "./api.js";
import { toast } from "./dom.js";
import { told } from "./say-tasks.js";

export async function sendOff(chat) {
  if (chat.leaving) return;
  chat.leaving = true;
  try {
    chat.leaveFor((await post(`/api/sessions/${chat.thread}/background`)).thread); // an event tells its number
  } catch (error) { toast(error.message, "bad"); }
  chat.leaving = false;
}

export function tell(number) { toast(told.inBackground(number)); }
