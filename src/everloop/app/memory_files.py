"""MEMORY.md and HISTORY.md in everybody's workspace: written after a change, read back when somebody has edited them.

The database is the truth. What a person writes into a file becomes a version of it, merged with what was changed there
meanwhile; what came into a file by strangers' words waits until a person has accepted it (tools/prompt_files.py).
"""

import asyncio
import fcntl
import logging
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from ..core.briefing import Situation
from ..core.people import Role, is_chat
from ..core.prompt import Section
from ..errors import ToolError
from ..memory.editing import BY_HAND, Followed, followed, is_by_person
from ..memory.forgetting import WHY as FORGOTTEN
from ..memory.forgetting import all_facts
from ..memory.lines import changed_lines
from ..memory.merging import merged, prints_of
from ..memory.section import memory_section
from ..memory.views import LONGEST, PATHS, SETTLED, Views, is_ours, text_in, views_in
from ..ports import Clock, Memory
from ..ports.memory import DOCUMENTS, MEMORY, MemoryChange, MemoryDocument, MemoryVersion
from ..ports.permission import FileState, PromptFile
from ..runtime.clock import MACHINE
from ..tools.house_prompt_files import HousePromptFiles
from ..tools.watched_memory import WatchedMemory
from .workspaces import principals_folder

_log = logging.getLogger("everloop.memory")

VIEWS = "views"  # the folder of a home that says what was written into files
GLANCE = 1.0  # seconds between glances at the version of a memory
PEOPLE = 1000
PATIENCE = 50  # tries to be the only process that writes
PAUSE = 0.02  # seconds
BUSY = "another process is writing these files; they are written the next time"
AGED = 100  # versions that a file is compared with of which nobody knows what it held


class _Told(Struct, frozen=True):
    """What is known of somebody's memory, since when, and what was found in their files. `revoked` is the version
    with which somebody last took something out of it themselves; `told` the one that the sections tell."""

    at: float
    version: int
    sections: tuple[Section, ...] = ()
    rows: Mapping[str, PromptFile] = {}
    revoked: int = 0
    told: int = 0


