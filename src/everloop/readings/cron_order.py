"""What somebody wants of schedules, in one line: `add every 2h zone=Europe/Berlin message: drink water`, `remove ID`.

A person types it after /cron, and a model hands it to its tool: one small language for both.
"""

import re
from typing import Any

from msgspec import Struct

from ..errors import MailRefused
from .commands import split

ACTIONS = ("list", "add", "edit", "run", "enable", "disable", "remove", "log")
OPTIONS = {
    "name": "name",
    "zone": "zone",
    "session": "session",
    "misfire": "misfire",
    "overlap": "overlap",
    "retries": "retries",
    "max_runs": "max_runs",
    "until": "until",
    "poll": "polls",
    "condition": "condition",
}
HOW = (
    "say it as `add WHEN turn: TEXT`, with `message:` to be told the text itself and `command:` to have it run. "
    "WHEN is `at 08:00`, `at 2027-01-31 08:00`, `after 20m`, `every 2h` or `cron 0 8 * * 1-5`; behind it there may be "
    f"{', '.join(f'{name}=…' for name in OPTIONS)}"
)
HELP = (
    f"Orders: list; edit ID, with what is to be other than it was; run, enable, disable, remove or log ID; else {HOW}. "
    "A message costs nothing, a turn asks you with nobody there. A poll looks at an address each time until its "
    "condition (contains WORDS, lacks WORDS, changes) holds."
)
_KIND = re.compile(r"(?s)(.*?)\b(turn|message|command):\s*(.*)")
_OPTION = re.compile(r"\b(\w+)=(\"[^\"]*\"|\S+)")


class CronOrder(Struct, frozen=True):
    """`id` is empty for `list` and `add`; `fields` are those of a schedule."""

    action: str
    id: str = ""
    fields: dict[str, Any] = {}


def order_of(text: str) -> CronOrder:
    """Raises MailRefused."""
    word, rest = split(text)
    word = word or "list"
    if word not in ACTIONS:
        raise MailRefused(f"there is no {word[:40]!r}; there are {', '.join(ACTIONS)}")
    if word == "list":
        return CronOrder(word)
    id, said = ("", rest) if word == "add" else split(rest)
    if word not in ("add", "edit"):
        return CronOrder(word, id)
    return CronOrder(word, id, _fields(said.strip(), whole=word == "add"))


def _fields(said: str, *, whole: bool) -> dict[str, Any]:
    found = _KIND.fullmatch(said)
    if found is None and whole:
        raise MailRefused(HOW)
    before = found[1] if found else said
    given: dict[str, Any] = {"does": found[2], "text": found[3]} if found else {}
    for name, value in _OPTION.findall(before):
        if name not in OPTIONS:
            raise MailRefused(f"a schedule has no {name[:40]!r}; it has {', '.join(OPTIONS)}")
        plain = value.strip('"')
        given[OPTIONS[name]] = int(plain) if name in ("retries", "max_runs") and plain.isdecimal() else plain
    if when := " ".join(_OPTION.sub(" ", before).split()):
        given["when"] = when
    return given
