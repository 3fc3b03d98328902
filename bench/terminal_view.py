"""What it costs to show an answer of 2,000 pieces as markdown at a terminal, beside writing it as it comes.

python bench/terminal_view.py   microseconds of CPU for a piece, the best of several runs, and ratios
"""

import itertools
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from everloop.cli.chat_view.markdown import StreamedMarkdown
from everloop.cli.chat_view.theme import theme_named
from everloop.cli.terminal import Terminal
from everloop.ports.events import AnswerPiece

RUNS = 7
PIECES = 2_000
LETTERS = 5  # of a piece, about what a token has
ROWS = 20
DARK = theme_named("dark", colour=True)
PROSE = """\
Here is **what I found**, with `code`, *emphasis* and a [link](https://example.com/a_b?c=1&d=2): some words, and then
a few more of them, so that it looks like what a model writes when it is asked for something. They go on for a while.

"""
CODE = "```python\n{}```\n\n".format(
    'def answer(of: int) -> str:\n    """What it is."""\n    return f"{of} is it"\n\n' * 25
)
ROW = "| a name | § | what is **said** of it, in § more words |\n"  # § is another number each time
TABLE = "| name | value | more |\n|------|------:|------|\n{}\n"
ANSWERS = {
    "prose": PROSE,
    "code": CODE,
    "table": TABLE.format(ROW * 30),
    "list": "- an item of *§* words\n  1. one below it, with `code §`\n  2. and another\n",
    "words alone": "word " * 20 + "\n",
    "all of these": f"## A heading\n\n{PROSE}{CODE[:200]}\n```\n\n{TABLE.format(ROW * 4)}- one\n- two\n\n> a quote\n\n",
}


NUMBERS = itertools.count()


class Nowhere:
    """A terminal that shows nothing, and takes what is written to it as one does."""

    def __init__(self) -> None:
        self._file = open(os.devnull, "w")  # noqa: SIM115 as long as the process

    def isatty(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def pieces_of(text: str) -> list[str]:
    """Never the same again: what has been shown before is remembered."""
    whole = re.sub("§", lambda _: str(next(NUMBERS)), text * (PIECES * LETTERS // len(text) + 1))
    return [whole[at : at + LETTERS] for at in range(0, PIECES * LETTERS, LETTERS)]


def as_it_comes(text: str) -> None:
    nowhere: Any = Nowhere()
    terminal = Terminal(nowhere, nowhere)
    for at, piece in enumerate(pieces_of(text)):
        terminal.follow(AnswerPiece("t", 1, at, text=piece))


def as_markdown(pieces: list[str], each: int) -> None:
    """With what still grows drawn after every so many pieces."""
    nowhere: Any = Nowhere()
    markdown = StreamedMarkdown(DARK, lambda: 100)
    for at, piece in enumerate(pieces, 1):
        if said := markdown.feed(piece):
            nowhere.write(said)
            nowhere.flush()
        if at % each == 0:
            nowhere.write(markdown.live(ROWS))
            nowhere.flush()
    nowhere.write(markdown.close())


def best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        before = time.process_time()
        work()
        times.append(time.process_time() - before)
    return 1e6 * min(times) / PIECES


def importing(module: str) -> float:
    """Milliseconds that it takes to load this after the modules of a chat."""
    began = "import time, everloop.cli.terminal as _; began = time.process_time()"
    program = f"{began}; import {module}; print(time.process_time() - began)"
    times = [float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(RUNS)]
    return 1_000 * min(times)


def main() -> None:
    print(f"µs of CPU for a piece of {LETTERS} letters, of {PIECES:,}")
    print(f"  {'':14} {'as it comes':>12} {'finished':>10} {'drawn /50':>10} {'drawn /10':>10}   ratios")
    for name, text in ANSWERS.items():
        plain = best(lambda text=text: as_it_comes(text))
        ours = [best(lambda text=text, n=n: as_markdown(pieces_of(text), n)) for n in (PIECES + 1, 50, 10)]
        ratios = " ".join(f"{each / plain:5.2f}" for each in ours)
        print(f"  {name:14} {plain:12.1f} {ours[0]:10.1f} {ours[1]:10.1f} {ours[2]:10.1f}   {ratios}")
    print("ms of CPU to load")
    for module in ("everloop.cli.chat_view.markdown", "markdown_it", "pygments.lexers, pygments.lexers.python"):
        print(f"  {module:42} {importing(module):6.1f}")
    print("a block of so many lines, ms: twice as long should take twice as long")
    for name, line, before in (
        ("fence", "x = 1\n", "```python\n"),
        ("list", "- item\n", ""),
        ("table", ROW, ROW + "|-|-|-|\n"),
    ):
        took = [
            best(lambda n=n, line=line, before=before: as_markdown([before, *[line] * n], 50)) for n in (5_000, 10_000)
        ]
        print(f"  {name:8} 5,000: {took[0] * PIECES / 1e3:8.1f}   10,000: {took[1] * PIECES / 1e3:8.1f}")


if __name__ == "__main__":
    main()
