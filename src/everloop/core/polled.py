"""Answers that a bot fetches by itself, as values: which are meant for it, what it was given, what became of them."""

from hashlib import sha256
from typing import Literal

from msgspec import Struct

from .mail import Outbound

PolledState = Literal["sent", "failed", "pending"]  # pending: it comes again


class PolledPlaces(Struct, frozen=True):
    """The sessions of one owner in a channel whose keys begin in one of these ways."""

    channel: str
    owner: str
    prefixes: tuple[str, ...]


class PolledAnswer(Struct, frozen=True, kw_only=True):
    """One that was handed out, and is nobody else's until its claim has run out.

    `events` are those of the letters that it answers, `attempts` the times that it was handed out, this one included,
    and `unsure` says that whoever had it before may have delivered it, or whoever asked may have been given it."""

    row: int
    key: str
    thread: str
    outbound: Outbound
    claim: str
    at: float  # when it was said
    trying: float  # seconds since then, or since a person has had it tried again
    attempts: int
    unsure: bool
    events: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return polled_id(self.row, self.key)


class PolledReceipt(Struct, frozen=True):
    """What became of an answer, as its bot says; `seconds` are those after which it comes again."""

    id: str
    state: PolledState = "sent"
    why: str = ""
    seconds: float = 0.0


def polled_id(row: int, key: str) -> str:
    """The same whenever it is handed out, and no other's, also when the number of a row has been given anew."""
    return f"{row}-{sha256(key.encode()).hexdigest()[:16]}"
