"""How much work a text may make. A thread that compares cannot be stopped, and slows down everything beside it."""

from ..errors import ToolError

_MOST = 1_000_000_000  # letters that are compared, a second's work at most


class Effort:
    """`sentence` says what to do instead, to the model that asked for too much."""

    def __init__(self, sentence: str, most: int = _MOST) -> None:
        self._sentence = sentence
        self._left = most

    def spend(self, amount: int) -> None:
        """Raises ToolError when it has become too much."""
        self._left -= amount
        if self._left < 0:
            raise ToolError(self._sentence)
