"""The hand that takes over what another agent has kept: into the store, the vault, the settings and the workspace."""

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ..bus.local import LocalBus
from ..core.message import Media, Text
from ..core.people import OWNER, Role
from ..errors import FileTooLarge, HomeError, MailRefused, NoRoom
from ..files.attachments import Attachments
from ..memory.book import MemoryBook
from ..moving.values import (
    SET_ASIDE,
    ForeignConversation,
    ForeignFile,
    ForeignJob,
    ForeignSkill,
    ForeignSource,
    ForeignText,
    as_text,
)
from ..ports.audit import line_of
from ..ports.conversation import ResumeThread
from ..ports.memory import MEMORY
from ..ports.schedules import Asker
from ..runtime.clock import SystemClock
from ..runtime.people import KnownPeople
from ..runtime.sessions import Sessions
from ..settings import workspace_of
from ..settings.editor import Edition, SettingsEditor
from .files import open_storage
from .moving_look import (
    DIRECT,
    changes_of,
    difference,
    fields_of,
    hindrance,
    is_someones,
    misdirected,
    skill_at,
    standing,
    too_long,
)
from .moving_memory import joined
from .moving_settings import ForeignSetting
from .opening import OpenHome, opened_home
from .records import open_records
from .schedules import ScheduleWords, schedules_in
from .settings_writing import write_noted

SPARE = 100_000_000  # bytes of the disk that stay free
LARGEST_FILE = 50_000_000
BY_HAND = Asker(OWNER, Role.OWNER, DIRECT, by_hand=True)
HAS_KEY = "there is another key in the vault already, which stays"
HAS_SECRET = "the vault holds another {name} already, which stays: everloop secrets forget {name}, then run this again"
NO_FILE = "[{name}: not in the export]"

_encode = msgspec.json.Encoder().encode


class TakingHand(Struct, frozen=True, kw_only=True):
    opened: OpenHome
    sessions: Sessions
    book_of_memory: MemoryBook
    attachments: Attachments
    schedules: ScheduleWords
    book: SettingsEditor
    source: ForeignSource
    enable: bool
    writes: bool = True

    async def conversation(self, found: ForeignConversation, thread: str) -> str:
        store, session = self.opened.store, found.session or f"page:{thread[:8]}"
        if not await store.conversations(OWNER, id=thread, archived=True, limit=1):
            lines = [_about(found, session), *[_encode(each) for each in await self._messages(found)]]
            branch, key = self.sessions.bring_in(lines, session, thread)
            if not await store.perform(OWNER, key, branch):
                return f"the session {key} is somebody else's here"
        if found.session and await store.session(found.session) is None and await self._is_owners(found.session):
            await store.perform(OWNER, found.session, ResumeThread(thread))
        return ""

    async def _is_owners(self, session: str) -> bool:
        """Whether nobody else is known by the account that a private chat is named after."""
        person = await self.opened.store.known_by(session)
        return person is None or person.id == OWNER

    async def _messages(self, found: ForeignConversation) -> list[dict[str, Any]]:
        messages = list(found.messages)
        for place, files in found.files.items():
            parts = [await self._part(each) for each in files]
            message = messages[place]
            if message["role"] == "user":
                content: Any = [{"type": "text", "text": message["content"]}, *map(msgspec.to_builtins, parts)]
            else:
                content = "\n".join([message["content"], *(_named(each) for each in parts)])
            messages[place] = {**message, "content": content}
        return messages

    async def _part(self, file: ForeignFile) -> Text | Media:
        data, name = await asyncio.to_thread(self.source.file, file, LARGEST_FILE), as_text(file.name)
        if data is None:
            return Text(NO_FILE.format(name=name[:200]))
        await asyncio.to_thread(_check_room, self.opened.home)
        try:
            return await self.attachments.take(OWNER, name, data)
        except (FileTooLarge, NoRoom) as error:
            return Text(f"[{name[:200]}: {error}]")

    async def memory(self, name: str, lines: str) -> str:
        current = await self.book_of_memory.text(OWNER, name)
        if name == MEMORY:
            new = joined(current, lines)
        else:
            fresh = [each for each in lines.split("\n\n") if each.strip() and each not in current]
            new = "\n\n".join(filter(None, (current.strip(), *fresh))) + "\n"
        if why := too_long(name, new):
            return why
        if new.strip() != current.strip():
            await self.book_of_memory.edit(OWNER, OWNER, name, new, current)
        return ""

    async def text(self, found: ForeignText) -> str:
        await asyncio.to_thread(_check_room, self.opened.home)
        return await asyncio.to_thread(_copy, found, workspace_of(self.opened.settings, self.opened.home))

    async def skill(self, found: ForeignSkill) -> str:
        workspace = workspace_of(self.opened.settings, self.opened.home)
        return await asyncio.to_thread(_copy_skill, found, workspace / SET_ASIDE.format(kind=self.source.kind))

    async def job(self, found: ForeignJob) -> str:
        key = f"import:{self.source.kind}:{found.id}"
        paused = not (self.enable and found.enabled)
        await self.schedules.desk.create(BY_HAND, fields_of(found), key, paused=paused)
        return ""

    async def settings(self, found: Sequence[ForeignSetting]) -> dict[str, str]:
        """All at once, so that who follows the file follows it once. The vault first: settings that refer to nothing
        would be worse than a secret that nobody refers to."""
        edition = await asyncio.to_thread(self.book.read)
        left = {each.key: why for each in found if (why := await self._hindrance(each, edition))}
        left |= misdirected(found, left, edition)
        taken = [each for each in found if each.key not in left]
        for each in taken:
            await self._keep(each.secrets)
        fresh = [each for each in taken if each.value is not None and standing(edition.data, each.path) is None]
        for each in fresh:
            if each.path[:2] == ("tools", "mcp_servers"):  # seen, and nothing allowed: another agent's word is not ours
                await self.opened.store.mcp.pin_mcp_first(each.path[2], ())
        if changes := [change for each in fresh for change in changes_of(each)]:
            await write_noted(self.book, await asyncio.to_thread(self.book.draft_changes, changes), self.opened.store)
        return left

    async def _hindrance(self, found: ForeignSetting, edition: Edition) -> str:
        """Why one stays as it is here; "" where it can be taken, or was by somebody who was killed then."""
        if found.value is None:
            return HAS_KEY if await self._other_secrets(found) else ""
        if why := await asyncio.to_thread(hindrance, self.book, edition, found):
            return why
        others = await self._other_secrets(found)
        return HAS_SECRET.format(name=others[0].removeprefix("secret:")) if others else ""

    async def _other_secrets(self, found: ForeignSetting) -> list[str]:
        """The names under which the vault holds something else already."""
        kept = {name: await self.opened.vault.get(name) for name in found.secrets}
        return [name for name, secret in found.secrets.items() if kept[name] not in (None, secret)]

    async def _keep(self, secrets: Mapping[str, str]) -> None:
        kept = await self.opened.vault.names()
        for name, secret in secrets.items():
            if name not in kept:
                await self.opened.vault.set(name, secret)

    async def end(self, counts: Mapping[str, int]) -> None:
        await self.opened.store.note(line_of("import.done", self.source.kind, dict(counts)))


