"""What of an answer's text is left out before a client sees it: what follows a stop word, and the Markdown fence that
models like to put around JSON, where JSON was asked for. What may be the beginning of either is held back."""

import re
from collections.abc import Sequence

from ..http.streaming import AnswerDelta

_LONE = re.compile(r"\s*```(?:json)?[ \t]*\r?\n(.*?)\s*```\s*", re.DOTALL | re.IGNORECASE)
_OPENING = re.compile(r"\s*```(?:json)?[ \t]*\r?\n", re.IGNORECASE)
_MAY_OPEN = re.compile(r"\s*(?:`{0,2}|```[a-z]{0,4}[ \t]*\r?)", re.IGNORECASE)
_MAY_CLOSE = re.compile(r"\s*`{0,3}\s*\Z")


def trimmed(text: str, json: bool, stops: Sequence[str]) -> str:
    """A whole answer. A fence is taken off only if nothing stands beside it."""
    if json and (lone := _LONE.fullmatch(text)):
        text = lone[1]
    return text[: min((at for stop in stops if (at := text.find(stop)) >= 0), default=len(text))]


class StreamTrimmer:
    """The same for an answer that comes in pieces."""

    def __init__(self, json: bool, stops: Sequence[str]) -> None:
        self._json = json
        self._stops = stops
        self._call = 0
        self._words = _CallText(json, stops)

    def pieces(self, piece: AnswerDelta) -> list[AnswerDelta]:
        """What can be shown, now that this has come."""
        if not self._json and not self._stops:
            return [piece]
        before = []
        if piece.call != self._call:
            before = self.rest()
            self._call, self._words = piece.call, _CallText(self._json, self._stops)
        text = self._words.more(piece.text)
        return [*before, AnswerDelta(piece.call, text, piece.reasoning)] if text or piece.reasoning else before

    def rest(self) -> list[AnswerDelta]:
        """What was held back, now that nothing more comes."""
        text = self._words.rest()
        return [AnswerDelta(self._call, text)] if text else []


class _CallText:
    """The text of one model call."""

    def __init__(self, json: bool, stops: Sequence[str]) -> None:
        self._opens = json  # nothing has been said yet, so that a fence may come
        self._fenced = False
        self._fence = ""  # what was held back, since it may belong to a fence
        self._stops = stops
        self._stop = ""  # what was held back, since it may be the beginning of a stop word
        self._over = False

    def more(self, text: str) -> str:
        return self._until_stop(self._unfenced(text))

    def rest(self) -> str:
        held, self._fence = self._fence, ""
        if self._fenced and held.strip() == "```":
            held = ""
        told = self._until_stop(held) + self._stop
        self._stop = ""
        return told

    def _unfenced(self, text: str) -> str:
        text, self._fence = self._fence + text, ""
        if self._opens:
            if _MAY_OPEN.fullmatch(text):
                self._fence = text
                return ""
            self._opens = False
            if opening := _OPENING.match(text):
                self._fenced, text = True, text[opening.end() :]
        if self._fenced and (closing := _MAY_CLOSE.search(text)):
            self._fence, text = text[closing.start() :], text[: closing.start()]
        return text

    def _until_stop(self, text: str) -> str:
        if self._over or not self._stops:
            return "" if self._over else text
        text = self._stop + text
        told = trimmed(text, False, self._stops)
        if len(told) < len(text):
            self._over, self._stop = True, ""
            return told
        held = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._stop = text[len(text) - held :]
        return text[: len(text) - held]


def _overlap(text: str, stop: str) -> int:
    """With how many letters of a stop word the text ends."""
    return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)
