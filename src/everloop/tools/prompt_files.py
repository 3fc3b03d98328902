"""The files that stand in prompts: what a person has accepted is told to models, the rest waits for a person.

A look judges by what the files hold, however it came there: by a file tool, a command, a rename, a link. What changed
while nobody but a person could write is accepted. The content that is accepted is the content that was read.
"""

import asyncio
import os
import stat
import time
from collections.abc import Mapping
from typing import Protocol

from msgspec import structs

from ..core.mail import Outbound
from ..core.people import OWNER
from ..core.prompt import Section
from ..errors import MailRefused, ToolError
from ..ports import Archive, Files, Taints
from ..ports.permission import FileState, Held, PromptFile
from ..ports.rows import Taint
from ..readings.held import ChangeSource, judge, latest, settled, told
from .bootstrap import FILES, Bootstrap, Contents, sections_of
from .tainted import Tainted
from .workspace import Workspace

MOST = 1000  # taints that are kept
TOO_LONG = "{} held more than is kept of it, so it cannot be put back: edit it yourself. Prompts keep what it held."


class WatchedStore(Taints, Archive, Protocol):
    """Files that are watched, why, and the sessions of threads."""


class WatchedFiles:
    """Files of a workspace that stand in prompts. `files` keeps what is taken out of them."""

    def __init__(
        self,
        bootstrap: Bootstrap,
        workspace: Workspace,
        store: WatchedStore,
        tainted: Tainted,
        files: Files,
        owner: str = OWNER,
    ) -> None:
        """The `owner` is whose workspace it is."""
        self.place = tainted.place
        self.owner = owner
        self.unasked = False
        self._bootstrap = bootstrap
        self._workspace = workspace
        self._store = store
        self._tainted = tainted
        self._files = files
        self._alone = asyncio.Lock()
        self._found: Contents | None = None  # as it was judged last
        self._unsettled = True  # something is held, or a command in the background may still write
        self._sections: tuple[Section, ...] = ()
        self._rows: Mapping[str, PromptFile] = {}
        self.names: tuple[str, ...] = ()  # of the files that are held back

    def sections(self) -> tuple[Section, ...]:
        """What models are told. It is as it was at the last look."""
        return self._sections

    def expect_more(self) -> None:
        self._unsettled = True

    async def look(self, *, closely: bool = False) -> None:
        if closely or self._unsettled or self._bootstrap.is_stale():
            async with self._alone:
                await self._look()

    async def held(self) -> list[Held]:
        return [row.held for row in await self._watched() if row.held]

    @property
    def rows(self) -> Mapping[str, PromptFile]:
        """What was accepted of each file, and what is held, as it was at the last look."""
        return self._rows

    def changed_at(self, name: str) -> float:
        """When a file was written, as it was at the last look."""
        return self._bootstrap.changed_at(name)

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

    async def put(self, name: str, content: bytes, expected: FileState) -> bool:
        """Have a file hold this, which is everloop's own doing and accepted, whatever else goes on in the workspace.
        False if it holds something else than was `expected`, or a change of it is held. Raises ToolError."""
        async with self._alone:
            await self._look()
            row = self._rows[name]
            if row.held or row.accepted != expected or expected.link:
                return False
            await asyncio.to_thread(_replace, self._workspace, name, content, expected.content, self._bootstrap.longest)
            while not await self._store.keep_watched(self.place, [_holding(row, content)]):
                row = {each.name: each for each in await self._watched()}.get(name, structs.replace(row, version=0))
            await self._look()
            return True

    async def decide(self, held: Held, allow: bool) -> str:
        async with self._alone:
            said = await self._decide(held, allow)
            await self._look()
        return said

    async def merge(self, place: str) -> None:
        """Keep the taints of a workspace from growing without end."""
        await self._store.merge_taints(place, MOST)

    async def _look(self) -> None:
        while True:  # until nobody was quicker
            over = await self._over() if self._unsettled else {}
            found = self._bootstrap.contents()
            if found == self._found and not self._unsettled:
                return
            # First what lasts, then what is known: whoever ends a taint has noted before what came of it.
            taints = await self._store.taints(self.place)
            before = {row.name: row for row in await self._watched()}
            source = await self._source(taints)
            after = {
                name: judge(self._before(before, name), name, held, await self._written(name, source), self.place)
                for name, held in found.items()
            }
            if await self._keep(before, after, free=source is None):
                self._note(found, after, any(taint.command and taint.key not in over for taint in taints))
                for key, at in over.items():
                    await self._store.end_taint(key, at)
                return

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

    async def _watched(self) -> list[PromptFile]:
        return [row for row in await self._store.watched(self.place) if row.name in self._bootstrap.names]

    def _before(self, known: dict[str, PromptFile], name: str) -> PromptFile | None:
        """What is known of a file. The owner's first files are there before anybody has spoken; all others were
        written by somebody, and are judged."""
        if name not in known and name not in FILES:
            known[name] = PromptFile(name, FileState(), version=0, owner=self.owner)
        return known.get(name)

    async def _written(self, name: str, source: ChangeSource | None) -> ChangeSource | None:
        """Where a change came from. Of a file that is found for the first time, its time tells."""
        if source or name in FILES or name in self._rows:
            return source
        return ChangeSource() if await self._tainted.holds(self._bootstrap.written_at(name)) else None

    async def _keep(self, before: Mapping[str, PromptFile], after: Mapping[str, PromptFile], free: bool) -> bool:
        changed = [row for name, row in after.items() if row is not before.get(name)]
        known = any(row.version for row in before.values())
        return not changed or await self._store.keep_watched(self.place, changed, free=free and known)

    def _note(self, found: Contents, rows: Mapping[str, PromptFile], lasts: bool) -> None:
        held = [row.held for row in rows.values() if row.held]
        self._found = found
        self._rows = rows
        self._unsettled = bool(held) or lasts
        self.unasked = any(not each.asked for each in held)
        self.names = tuple(each.name for each in held)
        told = {name: row.accepted for name, row in rows.items() if name in FILES}
        self._sections = sections_of(told, self._sections)

    async def _row(self, held: Held) -> PromptFile | None:
        rows = await self._watched()
        return next((row for row in rows if row.held and row.held.id == held.id), None)

    async def _decide(self, held: Held, allow: bool) -> str:
        row = await self._row(held)
        found = self._bootstrap.contents()[held.name]
        if row is None or row.held is None or found != row.held.found:
            await self._look()
            raise MailRefused(f"{held.name} has changed since this was asked; look again at what waits for permission")
        kept = "" if allow else await self._put_back(row.held)
        while row and not await self._store.keep_watched(self.place, [settled(row, allow)]):
            row = await self._row(held)  # somebody was told of it in this moment, or has seen that it is put back
        if allow:
            return f"{held.name} is accepted as it is now; models are told it from the next turn on."
        return f"{held.name} is again as it was.{kept and f' What was taken out of it is kept as {kept}.'}"

    async def _put_back(self, held: Held) -> str:
        """Have the file hold what was accepted; returns where what it held is kept."""
        if len(held.accepted.content or b"") >= self._bootstrap.longest:
            raise MailRefused(TOO_LONG.format(held.name))
        kept = await self._files.put(self.owner, held.found.content, held.name) if held.found.content else ""
        try:
            await asyncio.to_thread(_put, self._workspace, held.name, held.accepted.content, held.id)
        except (OSError, ToolError) as error:
            raise MailRefused(
                f"{held.name} cannot be put back ({error}): remove what is there yourself. Prompts keep what it held"
            ) from error
        return kept


def _replace(workspace: Workspace, name: str, content: bytes, expected: bytes | None, longest: int) -> None:
    seen = workspace.look(name, longest)
    if seen.content != expected:
        raise ToolError(f"{name} was changed in this moment and is left as it is")
    workspace.replace(name, content, f"view:{name}", seen)


def _holding(row: PromptFile, content: bytes) -> PromptFile:
    return structs.replace(row, accepted=FileState(content), held=None, version=row.version + 1)


def _put(workspace: Workspace, name: str, content: bytes | None, key: str) -> None:
    """What is no file goes, and a link is not followed: it may lead to a file that is none of this."""
    path = os.path.join(workspace.name, name)
    if os.path.lexists(path) and (content is None or not stat.S_ISREG(os.lstat(path).st_mode)):
        os.unlink(path)
    if content is not None:
        workspace.replace(name, content, key)


def _thread_of(taint: Taint) -> str:
    return taint.key.partition(":")[0]
