"""The scripted model as a process: it does what the message says, and notes each call in a file outside."""

import asyncio
import sys
from pathlib import Path

from everloop.testing import Call, Line, Pause, Say, Shown, outside
from everloop.testing.model_server import ModelServer

from .feed import message_id, plan_of


def answer(shown: Shown) -> Line:
    """The calls that the plan holds for this step, then a text that repeats what the tools said."""
    id, plan = message_id(shown.asked), plan_of(shown.asked)
    if shown.step < len(plan):
        return [
            Pause(0.01),
            *(Call(name, {"for": f"{id}.{shown.step}.{n}"}) for n, name in enumerate(plan[shown.step])),
        ]
    heard = [message.text.split("\n", 1)[0] for message in shown.messages if message.role == "tool"]
    return [Pause(0.01), Say(["answer to ", f"{id}: ", " | ".join(heard[-9:])])]


async def serve(log: Path) -> None:
    def noting(shown: Shown) -> Line:
        outside.append(log, {"message": message_id(shown.asked), "step": shown.step})
        return answer(shown)

    async with ModelServer(noting) as server:
        sys.stdout.write(f"ready {server.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
