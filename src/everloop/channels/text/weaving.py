"""Runs with marks around them: which are opened and closed between two runs, so that each pair lies inside another."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import structs

from .tree import STYLES, Run


def weave(
    runs: Sequence[Run], write: Callable[[Run], str], opening: Callable[[int], str], closing: Callable[[int], str]
) -> Iterator[tuple[str, str, str]]:
    """Of each run what is closed before it, what is opened before it, and itself; at last what is closed in the end."""
    if not any(run.style for run in runs):
        yield from (("", "", write(run)) for run in runs)
        return
    opened: list[int] = []  # styles, the innermost last
    lasts = _lasts(runs)
    for run, until in zip(runs, lasts, strict=True):
        keep = next((at for at, style in enumerate(opened) if not run.style & style), len(opened))
        closed = [opened.pop() for _ in range(len(opened) - keep)]
        fresh = sorted((style for style in STYLES if run.style & style and style not in opened),
                       key=lambda style: (-until[style], style))  # fmt: skip
        opened += fresh
        yield "".join(map(closing, closed)), "".join(map(opening, fresh)), write(run)
    yield "".join(map(closing, reversed(opened))), "", ""


def _lasts(runs: Sequence[Run]) -> list[dict[int, int]]:
    """For each run up to where each of its styles goes on: what lasts longest is opened first."""
    ends: dict[int, int] = {}
    found = []
    for at in range(len(runs) - 1, -1, -1):
        ends = {style: ends.get(style, at) for style in STYLES if runs[at].style & style}
        found.append(ends)
    return found[::-1]


def loosened(runs: Sequence[Run]) -> list[Run]:
    """The same with no look on the spaces at the border of one, and none on line ends: marks stand at words."""
    pieces = [piece for run in runs for piece in _pieces(run)]
    out = []
    for at, run in enumerate(pieces):
        if run.href or run.text.strip():
            out.append(run)
            continue
        around = (pieces[at - 1].style if at else 0) & (pieces[at + 1].style if at + 1 < len(pieces) else 0)
        out.append(structs.replace(run, style=0 if "\n" in run.text else run.style & around))
    return out


def _pieces(run: Run) -> Iterator[Run]:
    """A run as its words and the spaces around them, line by line."""
    if run.href or not run.style:
        yield run
        return
    for number, line in enumerate(run.text.split("\n")):
        if number:
            yield Run("\n")
        words = line.strip()
        if not words:
            yield from [structs.replace(run, text=line)] if line else []
            continue
        before, after = line[: len(line) - len(line.lstrip())], line[len(line.rstrip()) :]
        yield from (structs.replace(run, text=each) for each in (before, words, after) if each)
