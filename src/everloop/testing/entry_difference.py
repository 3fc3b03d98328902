"""Where two entries of a log differ, told in a few lines."""

from typing import Any

import msgspec
from msgspec import Struct

from ..core.log import Entry, GaveUp, encode

# What is another in each run and means nothing: the numbers of letters, the names of processes, times, digests and
# which folder it was.
PASSING = {
    "user_said": ("mail",),
    "resumed": ("after",),
    "asked": ("until", "digest", "definition", "grounds"),
}
_BEFORE, _LENGTH = 30, 160  # characters of a long value that are shown, from before the first that differs


class EntryDifference(Struct, frozen=True):
    """`recorded` stands at `seq`; `now` is what is done there instead: an entry, or a sentence on what is done."""

    seq: int
    recorded: Entry | None
    now: Entry | str

    def __str__(self) -> str:
        then = plain(self.recorded) if self.recorded is not None else {}
        now = plain(self.now) if not isinstance(self.now, str) else {}
        if then and then.get("kind") == now.get("kind"):
            names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
            lines = [line for name in names for line in _compared(name, then.get(name), now.get(name))]
            return "\n".join((f"different at {self.seq}, in {then['kind']}:", *lines))
        recorded = _described(then) if then else "nothing: the turn was over"
        present = self.now if isinstance(self.now, str) else _described(now)
        return f"different at {self.seq}:\n- {recorded}\n+ {present}"


def plain(entry: Entry, *passing: str) -> dict[str, Any]:
    """An entry as it is stored, without what may differ from run to run."""
    stored: dict[str, Any] = msgspec.json.decode(encode(entry))
    for name in (*PASSING.get(stored["kind"], ()), *passing):
        stored.pop(name, None)
    if isinstance(entry, GaveUp) and stored.pop("error", ""):
        stored["text"] = entry.text.replace(entry.error, "…")  # it is made of the conversation's name
    return stored


def _described(entry: dict[str, Any]) -> str:
    fields = (f"{name}={_clipped(_text(value), 0)}" for name, value in entry.items() if name != "kind")
    return " ".join((entry["kind"], *fields))


def _compared(name: str, then: Any, now: Any) -> tuple[str, str]:
    old, new = _text(then), _text(now)
    pairs = enumerate(zip(old, new, strict=False))
    first = next((n for n, (one, other) in pairs if one != other), min(len(old), len(new)))
    start = max(0, first - _BEFORE)
    return f"- {name}: {_clipped(old, start)}", f"+ {name}: {_clipped(new, start)}"


def _text(value: Any) -> str:
    return "nothing" if value is None else msgspec.json.encode(value).decode()


def _clipped(text: str, start: int) -> str:
    end = start + _LENGTH
    return ("…" if start else "") + text[start:end] + ("…" if len(text) > end else "")
