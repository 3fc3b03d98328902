"""The set that recall is tuned and measured on: facts of an invented household and its workshop, and what is asked."""

from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from everloop.ports.memory import Fact, FactSource

HERE = Path(__file__).parent
KINDS = ("name", "code", "paraphrase", "date", "changed", "language")
NEGATIVE = "negative"


class Question(Struct, frozen=True):
    kind: str
    text: str
    right: frozenset[str]  # any of these facts will do
    held_out: bool


def facts() -> list[Fact]:
    """With those that are true no longer."""
    return [_fact(*row) for row in _rows("facts.txt")]


def questions() -> list[Question]:
    """Of each kind every second is held out."""
    seen = dict.fromkeys((*KINDS, NEGATIVE), 0)
    found = []
    for kind, text, *right in _rows("questions.txt"):
        found.append(Question(kind, text, frozenset(" ".join(right).split()), bool(seen[kind] % 2)))
        seen[kind] += 1
    return found


def _fact(id: str, day: str, text: str, replaced_by: str = "") -> Fact:
    at = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
    ended = {"until": at + 1, "replaced_by": replaced_by} if replaced_by else {}
    return Fact(id, text, FactSource("t1", 1, "owner", at), **ended)


def _rows(name: str) -> list[list[str]]:
    lines = (HERE / name).read_text().splitlines()
    return [[part.strip() for part in line.rstrip("|").split(" | ")] for line in lines if line and line[0] != "#"]
