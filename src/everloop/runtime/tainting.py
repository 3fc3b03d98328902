"""Calls that may write are known before they begin; what they have written is judged before they are over.

A page can have the model write a file with a file tool, a command, a link, or a command that goes on in the background.
So nobody asks how: from the moment when a call begins that strangers' words may have led to, until it is over, the
folder that it works in is tainted.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

from ..core.log import CallReturned
from ..core.thread import Thread
from ..core.tool import Effect, ToolSpec
from ..ports import PromptFiles, Taints
from ..ports.rows import Taint, Untaint
from .book import Book

MANY = 500  # taints, after which those that are over are counted


class Tainting:
    """Begins and ends the taints of a workspace with the commits of calls. A look before one begins: what has changed
    until then was a person's doing. A look when it is over, before that is committed: what has changed is not."""

    def __init__(self, files: PromptFiles, place_of: Callable[[str], str]) -> None:
        """`files` are those that stand in prompts, `place_of` names the workspace of whoever has asked."""
        self._files = files
        self._place_of = place_of
        self._begun = 0

    async def begin(self, book: Book, places: Sequence[int], specs: Sequence[ToolSpec]) -> None:
        thread = book.thread
        outside = {place: taint_of(spec, thread.outside) for place, spec in zip(places, specs, strict=True)}
        for place, theirs in outside.items():
            if theirs is not None:
                await self._begin(book, key_of(thread, place), theirs)

    async def begin_undo(self, book: Book, key: str) -> None:
        if book.thread.outside:
            await self._begin(book, key, True)

    async def end(self, book: Book, results: Sequence[CallReturned], began: float = 0.0) -> None:
        """`began` is when they began, if that was here."""
        thread = book.thread
        for result in results:
            if result.place not in thread.started:
                continue
            key = key_of(thread, result.place)
            if result.origin and not thread.outside:
                await self._find_out(book, key, began, _command_after(result))
            else:
                await self.end_one(book, key, _command_after(result))

    async def _find_out(self, book: Book, key: str, began: float, background: str) -> None:
        """A call has worked with strangers' words where none had been read before: it has tainted its folder."""
        at, place = time.time(), self._place_of(book.thread.turn.principal)
        await self._look(book, place, closely=True)
        book.taint(Taint(key, place, began or at, None if background else at, command=background))
        if background:
            self._files.expect_more(place)

    async def end_one(self, book: Book, key: str, background: str = "") -> None:
        if not book.is_tainted(key):
            return
        at, place = time.time(), self._place_of(book.thread.turn.principal)
        await self._look(book, place, closely=True)
        book.untaint(Untaint(key, at, background))
        if background:
            self._files.expect_more(place)

    async def _begin(self, book: Book, key: str, outside: bool) -> None:
        place = self._place_of(book.thread.turn.principal)
        await self._look(book, place)
        self._begun += 1
        if self._begun % MANY == 0:
            await book.patiently(partial(self._files.merge, place))
        book.taint(Taint(key, place, time.time(), outside=outside))

    async def _look(self, book: Book, place: str, *, closely: bool = False) -> None:
        await book.patiently(partial(self._files.look, place, closely=closely))


class CommandTaints:
    """Taints of commands that no conversation has led to, as those of schedules: whose script they run nobody knows."""

    def __init__(self, store: Taints, files: PromptFiles, place_of: Callable[[str], str]) -> None:
        self._store = store
        self._files = files
        self._place_of = place_of

    async def begin(self, key: str, whose: str, *, outside: bool) -> None:
        """Also of one that was begun before a crash. Raises StoreError."""
        place = self._place_of(whose)
        await self._files.look(place)
        await self._store.begin_taint(whose, Taint(key, place, time.time(), outside=outside))

    async def end(self, key: str, whose: str) -> None:
        """It runs no more: what it has written is judged first. Raises StoreError."""
        await self._files.look(self._place_of(whose), closely=True)
        await self._store.end_taint(key, time.time())


def taint_of(spec: ToolSpec, outside: bool) -> bool | None:
    """Whether a call of this tool taints its folder with strangers' doing; None if it does not taint it at all.

    Where no stranger has spoken, what a tool tells of its changes is the model's own doing, hence the person's. Of any
    other tool nobody knows what it does to files, or whose script it runs."""
    if spec.effect is Effect.READ:
        return None
    if outside or spec.outside:
        return True
    return None if spec.undoable else False


def _command_after(result: CallReturned) -> str:
    """The command that may go on after a call: also one that was broken off, or of which nobody knows anything."""
    broken_off = result.outcome in ("cancelled", "unknown", "abandoned")
    return f"{result.answer}-{result.place}" if broken_off else result.background


def key_of(thread: Thread, place: int) -> str:
    """Of a call, the same over all attempts."""
    return f"{thread.id}:{thread.answer}:{place}"
