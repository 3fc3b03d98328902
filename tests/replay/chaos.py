"""A conversation in which everything happens: the real driver and store, and chance as model, tools, people and death.

Nobody waits for anything, so that a thousand turns take seconds: letters come while a model answers or a tool runs, and
a process that dies or is closed is followed by the next at once.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from everloop.bus.local import LocalBus
from everloop.core.approval import Policy, PolicyRule
from everloop.core.briefing import Briefing, Situation
from everloop.core.decide import Rules
from everloop.core.log import Entry
from everloop.core.mail import Address, Choose, ChoosePersona, Decision, Inbound, Letter, Said, Stop
from everloop.core.message import said
from everloop.core.people import Role
from everloop.core.prompt import Prompt, Section, Usage
from everloop.core.thread import Thread
from everloop.core.tool import Effect, FileChange, Risk, ToolCall, ToolSpec
from everloop.core.turn import Finished
from everloop.errors import ContextOverflow, KeyRefused, ProviderError, RateLimited, StreamCut, ToolError
from everloop.files.folder import Folder
from everloop.files.pictures import fit
from everloop.ports.permission import Grant
from everloop.ports.provider import Delta, Reply
from everloop.ports.tools import CallContext, Shown, Tool
from everloop.readings.definitions import definition_of
from everloop.runtime.book import Book
from everloop.runtime.calls import Toolbox
from everloop.runtime.context import Context, Gallery, Profile
from everloop.runtime.driver import Driver
from everloop.runtime.interrupt import Interrupt
from everloop.runtime.models import Model, OneModel
from everloop.store.sqlite import SqliteStore

HERE = Address("test", "chaos")
STRICT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
FREE = {"type": "object"}
FAILURES: list[Callable[[], ProviderError]] = [
    lambda: StreamCut("broken off"),
    lambda: KeyRefused("no key"),
    lambda: ContextOverflow("too long"),
    lambda: RateLimited("too often", 3.0),
]


class Death(BaseException):
    """The process was killed. No `except Exception` sees it."""


def spec(name: str, effect: Effect, schema: dict[str, Any] = FREE, **more: Any) -> ToolSpec:
    return ToolSpec(name, f"{name}.", schema, effect, **{"permission": Role.GUEST, **more})


SPECS = [
    spec("look", Effect.READ, local=True),
    spec("fetch", Effect.READ),
    spec("watch", Effect.READ, polls=True),
    spec("act", Effect.UNSAFE),
    spec("put", Effect.IDEMPOTENT, STRICT),
    spec("pay", Effect.KEYED),
    spec("check", Effect.VERIFIABLE),
    spec("guard", Effect.UNSAFE, guarded=True),
    spec("mine", Effect.READ, permission=Role.OWNER),
    spec("never", Effect.UNSAFE, STRICT),
    spec("leave", Effect.READ, risk=lambda args, situation: Risk("high", leaves="n" not in args)),
]
ARGS = ["{}", '{"n":1}', '{"n":2}', '{"n":"x"}', "garbage"]


class Listener:
    def take(self, mail: int, head: int) -> None: ...

    def finish(self, turn: Finished) -> None: ...

    def is_waited_for(self) -> bool:
        return False

    def wake(self, thread: str) -> None:
        pass


class Chaos:
    """Use `await Chaos.live(chance, home, turns)`: it returns the log that came of it."""

    name = "chaos"

    def __init__(self, chance: Random, store: SqliteStore, home: Path) -> None:
        self.chance, self.store = chance, store
        self.letters, self.deaths, self.posted = 10, 8, 0  # trouble is bounded, or there is no end
        self.stubborn = chance.random() < 0.25  # the model does the same over and over, and nothing new comes of it
        self.book: Book | None = None
        self.interrupt = Interrupt(asyncio.current_task())
        files = Folder(home / "files")
        self.toolbox = Toolbox.of([Tool(spec, self.runner(spec.name), self.verify) for spec in SPECS], files, 400)
        policy = Policy(rules=(PolicyRule("never", "deny"),))
        self.rules = Rules(self.toolbox.specs, chance.choice([3, 12, 40]), policy=policy)
        profile = Profile("model", (Section("identity", "system"),), tail=chance.random() < 0.8)
        self.now = 0
        context = Context(profile, tuple(self.toolbox.specs.values()), self.clock)
        model = Model("test/model", "", "model", self, 100_000, lambda window, told: (context, self.rules))
        self.driver = Driver(store, LocalBus(), OneModel(model), self, self.toolbox, Gallery(files, fit))

    async def brief(self, situation: Situation) -> Briefing:
        return Briefing("system", self.rules)

    @classmethod
    async def live(cls, chance: Random, home: Path, turns: int = 3) -> list[Entry]:
        store = await SqliteStore.connect(home, synchronous="OFF")
        try:
            chaos = cls(chance, store, home)
            receipt = await store.receive(Inbound(HERE, "first", chaos.speech()))
            for turn in range(turns):
                if turn:
                    await chaos.post(chaos.speech())
                await chaos.go_on(receipt.thread)
            return await store.read(receipt.thread)
        finally:
            await store.close()

    async def go_on(self, thread: str) -> None:
        """Until it rests, and nobody is asked anything any more."""
        while True:
            book = self.book = await Book.open(self.store, Thread(thread), Listener())
            try:
                await self.driver.drive(book, self.interrupt, lambda: self.dies(0.03))
            except Death:
                continue
            except BaseExceptionGroup as group:  # of several that ran side by side
                if group.split(Death)[1]:
                    raise
                continue
            if book.thread.pending:
                await self.decide(book.thread)
            elif not book.thread.owes_reply:
                return

    def clock(self) -> str:
        self.now += 1
        return f"minute {self.now}"

    def dies(self, often: float) -> bool:
        dead = self.deaths > 0 and self.chance.random() < often
        self.deaths -= dead
        return dead

    def speech(self) -> Said:
        chance = self.chance
        author = "bob" if chance.random() < 0.2 else "owner"
        return Said(said(chance.choice(["go", "on", "häßlich\n…"])), author, "test:chaos", chance.random() < 0.2)

    async def post(self, letter: Letter) -> None:
        self.posted += 1
        await self.store.receive(Inbound(HERE, f"letter {self.posted}", letter))

    async def decide(self, thread: Thread) -> None:
        chance, place = self.chance, self.chance.choice(thread.pending)
        digest = thread.asked[place].digest
        verdict = chance.choice(["allowed", "allowed", "denied", "expired"])
        by = "" if verdict == "expired" else "owner"
        if chance.random() < 0.2:
            await self.post(self.speech())
        await self.post(Decision(thread.id, thread.answer, place, verdict, by, digest))

    async def trouble(self) -> None:
        """What may happen while a step is being performed."""
        chance = self.chance
        if self.dies(0.08):
            raise Death
        if self.letters and chance.random() < 0.15:
            self.letters -= 1
            choices = (Choose("other", "owner"), ChoosePersona("tutor", "owner"))
            letter = chance.choice([self.speech(), Stop("owner"), Stop("bob"), chance.choice(choices)])
            await self.post(letter)
            assert self.book is not None
            self.book.expect_mail()
            if isinstance(letter, Stop) and self.driver.is_stopped(
                self.book, await self.store.mail(self.book.thread.id)
            ):
                self.interrupt.fire()
                await asyncio.sleep(0)
        if chance.random() < 0.05:
            name = chance.choice(["guard", "leave"])
            self.posted += 1
            bound = {"definition": definition_of(self.toolbox.specs[name]), "any": True}
            grant = Grant(f"g{self.posted}", "owner", "owner", name, **bound, runs=1, until=time.time() + 1e6)
            await self.store.keep_grant(grant)

    async def reply(self, prompt: Prompt, show: Callable[[Delta], None]) -> Reply:
        await self.trouble()
        chance = self.chance
        if chance.random() < 0.12:
            raise chance.choice(FAILURES)()
        usage = Usage(chance.randrange(500), 20)
        if self.stubborn and chance.random() < 0.9:
            names = chance.choice([["look"], ["act"], ["watch"], ["look", "watch", "act"]])
            same = [ToolCall(f"c{n}", name, '{"n":1}') for n, name in enumerate(names)]
            return Reply("", tuple(same), usage, "calls", "model")
        kind = chance.random()
        if kind < 0.1:
            return Reply("", usage=usage)
        if kind < 0.35:
            return Reply(chance.choice(["done", "there"]), usage=usage, model="model", cost=0.5)
        names = ["nothing", *(spec.name for spec in SPECS)]
        calls = [
            ToolCall(f"c{n}", chance.choice(names), chance.choice(ARGS)) for n in range(chance.choice([1, 1, 2, 4]))
        ]
        return Reply("", tuple(calls), usage, "calls", "model", reasoning="hm" if chance.random() < 0.2 else "")

    async def close(self) -> None: ...

    def runner(self, name: str) -> Callable[[dict[str, Any], CallContext], Any]:
        async def run(args: dict[str, Any], context: CallContext) -> str | Shown:
            await self.trouble()
            if self.stubborn:
                return f"{name} brought nothing new"
            kind = self.chance.random()
            if kind < 0.15:
                raise ToolError("it did not work", (FileChange("notes.md", "new", "abc"),))
            if kind < 0.2:
                raise ValueError("oops")
            if kind < 0.3:
                return Shown("changed", changes=(FileChange("notes.md", "new", "abc"),), origin="a page")
            if kind < 0.4:
                return f"{self.chance.random()} " * 40  # more than is shown
            return f"{name} brought {self.chance.choice(['this', 'that'])}"

        return run

    async def verify(self, args: dict[str, Any], context: CallContext) -> str | None:
        await self.trouble()
        kind = self.chance.random()
        if kind < 0.3:
            raise ToolError("nobody knows")
        return "it had happened" if kind < 0.6 else None
