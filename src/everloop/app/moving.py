"""Moving in: what another agent or a service has kept for somebody is taken over into a home, each thing once.

The same walk looks and takes: a LookingHand (`moving_look`) touches nothing, so that a dry run tells what would be;
a TakingHand (`moving_hand`) does it. What was taken over stands in the ImportLedger.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from shlex import quote
from typing import Any, Protocol, TypeVar

from msgspec import Struct, structs

from ..errors import EverloopError, MailRefused
from ..moving.transcript import clean
from ..moving.values import (
    SET_ASIDE,
    ForeignConversation,
    ForeignJob,
    ForeignSkill,
    ForeignSource,
    ForeignText,
    Remark,
    as_text,
    digest,
)
from ..ports.heartbeat import HEARTBEAT_FILE
from ..readings.heartbeat import instructions_in
from ..settings import nanobot, openclaw
from ..settings.editor import SettingsEditor
from ..settings.foreign import Translation
from .moving_ledger import ImportLedger
from .moving_settings import ForeignSetting, settings_of

MEMORY, HISTORY = "MEMORY.md", "HISTORY.md"
PAUSED = (
    "set aside in {place} of the workspace, so that two do not do it: end the other agent, then move it up into the "
    "workspace, where it is looked at by itself (docs/heartbeat.md)"
)
GROWN = "“{title}” has other messages there than when it was taken over: --grown takes it once more, beside the first"
KINDS = ("nanobot", "openclaw", "chatgpt", "claude")


class MovingOptions(Struct, frozen=True):
    """`enable`: jobs run at once; `grown`: what has grown there since comes as another conversation."""

    enable: bool = False
    grown: bool = False


USUAL = MovingOptions()
Found = TypeVar("Found")


class TakenOver(Struct, frozen=True):
    """One thing: what it is, how it is called, and what is to be known about it."""

    what: str
    name: str
    note: str = ""


class MovingReport(Struct):
    """What is taken over, how much of each kind was there already, and what is not, with what to do."""

    taken: list[TakenOver]
    there: dict[str, int]
    left: list[str]
    messages: int = 0

    def take(self, what: str, name: str, note: str) -> None:
        self.taken.append(TakenOver(what, as_text(name), as_text(note)))

    def leave(self, *sentences: str) -> None:
        self.left += map(as_text, sentences)


class Hand(Protocol):
    """Takes things over. Each returns "", or a sentence why it was left. Raises EverloopError."""

    @property
    def writes(self) -> bool:
        """Whether it does so, or only looks."""
        ...

    async def conversation(self, found: ForeignConversation, thread: str) -> str: ...

    async def memory(self, name: str, lines: str) -> str: ...

    async def text(self, found: ForeignText) -> str: ...

    async def skill(self, found: ForeignSkill) -> str: ...

    async def job(self, found: ForeignJob) -> str: ...

    async def settings(self, found: Sequence[ForeignSetting]) -> dict[str, str]:
        """Why some of them were left, by their keys."""
        ...

    async def end(self, counts: Mapping[str, int]) -> None:
        """Write down how much of each kind was taken over."""


class Mover:
    def __init__(
        self,
        source: ForeignSource,
        ledger: ImportLedger,
        hand: Hand,
        progress: Callable[[str], None],
        options: MovingOptions,
    ) -> None:
        self._source = source
        self._ledger = ledger
        self._hand = hand
        self._progress = progress
        self._options = options
        self._note = ledger.note if hand.writes else ledger.expect
        self.report = MovingReport([], {}, [])

    async def move(self) -> MovingReport:
        """Settings first, for the other things may need them. Raises EverloopError."""
        await self._move_settings()
        for name, read in ((MEMORY, self._source.memory), (HISTORY, self._source.history)):
            await self._move_memory(name, await asyncio.to_thread(read))
        async for found in _aside(self._source.texts()):
            if not self._remarked(found):
                assert isinstance(found, ForeignText)
                await self._move_text(found)
        async for skill in _aside(self._source.skills()):
            place = f"{SET_ASIDE.format(kind=self._source.kind)}/{skill.name}"
            note = f"set aside in {place} of the workspace; look at it: everloop skills install"
            await self._one("skill", skill.name, skill.name, self._hand.skill(skill), note)
        async for job in _aside(self._source.jobs()):
            if not self._remarked(job):
                assert isinstance(job, ForeignJob)
                await self._one("job", job.id, job.name, self._hand.job(job), self._when(job))
        async for each in _aside(self._source.conversations()):
            if not self._remarked(each):
                assert isinstance(each, ForeignConversation)
                await self._move_conversation(each)
        if self.report.taken:
            await self._hand.end(Counter(each.what for each in self.report.taken))
        return self.report

    async def _move_text(self, found: ForeignText) -> None:
        """What a HEARTBEAT.md asks for would be done at once, there and here, and paid: it waits as jobs do."""
        if found.name != HEARTBEAT_FILE or self._options.enable or not await asyncio.to_thread(_asks, found):
            await self._one("file", found.name, found.name, self._hand.text(found))
            return
        aside = structs.replace(found, name=f"imported/{self._source.kind}/{HEARTBEAT_FILE}")
        await self._one("file", found.name, found.name, self._hand.text(aside), PAUSED.format(place=aside.name))

    def _when(self, job: ForeignJob) -> str:
        """With how it is switched on where it is not."""
        if self._options.enable and job.enabled:
            return job.when
        why = "so that two do not do it: end it there, then" if job.enabled else "as it is there; switch it on with"
        return f"{job.when}; paused, {why} everloop cron enable {quote(job.name)}"

    def _remarked(self, found: object) -> bool:
        if isinstance(found, Remark):
            self.report.left.insert(0 if found.all else len(self.report.left), as_text(found.text))
        return isinstance(found, Remark)

    async def _move_conversation(self, found: ForeignConversation) -> None:
        title = found.title or _beginning(found)
        count = f"{len(found.messages)} messages" + (f", in {found.session}" if found.session else "")
        id, size = found.id, (self._source.kind, "size", found.id, str(len(found.messages)))
        if self._ledger.has(self._source.kind, "conversation", id) and not self._ledger.has(*size):
            if not self._options.grown:
                self.report.leave(GROWN.format(title=title[:60]))
                return
            id = f"{id}#{len(found.messages)}"
        self._note(*size)
        thread = digest(self._source.kind, id)
        if await self._one("conversation", id, title, self._hand.conversation(found, thread), count):
            self.report.messages += len(found.messages)
            self.report.leave(*(f"“{title[:60]}”: {each}" for each in found.remarks))
        if (done := sum(self.report.there.values()) + len(self.report.taken)) % 100 == 0:
            self._progress(f"{done} …")

    async def _move_memory(self, name: str, text: str) -> None:
        """By lines, so that what was removed here since does not come back."""
        lines = clean(text).split("\n")
        fresh = [line for line in lines if not (line.strip() and self._ledger.has(self._source.kind, name, line))]
        count = sum(1 for line in fresh if line.strip())
        if not count:
            if any(line.strip() for line in lines):
                self.report.there[name] = sum(1 for line in lines if line.strip())
            return
        if why := await self._hand.memory(name, "\n".join(fresh)):
            self.report.leave(why)
            return
        self.report.take("memory", name, f"{count} lines")
        for line in fresh:
            if line.strip():
                self._note(self._source.kind, name, line)

    async def _move_settings(self) -> None:
        values = await asyncio.to_thread(self._source.settings)
        translate: Mapping[str, Callable[[Mapping[str, Any]], Translation]] = {
            "nanobot": nanobot.translated,
            "openclaw": openclaw.translated,
        }
        if not values or self._source.kind not in translate:
            return
        ours = translate[self._source.kind](values)
        self.report.leave(*ours.told)
        every = list(settings_of(ours.values))
        self.report.leave(*(each for each in every if isinstance(each, str)))
        found = [each for each in every if isinstance(each, ForeignSetting)]
        fresh = [each for each in found if not self._ledger.has(self._source.kind, "setting", each.key)]
        left = await self._hand.settings(fresh)
        for each in found:
            await self._one("setting", each.key, each.key, _told(left.get(each.key, "")), each.note)

    async def _one(self, what: str, id: str, name: str, doing: Any, note: str = "") -> bool:
        """Whether it was taken over now."""
        if self._ledger.has(self._source.kind, what, id):
            doing.close()
            self.report.there[what] = self.report.there.get(what, 0) + 1
            return False
        try:
            why = await doing
        except MailRefused as error:
            why = str(error)
        if why:
            self.report.leave(f"{what} {name[:80]}: {why}")
            return False
        self._note(self._source.kind, what, id)
        self.report.take(what, name, note)
        return True


def _asks(found: ForeignText) -> bool:
    try:
        return instructions_in(found.read().decode(errors="replace")).asks
    except OSError:  # whoever copies it says so
        return False


async def _aside(found: Iterator[Found]) -> AsyncIterator[Found]:
    """Read in a thread, one after the other: an export may be large, and others speak with the house meanwhile."""
    while (each := await asyncio.to_thread(next, found, None)) is not None:
        yield each


async def _told(why: str) -> str:
    return why


def _beginning(found: ForeignConversation) -> str:
    said = next((str(each["content"]) for each in found.messages if each["role"] == "user"), "")
    return " ".join(said.split())[:60]


def source_of(kind: str, path: Path) -> ForeignSource:
    """Raises EverloopError."""
    match kind:
        case "nanobot":
            from ..moving.nanobot import NanobotHome

            return NanobotHome(path)
        case "openclaw":
            from ..moving.openclaw import OpenClawHome

            return OpenClawHome(path)
        case "chatgpt":
            from ..moving.chatgpt import ChatGptExport

            return ChatGptExport(path)
        case "claude":
            from ..moving.claude import ClaudeExport

            return ClaudeExport(path)
    raise EverloopError(f"nothing is known of {kind[:50]!r}; there is {', '.join(KINDS)}")


def source_for(home: Path, kind: str, path: Path) -> ForeignSource:
    """A source that is not the home that would be moved into. Raises EverloopError."""
    source = source_of(kind, path)
    there = getattr(source, "home", None)
    if isinstance(there, Path) and there.resolve() == home.resolve():
        raise EverloopError(f"{home} is the home that would be moved into: it opens as it is, or set EVERLOOP_HOME")
    return source


def _silent(line: str) -> None:
    pass


async def look(home: Path, kind: str, path: Path, options: MovingOptions = USUAL) -> MovingReport:
    """What a move would do; nothing is opened for it, and nothing written. Raises EverloopError."""
    from .moving_look import LookingHand

    hand = LookingHand(home, SettingsEditor(home, os.environ), kind)
    with closing(source_for(home, kind, path)) as source:
        return await Mover(source, ImportLedger(home), hand, _silent, options).move()


@asynccontextmanager
async def open_mover(
    home: Path,
    kind: str,
    path: Path,
    options: MovingOptions = USUAL,
    progress: Callable[[str], None] = _silent,
) -> AsyncIterator[Mover]:
    """Raises EverloopError."""
    from .moving_hand import open_hand

    with closing(source_for(home, kind, path)) as source:
        async with open_hand(home, source, enable=options.enable) as hand:
            yield Mover(source, ImportLedger(home), hand, progress, options)


__all__ = ["KINDS", "Mover", "MovingReport", "TakenOver", "look", "open_mover", "source_of"]
