"""The window's title, and a sign to whoever looks elsewhere that something is over or asked."""

import re
from collections.abc import Callable
from typing import Literal

from ...readings.visible import visible

PUSH, POP = "\x1b[22;2t", "\x1b[23;2t"  # the title as it was, kept by the terminal
LONGEST = 80
Sign = Literal["bell", "osc9", "osc777", "off"]


def plain(text: str) -> str:
    """In one line, with nothing that could end the code that it stands in."""
    return re.sub(r"[\s;]+", " ", visible(text)).strip()[:LONGEST]


class Attention:
    def __init__(self, steer: Callable[[str], None], sign: Sign, title: bool) -> None:
        self._steer = steer
        self._sign = sign
        self._title = title

    def open(self) -> None:
        if self._title:
            self._steer(PUSH)

    def close(self) -> None:
        if self._title:
            self._steer(POP)

    def entitle(self, text: str) -> None:
        if self._title:
            self._steer(f"\x1b]2;{plain(text)}\x07")

    def call(self, text: str) -> None:
        match self._sign:
            case "bell":
                self._steer("\x07")
            case "osc9":
                self._steer(f"\x1b]9;{plain(text)}\x07")
            case "osc777":
                self._steer(f"\x1b]777;notify;everloop;{plain(text)}\x07")
