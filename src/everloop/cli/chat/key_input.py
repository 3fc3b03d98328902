"""What a terminal sends, as keys: prompt_toolkit's reading of it, with pastes that may be of any length."""

from collections.abc import Callable
from typing import TextIO

from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

PASTED = "\x1b[201~"


class KeyParser(Vt100Parser):
    """Each piece of a paste is looked at once. Theirs looks through all of the paste with each, which takes 2 s of a
    2 MB one and four times as much of twice as much, and nothing else is heard meanwhile."""

    def __init__(self, take: Callable[[KeyPress], None]) -> None:
        super().__init__(take)
        self._pieces: list[str] = []
        self._end = ""  # of them, in which the mark may have begun

    def feed(self, data: str) -> None:
        if not self._in_bracketed_paste:
            super().feed(data)  # which comes back here with what follows the mark of a paste
            return
        self._pieces.append(data)
        self._end = f"{self._end}{data}"
        if PASTED not in self._end:
            self._end = self._end[-len(PASTED) :]
            return
        whole, self._pieces, self._end = "".join(self._pieces), [], ""
        pasted, _, rest = whole.partition(PASTED)
        self._in_bracketed_paste = False
        self.feed_key_callback(KeyPress(Keys.BracketedPaste, pasted))
        self.feed(rest)


class KeyInput(Vt100Input):
    def __init__(self, stdin: TextIO) -> None:
        super().__init__(stdin)
        self.vt100_parser = KeyParser(lambda key: self._buffer.append(key))  # there is a new one with each reading
