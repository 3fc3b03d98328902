"""One life of everloop under torture: a real process, with its platform, tools and channels outside itself.

It takes in what the platform still holds, answers questions, and ends by itself when all is answered.
"""

import asyncio
import faulthandler
import fcntl
import logging
import os
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

import everloop
from everloop.app.agent import Agent
from everloop.app.user import inbound_of
from everloop.core.mail import Address, Decision, Inbound
from everloop.core.people import Role
from everloop.core.tool import Effect
from everloop.errors import MailRefused, StoreError
from everloop.ports.channel import OutgoingPart
from everloop.ports.jobs import Job
from everloop.ports.tools import CallContext, Tool
from everloop.testing import RecordingChannel, Sent, counting_tool, failpoints, outside

from .disk import FailingDisk
from .feed import Ack, Event, acks_in, events_in

PAUSE = 0.012  # how long an effect takes, so that kills find it in the middle
TRIES = 40  # to answer a question, before it is believed that nobody waits for that


Sabotage = Callable[[], None]


class Life(Struct, frozen=True):
    """What a process is told when it is born."""

    folder: Path
    settings: dict[str, Any]
    seed: int = 0
    environment: dict[str, str] = {}
    frozen: bool = False  # processes may stand still in the middle of a call, while others go on
    faulty: bool = False  # the disk fails when told; see disk.py
    stay: bool = False  # go on living when all is answered
    sabotage: Sabotage | None = None  # breaks a promise, to see that the checks notice


