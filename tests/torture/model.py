"""The scripted model as a process: it does what the message says, and notes each call in a file outside."""

import asyncio
import random
import re
import sys
from pathlib import Path

from everloop.testing import Call, Line, Pause, Say, Shown, outside
from everloop.testing.model_server import ModelServer

from .feed import message_id, plan_of

DEED = re.compile(r"\S+/\S+#\d+\.\d+\.\d+")  # one call of a plan, by what it is for
SUMMARISE = "You summarise"  # how the prompt of a summary begins


def answer(shown: Shown, pace: float = 0.0) -> Line:
    """The calls that the plan holds for this step, then a text that repeats what the tools said. With a `pace` it takes
    up to so many seconds before and in the middle."""
    if shown.system.startswith(SUMMARISE):
        return Say(f"Done: {' '.join(DEED.findall(told(shown)))}.")
    id, plan, step = message_id(shown.asked), plan_of(shown.asked), step_of(shown)
    before, between = (Pause(seconds) for seconds in pauses(f"{id}.{step}", pace))
    if step < len(plan):
        return [before, *(Call(name, {"for": f"{id}.{step}.{n}"}) for n, name in enumerate(plan[step]))]
    heard = [message.text.split("\n", 1)[0] for message in shown.messages if message.role == "tool"]
    if not pace:
        return [before, Say(["answer to ", f"{id}: ", " | ".join(heard[-9:])])]
    return [before, Say(["answer to ", f"{id}: "]), between, Say(" | ".join(heard[-9:]) or "nothing")]


def pauses(step: str, pace: float) -> tuple[float, float]:
    if not pace:
        return 0.01, 0.0
    rng = random.Random(step)  # the same whenever it is asked
    return rng.uniform(0.01, pace), rng.uniform(0.0, pace / 2)


def step_of(shown: Shown) -> int:
    """How far the plan has come: that stands in the calls, or in the summary that has taken their place."""
    deed = re.compile(rf"(?<!\S){re.escape(message_id(shown.asked))}\.(\d+)\.\d+")
    return max((int(step) + 1 for step in deed.findall(told(shown))), default=0)


def told(shown: Shown) -> str:
    """All words of a prompt, what calls are for among them."""
    texts = [message.text for message in shown.messages]
    calls = [call.args for message in shown.messages for call in message.calls]
    return " ".join((*texts, *calls)).replace('"', " ")


async def serve(log: Path, pace: float) -> None:
    def noting(shown: Shown) -> Line:
        outside.append(log, {"message": message_id(shown.asked), "step": step_of(shown)})
        return answer(shown, pace)

    async with ModelServer(noting) as server:
        sys.stdout.write(f"ready {server.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), float(sys.argv[2])))
