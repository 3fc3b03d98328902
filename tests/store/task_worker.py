"""A process that hands two tasks on, waits for one and is told of the other, and is killed at the failpoint that its
environment names. It writes down how things stand in the end: the same, whatever was killed before."""

import asyncio
import json
import os
import sys
from pathlib import Path

import everloop
from everloop.core.log import CallReturned, UserSaid
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.thread import Thread
from everloop.testing import Call, Line, Say, ScriptedModel, Shown

SESSION = "cli:direct"


def work(step: int) -> Call:
    """A step that can be seen if it is done twice, and one that cannot."""
    if step % 5 == 0:
        return Call("exec", {"command": f"echo {step} >> log.txt"})
    return Call("write_file", {"path": f"{step}.txt", "content": f"{step}"})


def line_of(steps: int):
    def line(shown: Shown) -> Line | tuple[Line, ...]:
        first, done = shown.said[0][1], sum(role == "tool" for role, _ in shown.said)
        if first == "a":
            return work(done) if done < steps - 1 else Say("A")
        if first == "b":
            return Say("B")
        if shown.said[-1] == ("user", "go"):
            return Call("spawn", {"task": "a", "wait": True}), Call("spawn", {"task": "b"})
        return Say("told of b" if shown.said[-1][0] == "user" else "done")

    return line


async def main(folder: Path, url: str, steps: int) -> None:
    lease = 1 if "EVERLOOP_FAILPOINT" in os.environ else 30  # whoever is killed is succeeded when it runs out
    store = {"url": url, "lease_seconds": lease} if url else {}
    model = ScriptedModel(line_of(steps))
    async with everloop.open(folder, {"store": store}, provider=model) as agent, asyncio.timeout(100):
        await agent.tell(Inbound(Address.parse(SESSION), "e1", Said(said("go"), "owner", SESSION)))
        while await is_at_work(agent):  # noqa: ASYNC110  # the process before may have done it
            await asyncio.sleep(0.02)
        end = await end_of(agent)
    workspace = folder / "workspace"
    files = sorted(path.name for path in workspace.glob("*.txt"))  # nothing else runs any more
    sys.stdout.write(json.dumps({**end, "files": files, "log": (workspace / "log.txt").read_text()}))


async def is_at_work(agent: everloop.Agent) -> bool:
    rows = await agent.store.tasks()
    row = await agent.store.session(SESSION)
    log = await agent.store.read(row.id)
    told = any(isinstance(each, UserSaid) and each.source for each in log)
    open_now = len(rows) < 2 or any(task.is_open for task in rows)
    # On PostgreSQL whoever was killed holds its lease for a moment still: what it leaves is nobody's work until then.
    owed = not told or not Thread.of(*log).rests
    return open_now or owed or bool(agent.store.running) or bool(await agent.store.waiting())


async def end_of(agent: everloop.Agent) -> dict[str, object]:
    row = await agent.store.session(SESSION)
    log = await agent.store.read(row.id)
    unshown = await agent.store.unshown(SESSION)
    return {
        "results": sorted(each.text.partition(".")[0] for each in log if isinstance(each, CallReturned)),
        "told": [each.parts[0].text for each in log if isinstance(each, UserSaid) and each.source],
        "answers": [each.text for each in unshown],
        "tasks": sorted((task.title, task.stage, task.steps) for task in await agent.store.tasks()),
    }


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
