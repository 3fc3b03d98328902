// A stream of server-sent events over fetch, which can be ended and says who may not have it.

import { authorized, understood } from "./api.js";

/** What is told as server-sent events, one after the other, until the signal ends it or nobody tells any more. */
export async function* events(path, signal) {
  const answer = await authorized(path, { signal });
  if (!answer.ok) await understood(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", read; !(read = await reader.read()).done;) {
    const whole = (rest + read.value).split("\n\n");
    rest = whole.pop();
    for (const each of whole) {
      const data = each.split("\n").find((line) => line.startsWith("data: "));
      if (data) yield JSON.parse(data.slice(6));
    }
  }
}