def _about(found: ForeignConversation, session: str) -> bytes:
    from ..moving.transcript import written_time

    about = {"_type": "metadata", "key": session, "title": as_text(found.title)}
    return _encode({**about, "created_at": written_time(found.created)} if found.created else about)


def _check_room(home: Path) -> None:
    """A few megabytes of an archive may unpack to terabytes, and a house that runs needs room to keep what people say.
    Raises MailRefused."""
    if shutil.disk_usage(home).free < SPARE:
        raise MailRefused(f"the disk of {home} has less than {SPARE:,} bytes left: make room, then run this again")


def _named(part: Text | Media) -> str:
    return f"[{part.name}, kept as {part.file[:17]}]" if isinstance(part, Media) else part.text


def _copy(found: ForeignText, workspace: Path) -> str:
    """Whole or not at all, and never over something, or through a link to elsewhere. Raises HomeError."""
    target = workspace / found.name
    try:
        data = found.read()
        if is_someones(found.name, target):
            return difference(found.name, target, data)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.parent.resolve().is_relative_to(workspace.resolve()):
            return "its folder is a link to elsewhere here"
        draft = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}")
        draft.write_bytes(data)
        os.replace(draft, target)
    except OSError as error:
        raise HomeError(f"{error.filename or target} cannot be copied ({error.strerror})") from error
    return ""


def _copy_skill(found: ForeignSkill, folder: Path) -> str:
    """To be installed by its owner, who is shown then what it asks for. Raises MailRefused, HomeError."""
    fetched, target, why = skill_at(found, folder)
    if why is not None:
        return why
    draft = folder / f".{fetched.skill.name}.{secrets.token_hex(4)}"
    try:
        for name, file in fetched.tree.items():
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / name).write_bytes(file.content)
        os.replace(draft, target)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise HomeError(f"{error.filename or target} cannot be copied ({error.strerror})") from error
    return ""


@asynccontextmanager
async def open_hand(home: Path, source: ForeignSource, *, enable: bool) -> AsyncIterator[TakingHand]:
    """Raises SettingsError, StoreError."""
    async with opened_home(home) as opened, open_records(home) as records:
        storage = await open_storage(opened, KnownPeople(opened.store))
        words = schedules_in(opened.store, LocalBus(), SystemClock(), lambda: opened.settings)
        book = SettingsEditor(home, os.environ)
        yield TakingHand(
            opened=opened,
            sessions=records.sessions,
            book_of_memory=records.memory,
            attachments=storage.attachments,
            schedules=words,
            book=book,
            source=source,
            enable=enable,
        )
