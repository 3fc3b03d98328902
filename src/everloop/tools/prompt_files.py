"""The files that stand in prompts: what a person has accepted is told to models, the rest waits for a person.

A look judges by what the files hold, however it came there: by a file tool, a command, a rename, a link. What changed
while nobody but a person could write is accepted. The content that is accepted is the content that was read.
"""

import asyncio
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Protocol
from weakref import WeakSet

from ..core.mail import Outbound
from ..core.prompt import Section
from ..errors import MailRefused, ToolError
from ..ports import Archive, Files, Taints
from ..ports.heartbeat import HEARTBEAT_FILE
from ..ports.permission import FileState, Held, PromptFile
from ..ports.rows import Taint
from ..readings.held import ChangeSource, is_memory_file, judge, latest, settled, told
from .bootstrap import BYTES, Bootstrap, Contents, sections_of
from .skill_files import SkillFiles, is_skill_file
from .tainted import Tainted
from .workspace import Workspace

MOST = 1000  # taints that are kept
NOTHING = FileState()
TOO_LONG = "{} held more than is kept of it, so it cannot be put back: edit it yourself. Prompts keep what it held."


class WatchedStore(Taints, Archive, Protocol):
    """Files that are watched, why, and the sessions of threads."""


class PromptSource(Protocol):
    """Files that stand in prompts, as they are now."""

    def is_stale(self) -> bool:
        """Whether one may hold something else than when they were read."""
        ...

    def contents(self) -> Contents: ...


class FilesWithSkills:
    """Of one workspace: the files with fixed names, such as the bootstrap files, and the skills."""

    def __init__(self, bootstrap: Bootstrap, skills: SkillFiles) -> None:
        self._parts = bootstrap, skills

    def is_stale(self) -> bool:
        return any(part.is_stale() for part in self._parts)

    def contents(self) -> Contents:
        return self._parts[0].contents() | self._parts[1].contents()