def live(life: Life) -> None:
    """The whole life of a worker process."""
    os.environ.update(life.environment)
    errors = os.open(life.folder / "stderr.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(errors, 2)
    faulthandler.register(signal.SIGUSR1)  # a hang can be asked where it is
    logging.basicConfig(format="%(process)d %(name)s %(message)s", level=logging.WARNING)
    if life.sabotage is not None:
        life.sabotage()
    disk = FailingDisk(life.folder) if life.faulty else None
    asyncio.run(_live(life))
    del disk


async def _live(life: Life) -> None:
    folder = life.folder
    channels = [SlowChannel("idem", folder / "idem.jsonl"), SlowChannel("blind", folder / "blind.jsonl", once=False)]
    opened = everloop.open(folder / "home", life.settings, tools=make_tools(folder, life.frozen), channels=channels)
    async with opened as agent:
        outside.append(folder / "lives.jsonl", {"pid": os.getpid()})
        async with asyncio.TaskGroup() as group:
            person = [group.create_task(answer_questions(agent, channel)) for channel in channels]
            sessions = list(dict.fromkeys(event.session for event in events_in(folder / "feed.jsonl")))
            platform = [group.create_task(deliver(agent, folder, session, life.seed)) for session in sessions]
            await asyncio.gather(*platform)
            await until(lambda: remind(agent, folder))
            await until(lambda: is_quiet(agent, folder))
            (folder / "quiet").touch()
            if life.stay:
                await asyncio.Event().wait()
            for task in person:
                task.cancel()


async def deliver(agent: Agent, folder: Path, session: str, seed: int) -> None:
    """The platform's side of one chat: in order, until acknowledged, and now and then once more than needed."""
    rng = random.Random(f"{session} {seed}")
    known = {ack.event: ack for ack in acks_in(folder / "acks.jsonl")}
    for event in [event for event in events_in(folder / "feed.jsonl") if event.session == session]:
        if event.id in known and rng.random() > 0.2:
            continue
        ack = await tell(agent, folder, event)
        if event.id in known and ack != known[event.id]:
            outside.append(
                folder / "violations.jsonl", {"text": f"{event.id} came back as {ack}, not {known[event.id]}"}
            )
        outside.append(folder / "acks.jsonl", ack)
        await asyncio.sleep(rng.expovariate(1 / 0.02))
        await until(lambda thread=ack.thread: has_room(agent, thread))


async def remind(agent: Agent, folder: Path) -> bool:
    """A job that is due at once, whose letter changes nothing; whether it has been fired."""
    thread = acks_in(folder / "acks.jsonl")[0].thread
    letter = Inbound(Address("timer", thread), "", Decision(thread, 0, 0, "expired"))
    await agent.store.add_job(Job("reminder", "timer", 1.0, letter=letter))
    return [row.state for row in await agent.store.jobs("owner") if row.job.id == "reminder"] == ["done"]


async def tell(agent: Agent, folder: Path, event: Event) -> Ack:
    """Deliver until it is taken: whatever error comes back, a platform tries again."""
    inbound = inbound_of(event.text, event.session, event.id, event.author)
    while True:
        try:
            receipt = await agent.tell(inbound)
            return Ack(event.id, receipt.id, receipt.thread, receipt.reply)
        except failpoints.Reached:
            continue
        except StoreError as error:
            outside.append(folder / "refusals.jsonl", {"text": str(error)})
            await asyncio.sleep(0.05)


async def answer_questions(agent: Agent, channel: RecordingChannel) -> None:
    """A person who allows every other call that they are asked about, and says so again after each restart."""
    tries: Counter[str] = Counter()
    while True:
        for sent in channel.sends:
            if sent.kind == "question" and tries[sent.key] < TRIES:
                with suppress(StoreError, failpoints.Reached):
                    tries[sent.key] += TRIES if await decide_on(agent, sent) else 1
        await asyncio.sleep(0.05)


async def decide_on(agent: Agent, question: Sent) -> bool:
    """False if it has been answered, waits no more, or does not wait at this moment: its turn is being taken over."""
    _, _, answer, place = question.key.split(":")
    try:
        await agent.decide(question.approval, bool((int(answer) + int(place)) % 3))
    except MailRefused:
        return False
    return True


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    while True:  # what is waited for happens in the store, perhaps by another process
        with suppress(StoreError):  # it is away for a while
            if await true():
                return
        await asyncio.sleep(0.02)


async def has_room(agent: Agent, thread: str) -> bool:
    """People write a little faster than they are answered, not much."""
    return len(await agent.store.unfinished(thread)) <= 2


async def is_quiet(agent: Agent, folder: Path) -> bool:
    """Whether all that was acknowledged has been answered and all answers have left."""
    acks = acks_in(folder / "acks.jsonl")
    for thread in {ack.thread for ack in acks}:
        if await agent.store.unfinished(thread):
            return False
    sessions = {event.session for event in events_in(folder / "feed.jsonl")}
    return not any([await agent.unshown(session) for session in sessions])


class SlowChannel(RecordingChannel):
    """A platform that takes a moment before and after it accepts a message."""

    async def send(self, part: OutgoingPart) -> str:
        await asyncio.sleep(PAUSE / 2)
        receipt = await super().send(part)
        await asyncio.sleep(PAUSE)
        return receipt


def make_tools(folder: Path, frozen: bool) -> list[Tool]:
    effects = folder / "effects.jsonl"
    tools = [counting_tool(effects, effect.value, effect) for effect in Effect]
    tools.append(counting_tool(effects, "guarded", Effect.UNSAFE, guarded=True))
    for_all = [replace(tool, spec=replace(tool.spec, permission=Role.GUEST)) for tool in tools]
    return [replace(tool, run=_slow(tool, folder, frozen)) for tool in for_all]


def _slow(tool: Tool, folder: Path, frozen: bool) -> Callable[[dict[str, Any], CallContext], Awaitable[str]]:
    async def run(args: dict[str, Any], context: CallContext) -> str:
        lock = os.open(folder / f"{context.thread}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            if tool.spec.effect is not Effect.READ and not frozen:
                _claim(lock, context, folder)
            await asyncio.sleep(PAUSE / 2)
            text = await tool.run(args, context)
            await asyncio.sleep(PAUSE)
            return text
        finally:
            os.close(lock)

    return run


def _claim(lock: int, context: CallContext, folder: Path) -> None:
    """The kernel frees the lock of a process that is killed, so two living drivers of one thread would meet here."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        outside.append(folder / "violations.jsonl", {"text": f"two processes run calls of {context.thread} at once"})
