"""What people say in a world: messages whose text tells the model what to do, and the platform that keeps them.

A message reads `w1/idem:2#7 read+read keyed+unsafe`: its id, then the tool calls of each answer, in order. The model
is a pure function of it, so a turn that is taken up by another process goes on as it would have.
"""

import random
from pathlib import Path

import msgspec
from msgspec import Struct

from everloop.testing import outside

TOOLS = ("read", "idempotent", "keyed", "verifiable", "unsafe")


class Event(Struct, frozen=True):
    """One message on the platform, redelivered until it is acknowledged."""

    id: str
    session: str
    author: str
    text: str


class Ack(Struct, frozen=True):
    """The platform was told that we have the event: it need not deliver it again."""

    event: str
    mail: int
    thread: str
    reply: str | None = None


def message_id(text: str) -> str:
    return text.split(maxsplit=1)[0]


def plan_of(text: str) -> list[list[str]]:
    """The tools that each answer to this message calls; after them the answer is text."""
    return [batch.split("+") for batch in text.split("\n", 1)[0].split()[1:]]


def make_feed(world: str, rng: random.Random, sessions: int = 8, messages: int = 12) -> list[Event]:
    """Sessions of four kinds on two channels: a crowd (each message is a turn), one person (who steers), one who is
    asked for permission, one who moves on to a new conversation; the last two give commands."""
    events = []
    for number in range(sessions):
        session = f"{('idem', 'blind')[number % 2]}:{('crowd', 'person', 'asked', 'moving')[number // 2 % 4]}{number}"
        events += [_event(world, session, n, rng) for n in range(messages)]
    return events


def _event(world: str, session: str, n: int, rng: random.Random) -> Event:
    id = f"{world}/{session}#{n}"
    if ("asked" in session or "moving" in session) and rng.random() < 0.35:
        commands = ("/stop", "/new", "/help") if "moving" in session else ("/stop", "/help")
        return Event(id, session, "owner", rng.choice(commands))
    author = f"guest{n}" if "crowd" in session else "owner"
    tools = (*TOOLS, "guarded") if "asked" in session or "moving" in session else TOOLS
    batches = ["+".join(rng.choices(tools, k=rng.choice((1, 1, 2, 3)))) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
    return Event(id, session, author, " ".join([id, *batches]))


def write_feed(path: Path, events: list[Event]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))


def events_in(path: Path) -> list[Event]:
    return [msgspec.convert(record, Event) for record in outside.records_in(path)]


def acks_in(path: Path) -> list[Ack]:
    return [msgspec.convert(record, Ack) for record in outside.records_in(path)]