class Beside:
    """Those who watch files of one workspace. A taint is over for all of them at once: none of them ends it before each
    has judged what it found while the taint lasted, and they do so one at a time."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.watchers: WeakSet[WatchedFiles] = WeakSet()


class WatchedFiles:
    """The files of one workspace that stand in prompts. `files` keeps what is taken out of them, for `owner`."""

    longest = BYTES  # that is read of one

    def __init__(
        self,
        source: PromptSource,
        workspace: Workspace,
        store: WatchedStore,
        tainted: Tainted,
        files: Files,
        owner: str = "owner",
        quick: Callable[[], bool] | None = None,
        beside: Beside | None = None,
    ) -> None:
        """`quick` says whether any of those is stale that are told in every turn; None: all are. `beside` are others
        who watch files of the same workspace."""
        self._beside = beside or Beside()
        self._beside.watchers.add(self)
        self._quick = quick or source.is_stale
        self.place = tainted.place
        self.unasked = False
        self.owner = owner
        self._source_files = source
        self._workspace = workspace
        self._store = store
        self._tainted = tainted
        self._files = files
        self._alone = self._beside.lock
        self._found: Contents | None = None  # as it was judged last
        self._unsettled = True  # something is held, or a command in the background may still write
        self._sections: tuple[Section, ...] = ()
        self._told: Contents = {}  # what those say
        self.accepted: Contents = {}  # as it was at the last look
        self._rows: Mapping[str, PromptFile] = {}
        self.names: tuple[str, ...] = ()  # of the files that are held back

    def sections(self) -> tuple[Section, ...]:
        """What models are told of bootstrap files. It is as it was at the last look."""
        if self._told is not self.accepted:
            self._told = self.accepted
            self._sections = sections_of(self.accepted, self._sections)
        return self._sections

    def expect_more(self) -> None:
        self._unsettled = True

    async def look(self, *, closely: bool = False, quickly: bool = False) -> None:
        """`quickly`: only at what every turn is told."""
        is_stale = self._quick if quickly else self._source_files.is_stale
        if closely or self._unsettled or is_stale():
            async with self._alone:
                await self._look()

    async def held(self) -> list[Held]:
        return [row.held for row in await self._watched() if row.held]

    async def due(self, thread: str) -> list[Held]:
        busy = {_thread_of(taint) for taint in await self._store.taints(self.place) if not taint.command} - {thread}
        unasked = [held for held in await self.held() if not held.asked]
        due = [held for held in unasked if held.thread not in busy]
        self.unasked = len(due) < len(unasked)
        return due

    async def tell(self, held: Held, question: Outbound | None) -> bool:
        async with self._alone:
            row = await self._row(held)
            return row is not None and await self._store.keep_watched(self.place, [told(row)], question=question)

    async def decide(self, held: Held, allow: bool) -> str:
        async with self._alone:
            said = await self._decide(held, allow)
            await self._look()
        return said

    async def merge(self, place: str) -> None:
        """Keep the taints of a workspace from growing without end."""
        await self._store.merge_taints(place, MOST)

    async def _look(self) -> None:
        if over := await self._judge():
            for each in [each for each in self._beside.watchers if each is not self]:
                await each._judge()
            for key, at in over.items():
                await self._store.end_taint(key, at)

    async def _judge(self) -> dict[str, float]:
        """Note what has become of each file; tells which taints are over, and can be ended now."""
        while True:  # until nobody was quicker
            over = await self._over() if self._unsettled else {}
            found = self._source_files.contents()
            if found == self._found and not self._unsettled:
                return {}
            # First what lasts, then what is known: whoever ends a taint has noted before what came of it.
            taints = await self._store.taints(self.place)
            before = {row.name: row for row in await self._watched()}
            source = await self._source(taints)
            after = await self._judged(before, found, source)
            if await self._keep(before, after, free=source is None):
                self._note(found, after, any(taint.command and taint.key not in over for taint in taints))
                return over

    async def _watched(self) -> list[PromptFile]:
        return [row for row in await self._store.watched(self.place) if self._is_mine(row.name)]

    def _is_mine(self, name: str) -> bool:
        """Of the files that are watched in this workspace."""
        return not is_memory_file(name)

    async def _judged(
        self, before: dict[str, PromptFile], found: Contents, source: ChangeSource | None
    ) -> dict[str, PromptFile]:
        every = dict.fromkeys(filter(is_skill_file, before), NOTHING) | found
        if HEARTBEAT_FILE in found:
            before.setdefault(HEARTBEAT_FILE, PromptFile(HEARTBEAT_FILE, NOTHING, version=0))
        return {
            name: judge(before.get(name, _unknown(name)), name, held, source, self.place)
            for name, held in every.items()
        }

    async def _over(self) -> dict[str, float]:
        """The taints whose commands are over by now."""
        lasting = [taint for taint in await self._store.taints(self.place) if taint.command]
        ends = [(taint.key, await self._tainted.over(taint)) for taint in lasting]
        return {key: at or time.time() for key, at in ends if at is not None}

    async def _source(self, taints: list[Taint]) -> ChangeSource | None:
        if (taint := latest(taints)) is None:
            return None
        thread = _thread_of(taint)
        return ChangeSource(thread, await self._store.session_of(thread, self.owner), taint.outside)

    async def _keep(self, before: Mapping[str, PromptFile], after: Mapping[str, PromptFile], free: bool) -> bool:
        changed = [row for name, row in after.items() if row is not before.get(name)]
        known = bool(before) or any(is_skill_file(row.name) for row in changed)
        return not changed or await self._store.keep_watched(self.place, changed, free=free and known)

    def _note(self, found: Contents, rows: Mapping[str, PromptFile], lasts: bool) -> None:
        held = [row.held for row in rows.values() if row.held]
        self._found = found
        self._rows = rows
        self._unsettled = bool(held) or lasts
        self.unasked = any(not each.asked for each in held)
        self.names = tuple(each.name for each in held)
        accepted = {name: row.accepted for name, row in rows.items()}
        self.accepted = self.accepted if accepted == self.accepted else accepted

    async def _row(self, held: Held) -> PromptFile | None:
        rows = await self._watched()
        return next((row for row in rows if row.held and row.held.id == held.id), None)

    async def _decide(self, held: Held, allow: bool) -> str:
        row = await self._row(held)
        found = self._source_files.contents().get(held.name, NOTHING)
        if row is None or row.held is None or found != row.held.found:
            await self._look()
            raise MailRefused(f"{held.name} has changed since this was asked; look again at what waits for permission")
        kept = "" if allow else await self._put_back(row.held)
        while row and not await self._store.keep_watched(self.place, [settled(row, allow)]):
            row = await self._row(held)  # somebody was told of it in this moment, or has seen that it is put back
        if allow:
            when = "in new conversations" if is_skill_file(held.name) else "from the next turn on"
            return f"{held.name} is accepted as it is now; models are told it {when}."
        return f"{held.name} is again as it was.{kept and f' What was taken out of it is kept as {kept}.'}"

    async def _put_back(self, held: Held) -> str:
        """Have the file hold what was accepted; returns where what it held is kept."""
        if len(held.accepted.content or b"") >= self.longest:
            raise MailRefused(TOO_LONG.format(held.name))
        kept = await self._files.put(self.owner, held.found.content, held.name) if held.found.content else ""
        try:
            await asyncio.to_thread(_put, self._workspace, held.name, held.accepted.content, held.id)
        except (OSError, ToolError) as error:
            raise MailRefused(
                f"{held.name} cannot be put back ({error}): remove what is there yourself. Prompts keep what it held"
            ) from error
        return kept


def _put(workspace: Workspace, path: str, content: bytes | None, key: str) -> None:
    """What is no file goes, and a link is not followed: it may lead to a file that is none of this."""
    above, _, name = path.rpartition("/")
    with suppress(FileNotFoundError), _folder(workspace, above) as fd:
        if content is None or not stat.S_ISREG(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=fd)
    if content is not None:
        workspace.replace(path, content, key)


@contextmanager
def _folder(workspace: Workspace, above: str) -> Iterator[int]:
    """The folder that a file lies in. Raises FileNotFoundError where there is none, ToolError where it leads out."""
    if above and not os.path.lexists(os.path.join(workspace.name, above)):
        raise FileNotFoundError(above)
    with workspace.folder(above or ".") as fd:
        yield fd


def _unknown(name: str) -> PromptFile | None:
    """Of a file that was never seen: bootstrap files are as they are found first, but a skill that turns up was not
    there before."""
    return PromptFile(name, NOTHING, version=0) if is_skill_file(name) else None


def _thread_of(taint: Taint) -> str:
    return taint.key.partition(":")[0]
