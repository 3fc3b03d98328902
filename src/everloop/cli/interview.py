"""Questions that have an answer already: Enter takes it. In a script the same are taken, and nobody is asked."""

import getpass
import sys
from collections.abc import Sequence

from ..readings.visible import visible
from .terminal import Terminal, show_prompt


class Left(Exception):
    """Whoever was asked has gone: Ctrl-D, or a pipe that ended."""


class Interview:
    def __init__(self, terminal: Terminal, *, attended: bool) -> None:
        self.attended = attended
        self._terminal = terminal

    def text(self, question: str, usual: str = "") -> str:
        """One line. Raises Left, KeyboardInterrupt."""
        if not self.attended:
            return usual
        show_prompt(visible(f"{question}{f' [{usual}]' if usual else ''}: "))
        line = sys.stdin.readline()
        if not line:
            show_prompt("\n")
            raise Left
        return line.strip() or usual

    def agree(self, question: str, usual: bool) -> bool:
        """Asked again until the answer is one. Raises Left, KeyboardInterrupt."""
        if not self.attended:
            return usual
        while True:
            answer = self.text(f"{question} [{'Y/n' if usual else 'y/N'}]").lower()
            if answer in ("", "y", "yes", "n", "no"):
                return usual if not answer else answer.startswith("y")
            self._terminal.tell("Say y or n, or press Enter.")

    def choose(self, title: str, options: Sequence[str], usual: int = 0) -> int:
        """The place of one of the options in the list. Raises Left, KeyboardInterrupt."""
        if not self.attended:
            return usual
        self._terminal.tell(title)
        for number, option in enumerate(options, 1):
            self._terminal.tell(f"  {number:>2}  {option}")
        while True:
            answer = self.text("Number", str(usual + 1))
            if answer.isdecimal() and 1 <= int(answer) <= len(options):
                return int(answer) - 1
            self._terminal.tell(f"Say a number from 1 to {len(options)}.")

    def unseen(self, question: str) -> str:
        """What is typed unseen; "" where nobody is asked. Raises Left, KeyboardInterrupt."""
        if not self.attended:
            return ""
        try:
            return getpass.getpass(visible(f"{question}: ")).strip()
        except EOFError as error:
            raise Left from error
