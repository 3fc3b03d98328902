"""A conversation that is consolidated in parts, and a model that says of each line that it has seen it.

What it says is another text each time it is asked, so that whatever is remembered twice is seen.
"""

import re
import secrets
from typing import Any

import msgspec

from everloop.core.log import Entry, ModelCalled, ModelSaid, UserSaid
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.people import Role
from everloop.core.prompt import Prompt, Usage
from everloop.core.tool import ToolCall
from everloop.memory.consolidation import Consolidation
from everloop.memory.planning import ConsolidationPlanner, PlanningRules
from everloop.ports import Store
from everloop.ports.memory import HISTORY, MEMORY
from everloop.ports.memory_model import MemoryAnswer
from everloop.ports.provider import Reply
from everloop.ports.rows import Commit, Lease, Spent
from everloop.runtime.clock import MACHINE
from everloop.runtime.people import KnownPeople

CHAT = Address("page", "one")
LINES = 6
PARTS = 3  # into which they are read
RULES = PlanningRules()
ROOM = 280  # characters of a part
_SAID = re.compile(r"^\[(\d+)\] .*?:\n    (line-\d+)", re.MULTILINE)


class LineModel:
    def __init__(self, room: int = ROOM) -> None:
        self.asked: list[str] = []
        self._room = room

    async def room(self) -> int:
        return self._room

    async def ask(self, principal: str, owner: str, thread: str, key: str, prompt: Prompt) -> MemoryAnswer | None:
        text = prompt.transcript.text
        self.asked.append(text)
        seen, call = _SAID.findall(text), secrets.token_hex(4)
        facts = [
            {"text": f"{line} {call}", "topic": "Lines", "importance": 3, "entry": int(number)} for number, line in seen
        ]
        entry = {"history_entry": " ".join(line for _, line in seen), "facts": facts}
        args = msgspec.json.encode(entry).decode()
        spent = Spent(0, "m", Usage(10, 5))
        return MemoryAnswer(Reply("", (ToolCall("1", "save_memory", args),)), spent)


async def begin(store: Store, lines: int = LINES) -> str:
    """A conversation in which so many lines were said, and which its session has left."""
    receipt = await store.command(Inbound(CHAT, "begin", Said(said("/new"), "owner", str(CHAT))), "new", "")
    entries: list[Entry] = []
    for number in range(lines):
        entries += [UserSaid(said(f"line-{number}"), "owner", str(CHAT)), ModelCalled("m"), ModelSaid("yes")]
    await store.commit(Lease(receipt.thread), Commit(entries, release=True, state="resting"))
    await store.command(Inbound(CHAT, "leave", Said(said("/new"), "owner", str(CHAT))), "new", "")
    return receipt.thread


def consolidation(store: Store, model: Any, **roles: Role) -> Consolidation:
    return Consolidation(store, KnownPeople(None, roles), MACHINE, model, enabled=lambda: True)


def planner(store: Store, rules: PlanningRules = RULES, clock: Any = MACHINE, **roles: Role) -> Any:
    return ConsolidationPlanner(store, KnownPeople(None, roles), clock, lambda: rules)


async def work(store: Store, model: Any) -> list[str]:
    """See to all jobs that there are; what came of each."""
    done = []
    while rows := await store.claim_jobs(["consolidate"], 30.0):
        result = await consolidation(store, model).work(rows[0])
        await store.settle_job(rows[0], result)
        done.append(result)
    return done


async def remembered(store: Store) -> tuple[list[str], list[str], list[str]]:
    """The lines that are facts, those that stand in MEMORY.md, and those that HISTORY.md tells of."""
    facts = sorted(fact.text.split()[0] for fact in await store.facts("owner", ended=True))
    bodies = [(await store.document("owner", name)).body for name in (MEMORY, HISTORY)]
    return facts, *(sorted(re.findall(r"line-\d+", body)) for body in bodies)
