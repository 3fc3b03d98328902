"""How many tokens a message is, before the host has counted them.

The estimate is on the high side: three characters a token and a little for the frame. What the host reports after each
call shows how far off it was (a Chinese text has more tokens, a program fewer), and corrects it for that model.
"""

from .message import Message, Text
from .prompt import Usage

IMAGE = 1600  # tokens; about the most that hosts count for one
_ENOUGH = 300  # tokens that must have been estimated before a correction means anything
_LEAST, MOST = 0.4, 3.0


class Gauge:
    __slots__ = ("_estimated", "_factors", "_known", "_model")

    def __init__(self) -> None:
        self._factors: dict[str, float] = {}
        self._model = ""
        self._known = 0  # tokens that the host had read for its last answer
        self._estimated = 0  # by us without correction, for what has been said since, that answer included

    def estimate(self, message: Message) -> int:
        size = rough(message)
        self._estimated += size
        return int(size * self._factors.get(self._model, 1.0))

    @property
    def factor(self) -> float:
        """By how much a text has more tokens than the rough estimate says, for the model that answers."""
        return self._factors.get(self._model, 1.0)

    def correct(self, model: str, usage: Usage) -> None:
        """Learn from what the host has read. To be called before its answer is estimated."""
        grown = usage.input - self._known
        if self._known and model == self._model and self._estimated >= _ENOUGH and grown > 0:
            seen = min(MOST, max(_LEAST, grown / self._estimated))
            self._factors[model] = (self._factors.get(model, seen) + seen) / 2
        self._model, self._known, self._estimated = model, usage.input, 0

    def start_again(self) -> None:
        """What was said before is gone, so that the next count cannot be compared with the last."""
        self._known = self._estimated = 0


def rough(message: Message) -> int:
    """By the length of its text, in which media are shown by their names."""
    size = max(0, len(message.parts) - 1)
    for part in message.parts:
        size += len(part.text) if isinstance(part, Text) else len(part.name or part.mime) + 2 + 3 * IMAGE
    for call in message.calls:
        size += len(call.name) + len(call.args)
    return size // 3 + 5
