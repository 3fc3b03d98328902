"""Messages of somewhere else, as lines that our own import takes: every call has its result, no answer comes first.

What a provider or an agent has left open, or has cut off, is closed here.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from .values import ForeignFile

BEGINS = "(This conversation begins with an answer.)"
NO_RESULT = "Where this conversation comes from, no result of this call was kept."
LATEST = 253_402_300_000.0  # the year 9999


class ForeignTranscript:
    def __init__(self, begun: float = 0.0) -> None:
        self.messages: list[dict[str, Any]] = []
        self.files: dict[int, tuple[ForeignFile, ...]] = {}
        self.left_out = 0  # results that belong to no call
        self._at = begun
        self._open: dict[str, str] = {}

    def ask(self, text: str, at: float | None, files: tuple[ForeignFile, ...] = ()) -> None:
        if not text.strip() and not files:
            return
        self._close()
        if files:
            self.files[len(self.messages)] = files
        self._add({"role": "user", "content": text or " "}, at)

    def answer(
        self,
        text: str,
        at: float | None,
        *,
        calls: tuple[tuple[str, str, str], ...] = (),
        reasoning: str = "",
        files: tuple[ForeignFile, ...] = (),
    ) -> None:
        """`calls` are ids, names and arguments."""
        if not text.strip() and not calls and not files:
            return
        self._close()
        if not self.messages:
            self._add({"role": "user", "content": BEGINS}, at)
        shown = text if text.strip() or calls else f"[{', '.join(each.name for each in files)}]"
        message: dict[str, Any] = {"role": "assistant", "content": shown}
        if calls:
            message["tool_calls"] = [_call(*each) for each in calls]
            self._open = {id: name for id, name, _ in calls}
        if reasoning:
            message["reasoning_content"] = reasoning
        self._add(message, at)

    def result(self, call: str, text: str, at: float | None, *, failed: bool = False) -> None:
        if call not in self._open:
            self.left_out += 1
            return
        del self._open[call]
        outcome = {"outcome": "failed"} if failed else {}
        self._add({"role": "tool", "tool_call_id": call, "content": text or " ", **outcome}, at)

    @property
    def waits_for(self) -> str:
        """The call whose result would come next, "" if none would."""
        return next(iter(self._open), "")

    def end(self) -> None:
        self._close()

    def _close(self) -> None:
        for call in tuple(self._open):
            self.result(call, NO_RESULT, None)

    def _add(self, message: dict[str, Any], at: float | None) -> None:
        self._at = at if at is not None else self._at
        self.messages.append({**clean(message), "timestamp": written_time(self._at)})


def _call(id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "function": {"name": name or "unknown", "arguments": arguments}}


def clean(value: Any) -> Any:
    """Without what no store can keep: a zero character, half of a pair."""
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {key: clean(each) for key, each in value.items()}
    return [clean(each) for each in value] if isinstance(value, list) else value


def seconds(given: Any) -> float | None:
    """A time as others write it, in seconds or milliseconds since 1970 or as ISO 8601; None for what is none."""
    try:
        if isinstance(given, str):
            at = datetime.fromisoformat(given).timestamp()
        elif isinstance(given, int | float) and not isinstance(given, bool):
            at = given / 1000 if abs(given) > LATEST else float(given)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    if isinstance(given, int | float) and at > 32_503_680_000:  # the year 3000: it was in milliseconds
        at /= 1000
    return at if math.isfinite(at) and 0 <= at < LATEST else None


def written_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