class MemoryFiles:
    """The RevocableSource port, and the files that it is made of."""

    def __init__(
        self,
        store: Memory,
        files: HousePromptFiles,
        folder_of: Callable[[str], Path],
        home: Path,
        clock: Clock = MACHINE,
    ) -> None:
        """`folder_of` is somebody's workspace."""
        self._store = store
        self._files = files
        self._folder_of = folder_of
        self._home = home
        self._clock = clock
        self._alone = asyncio.Lock()
        self._told: OrderedDict[str, _Told] = OrderedDict()
        self._problems: dict[tuple[str, str], str] = {}
        self._busy = False

    async def sections(self, situation: Situation) -> tuple[Section, ...]:
        """What models are told of somebody's memory; the same again while nothing has changed. Who has none costs a
        glance at times, who has one also a look at the times of two files."""
        told = await self._read(situation, await self._glance(situation.principal))
        if told.told != told.version:
            told = await self._tell(situation.principal, told)
        return told.sections

    async def revocation(self, situation: Situation) -> int:
        """What a person has had forgotten, or taken out themselves, is told no longer, also in a conversation that goes
        on. It costs a glance at times."""
        before = self._told.get(situation.principal)
        told = await self._glance(situation.principal)
        return told.revoked if told is before else (await self._read(situation, told)).revoked

    async def _glance(self, owner: str) -> _Told:
        """What is known, which is as of a second ago at most."""
        now, told = self._clock.now(), self._told.get(owner)
        if told is not None and 0 <= now - told.at < GLANCE:
            return told
        version = await self._store.memory_version(owner)
        if told is None or told.version != version:  # its files are looked at again
            told = await self._renewed(owner, version, structs.replace(told or _Told(now, 0), rows={}))
        return self._keep(owner, structs.replace(told, at=now))

    async def _renewed(self, owner: str, version: int, before: _Told) -> _Told:
        made = await self._store.memory_versions(owner, limit=AGED)
        new = [each for each in made if each.version > before.version and is_by_person(each)]
        for each in new:
            if not before.version or await self._takes_out(owner, each):
                return structs.replace(before, version=version, revoked=each.version)
        return structs.replace(before, version=version)

    async def _takes_out(self, owner: str, made: MemoryVersion) -> bool:
        was, now = [await self._store.document_at(owner, MEMORY, each) for each in (made.version - 1, made.version)]
        return made.why == FORGOTTEN or bool(changed_lines(was or "", now or "")[0])

    async def _read(self, situation: Situation, told: _Told) -> _Told:
        """What is known after what was edited by hand. Of guests nothing is remembered, whatever they write."""
        owner = situation.principal
        if not told.version and (situation.role < Role.USER or not self._has_file(owner)):
            return told
        watched = self._files.memory_of(owner)
        await watched.look()
        if told.rows == watched.rows:
            return told
        await self.sync(owner)
        if (version := await self._store.memory_version(owner)) != told.version:
            told = await self._renewed(owner, version, told)
        return self._keep(owner, structs.replace(told, rows=watched.rows))

    def _has_file(self, owner: str) -> bool:
        return any(os.access(self._folder_of(owner) / path, os.F_OK) for path in PATHS.values())

    async def changed(self, owner: str) -> None:
        """Somebody's memory was changed here: the files follow, and so does what models are told."""
        if told := self._told.get(owner):
            self._told[owner] = structs.replace(told, at=-GLANCE)
        await self.sync(owner)

    def problems(self, owner: str) -> list[str]:
        """Why a file is not what it should be, in sentences, as of the last time it was looked at."""
        return [
            f"{PATHS[name]} is left alone: {why}."
            for (whose, name), why in self._problems.items()
            if whose == owner and why
        ]

    def held(self, owner: str) -> tuple[str, ...]:
        """Files of which a change waits for a person."""
        return self._files.memory_of(owner).names

    def folder(self, owner: str) -> Path:
        return self._folder_of(owner)

    async def sync(self, owner: str) -> None:
        """Read what was edited, then write what has changed."""
        async with self._alone, self._alone_here(owner) as alone:
            watched = self._files.memory_of(owner)
            await watched.look(closely=True)
            for name in DOCUMENTS:
                why = BUSY if not alone else await self._sync_one(owner, name, watched)
                if why and self._problems.get((owner, name)) != why:
                    _log.warning("%s of %s is left alone: %s", PATHS[name], owner, why)
                self._problems[owner, name] = why

    async def _sync_one(self, owner: str, name: str, watched: WatchedMemory) -> str:
        """Why it could not be done; "" if it was."""
        row, document = watched.rows[PATHS[name]], await self._store.document(owner, name)
        found, views = row.accepted, self._views(owner, watched.place)
        if row.held:
            return "a change of it waits for permission (/approve)"
        if found.link:
            return f"it is a link to {found.link!r}: put a file there"
        if found.content is None:
            return await self._write(owner, document, watched, found, views) if document.body else ""
        try:
            text = text_in(name, found.content)
        except ValueError as error:
            return str(error)
        if not text and document.body and time.time() - watched.changed_at(PATHS[name]) < SETTLED:
            return "it is empty and was written a moment ago"
        view = views.views.get(name)
        if text != document.body and not is_ours(view, text) and not await self._is_old(owner, name, views, text):
            document = await self._take_in(owner, name, view.held if view else (), text)
        if text == document.body:
            self._keep_views(owner, views.after(name, prints_of(text), prints_of(text)))
            return ""
        return await self._write(owner, document, watched, found, views)

    async def _is_old(self, owner: str, name: str, views: Views, text: str) -> bool:
        """Whether a file of which nobody knows what it held is an earlier version, rather than an edit."""
        if name in views.views:
            return False
        for each in await self._store.memory_versions(owner, limit=AGED):
            if name in each.documents and await self._store.document_at(owner, name, each.version) == text:
                return True
        return False

    async def _take_in(self, owner: str, name: str, base: tuple[str, ...], text: str) -> MemoryDocument:
        """Make what a person has written a version of the memory."""
        person = "" if is_chat(owner) else owner
        while True:  # until nobody was quicker
            document = await self._store.document(owner, name)
            new = await asyncio.to_thread(merged, base, document.body, text)
            if new == document.body:
                return document
            follows = Followed()
            if name == MEMORY:
                facts = await all_facts(self._store, owner)
                ids = lambda: secrets.token_hex(8)  # noqa: E731
                follows = followed(document.body, new, facts, person=person, now=self._clock.now(), new_id=ids)
            change = MemoryChange(
                person,
                BY_HAND,
                facts=follows.facts,
                ended=follows.ended,
                documents=(MemoryDocument(name, new, document.version),),
            )
            if version := await self._store.change_memory(owner, change):
                return MemoryDocument(name, new, version)

    async def _write(
        self, owner: str, document: MemoryDocument, watched: WatchedMemory, found: FileState, views: Views
    ) -> str:
        name, content = document.name, document.body.encode("utf-8", "replace")
        if len(content) > LONGEST[name]:
            return f"the memory is longer than {LONGEST[name]:,} bytes: make it shorter with `everloop memory edit`"
        held = prints_of(text_in(name, found.content)) if found.content is not None else ()
        writing = prints_of(document.body)
        self._keep_views(owner, views.after(name, held, writing))
        try:
            self._folder_of(owner).mkdir(mode=0o700, parents=True, exist_ok=True)
            if not await watched.put(PATHS[name], content, found):
                return "it was changed in this moment"
        except (OSError, ToolError) as error:
            return str(error)
        self._keep_views(owner, self._views(owner, watched.place).after(name, writing, writing))
        return ""

    async def _tell(self, owner: str, before: _Told) -> _Told:
        body = (await self._store.document(owner, MEMORY)).body
        section = memory_section(body, await all_facts(self._store, owner, ended=False) if body else ())
        sections = (section,) if section else ()
        told = structs.replace(
            before, sections=before.sections if sections == before.sections else sections, told=before.version
        )
        return self._keep(owner, told)

    def _keep(self, owner: str, told: _Told) -> _Told:
        self._told[owner] = told
        self._told.move_to_end(owner)
        if len(self._told) > PEOPLE:
            self._told.popitem(last=False)
        return told

    def _state(self, owner: str) -> Path:
        return self._home / VIEWS / f"{principals_folder(owner)}.json"

    def _views(self, owner: str, place: str) -> Views:
        try:
            return views_in(self._state(owner).read_bytes(), place)
        except FileNotFoundError:
            return Views(place)

    def _keep_views(self, owner: str, views: Views) -> None:
        path, content = self._state(owner), msgspec.json.encode(views)
        if path.exists() and path.read_bytes() == content:
            return
        draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
        draft.write_bytes(content)
        draft.replace(path)

    @asynccontextmanager
    async def _alone_here(self, owner: str) -> AsyncIterator[bool]:
        """Whether no other process of this home writes these files: one may be frozen in the middle of it."""
        folder = self._home / VIEWS
        folder.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            alone = await _locked(lock, 1 if self._busy else PATIENCE)
            self._busy = not alone  # then nobody waits for it again
            yield alone
        finally:
            os.close(lock)


async def _locked(lock: int, tries: int) -> bool:
    for _ in range(tries):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(PAUSE)
        else:
            return True
    return False
