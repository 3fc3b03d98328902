"""Splitting: blocks into messages, and a block that is too long for one into several.

A message ends between two blocks if it can, else between two lines, sentences or words, and only at last within one,
and then not within a character as people see it. A link is not cut, unless it is longer than a message.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence

from msgspec import structs

from ...ports.channel import Rendered, Unit
from ...readings.characters import whole
from .dialect import TextDialect, Weight, with_address
from .tables import row_by_row
from .tree import Run, TextBlock, merged, sliced

_SENTENCE = re.compile(r"[.!?…:;][\"')\]»”’]*(?=\s)|[。！？]")
ENOUGH = 0.95  # of a message is full enough where something has to be cut within
_PIECE = 4_096  # characters of a run that are looked at together


class Cutter:
    """Makes messages of a dialect, none longer than the limit."""

    def __init__(self, dialect: TextDialect, limit: int, unit: Unit) -> None:
        self._dialect = dialect
        self._unit = unit
        self._limit = limit
        self._bounds = dialect.bounds(limit)

    def fits(self, rendered: Rendered) -> bool:
        return self._within(self._dialect.weigh(rendered, self._unit))

    def messages(self, blocks: Sequence[TextBlock]) -> Iterator[list[TextBlock]]:
        now: list[TextBlock] = []
        nothing = total = last = (0,) * len(self._bounds)
        for block, weight in self._pieces(blocks):
            if now and (block.continued or not self._within(_sum(total, weight))):
                alone = len(now) > 1 and now[-1].kind == "heading" and self._within(_sum(last, weight))
                yield now[:-1] if alone else now
                now, total = (now[-1:], last) if alone else ([], nothing)  # a heading stays with what follows
            now.append(block)
            total, last = _sum(total, weight), weight
        if now:
            yield now

    def _pieces(self, blocks: Sequence[TextBlock]) -> Iterator[tuple[TextBlock, Weight]]:
        """The blocks, each short enough for one message, and how much each adds to one."""
        for block in blocks:
            weight = self._weigh(block)
            if self._within(weight):
                yield block, _sum(weight, self._dialect.between)
            elif block.kind == "table":
                yield from self._pieces(row_by_row(block))
            else:
                for piece in self._cut(block):
                    yield piece, _sum(self._weigh(piece), self._dialect.between)

    def _cut(self, block: TextBlock) -> Iterator[TextBlock]:
        rest = deque(piece for run in block.runs for piece in _in_pieces(run))
        shape = structs.replace(block, runs=())
        room = self._limit + 1  # characters that are looked at: a character is one unit or more
        while rest:
            window = _window(rest, room)
            taken = self._taken(shape, window)
            if rest and room <= self._limit and taken == sum(len(run.text) for run in window):
                rest.extendleft(reversed(window))
                room = min(self._limit + 1, 4 * room)
            elif not taken and window[0].href:  # longer than a message: told as text
                rest.extendleft([Run(with_address(window[0]), window[0].style), *window[1:]][::-1])
            elif not taken:  # what it stands inside of leaves no room
                rest.extendleft([Run(with_address(run)) for run in reversed(window)])
                shape = TextBlock(continued=shape.continued)
            else:
                head, tail = _halves(window, taken, code=shape.kind == "code")
                rest.extendleft(reversed(tail))
                if head:
                    yield structs.replace(shape, runs=merged(head))
                    shape = structs.replace(shape, opened=0, continued=True)
                    room = min(self._limit + 1, 2 * taken + 64)

    def _taken(self, shape: TextBlock, window: Sequence[Run]) -> int:
        """How many characters of it go into one message; 0 if none can."""
        text = "".join(run.text for run in window)
        most = self._most(shape, window, len(text))
        if most == len(text):
            return most
        cut = _before_link(window, _nice(text, most, code=shape.kind == "code"))
        return cut if self._filled(shape, window, cut) <= 1 else _before_link(window, most)

    def _most(self, shape: TextBlock, window: Sequence[Run], whole: int) -> int:
        """How many characters fit, or a few less: guessed by how much too long the last try was."""
        least, most, trying = 0, whole, whole
        while least < most:
            filled = self._filled(shape, window, trying)
            if filled <= 1:
                least = trying
                if filled > ENOUGH:
                    break
                trying = (least + most + 1) // 2
            else:
                most = trying - 1
                trying = max(least + 1, min(most, int(trying / filled)))
        return least

    def _filled(self, shape: TextBlock, window: Sequence[Run], end: int) -> float:
        """How full a message is of so many characters; more than 1 is too full."""
        weight = self._weigh(structs.replace(shape, runs=merged(sliced(window, 0, end))))
        return max(ours / bound for ours, bound in zip(weight, self._bounds, strict=True))

    def _weigh(self, block: TextBlock) -> Weight:
        return self._dialect.weigh(self._dialect.render([block]), self._unit)

    def _within(self, weight: Weight) -> bool:
        return all(ours <= bound for ours, bound in zip(weight, self._bounds, strict=True))


def _sum(first: Weight, second: Weight) -> Weight:
    return tuple(one + other for one, other in zip(first, second, strict=True))


def _in_pieces(run: Run) -> Iterator[Run]:
    if run.href or len(run.text) <= _PIECE:
        yield run
        return
    for at in range(0, len(run.text), _PIECE):
        yield structs.replace(run, text=run.text[at : at + _PIECE])


def _window(rest: deque[Run], room: int) -> list[Run]:
    """Takes so many characters from the left, and the whole of a link."""
    window: list[Run] = []
    while rest and room > 0:
        run = rest.popleft()
        if not run.href and len(run.text) > room:
            rest.appendleft(structs.replace(run, text=run.text[room:]))
            run = structs.replace(run, text=run.text[:room])
        window.append(run)
        room -= len(run.text)
    return window


def _halves(window: Sequence[Run], cut: int, code: bool) -> tuple[tuple[Run, ...], list[Run]]:
    """What comes before the cut and what after it, without the space that the cut takes the place of."""
    whole = sum(len(run.text) for run in window)
    head, tail = [*sliced(window, 0, cut)], [*sliced(window, cut, whole)]
    if not tail:
        return tuple(head), tail
    if code:
        tail[0] = structs.replace(tail[0], text=tail[0].text.removeprefix("\n"))
    else:
        while head and not head[-1].href and not head[-1].text.strip():
            head.pop()
        if head and not head[-1].href:
            head[-1] = structs.replace(head[-1], text=head[-1].text.rstrip())
        if not tail[0].href:
            tail[0] = structs.replace(tail[0], text=tail[0].text.lstrip())
    return tuple(head), [run for run in tail if run.text]


def _nice(text: str, most: int, code: bool) -> int:
    """Where to cut, at `most` or before."""
    if (line := text.rfind("\n", 1 if code else most // 2, most + 1)) > 0:
        return line
    if not code:
        ends = [found.end() for found in _SENTENCE.finditer(text, most // 2, most + 1) if found.end() <= most]
        if ends:
            return ends[-1]
        space = max(text.rfind(each, most // 2, most + 1) for each in " \t\u00a0\u3000")
        if space > 0:
            return space
    return whole(text, most)


def _before_link(window: Sequence[Run], cut: int) -> int:
    """The cut, or the beginning of the link that it would go through."""
    at = 0
    for run in window:
        after = at + len(run.text)
        if at < cut < after:
            return at if run.href else cut
        at = after
    return cut
