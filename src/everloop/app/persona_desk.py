"""Personas as they are defined, changed and given places: by the command line, and by the page.

Definitions stand in the settings file, which every process reads again when a turn begins; files of their own lie in
the home. All is checked before anything is written.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from ..bus.local import LocalBus
from ..core.people import OWNER, Role
from ..core.personas import PersonaChoice
from ..core.thread import Thread
from ..errors import MailRefused
from ..ports import Audit, Log
from ..ports.audit import line_of
from ..ports.channel import DOORS
from ..readings.personas import NONE, WRONG_NAME, WRONG_PLACE, Persona, Personas, channel_in, is_name, is_place
from ..runtime.clock import SystemClock
from ..runtime.people import KnownPeople
from ..runtime.supervisor import Supervisor
from ..settings.editor import SettingsEditor
from ..settings.unused import switched_on
from ..tools.bootstrap import FILES
from ..tools.persona_files import PersonaFiles, checked_files
from .build import Builder, Built, Overrides
from .channels import OURS
from .files import open_storage
from .opening import opened_home
from .personas import unknown_tools
from .settings_writing import write_noted

Change = Callable[[Mapping[str, Any]], Awaitable[object]]


class PersonaStore(Log, Audit, Protocol):
    """What conversations have chosen, and where it is noted who changed what."""


class PersonaDesk:
    file_names = tuple(FILES)

    def __init__(
        self,
        home: Path,
        store: PersonaStore,
        now: Callable[[], Awaitable[Built]],
        change: Change,
        brought: Collection[str] = (),
    ) -> None:
        """`now` is what the settings have come to by now, `change` changes them. Both raise SettingsError. `brought`
        are the names of channels that a program has opened."""
        self._home = home
        self._store = store
        self._now = now
        self._change = change
        self._brought = brought

    async def all(self) -> Personas:
        return (await self._now()).personas

    async def find(self, name: str) -> Persona:
        """Raises MailRefused."""
        named = (await self.all()).named
        if name not in named:
            raise MailRefused(f"there is no persona {name[:40]!r}; {_listed(named)}")
        return named[name]

    async def tools(self) -> list[str]:
        """What a persona can name."""
        return list((await self._now()).kits.of(OWNER).tools)

    def files(self, name: str) -> dict[str, str]:
        return PersonaFiles(self._home, name).texts()

    async def add(self, name: str, fields: Mapping[str, Any], files: Mapping[str, str]) -> Persona:
        """`fields` are those of its settings. Raises MailRefused, SettingsError, ModelMissing, HomeError."""
        if not is_name(name):
            raise MailRefused(WRONG_NAME)
        if name in (await self.all()).named:
            raise MailRefused(f"there is a persona {name} already; `everloop personas edit {name}` changes it")
        return await self._save(name, {"open_to": "admin", **fields}, files)

    async def edit(self, name: str, fields: Mapping[str, Any], files: Mapping[str, str]) -> Persona:
        """What is not among the `fields` stays as it is. Raises what `add` raises."""
        await self.find(name)
        return await self._save(name, fields, files)

    async def remove(self, name: str) -> str:
        """With its files. Says who answers in its places from now on. Raises what `add` raises."""
        persona = await self.find(name)
        await self._change({f"personas.{name}": None})
        await asyncio.to_thread(PersonaFiles(self._home, name).forget)
        left = await self.all()
        places = [f"at {place} {left.after(place) or 'the agent itself'} answers" for place in persona.places]
        return f"{name} is removed. {_sentence(places)}Where it was chosen in a conversation, that is told there."

    async def use(self, name: str, place: str) -> str:
        """Have a persona answer at a place, in the stead of whoever does; `none` takes the place away. Raises what
        `add` raises."""
        if not is_place(place):
            raise MailRefused(f"{place[:80]!r} is no place: {WRONG_PLACE}")
        persona, personas = None if name == NONE else await self.find(name), await self.all()
        if persona:
            await self._check_places((place,))
        before = personas.named.get(personas.at.get(place, ""))
        changes: dict[str, Any] = {}
        if before and before is not persona:
            changes[f"personas.{before.name}.places"] = [each for each in before.places if each != place]
        if persona and before is not persona:
            changes[f"personas.{persona.name}.places"] = [*persona.places, place]
        if changes:
            await self._change(changes)
        answers = persona.name if persona else (await self.all()).after(place) or "the agent itself"
        return f"At {place} {answers} answers from the next turn on."

    async def _check_places(self, places: Iterable[str]) -> None:
        """That of each there is such a channel, or the persona would wait there for nobody. Raises MailRefused."""
        known = {*DOORS, *OURS, *switched_on((await self._now()).settings.channels), *self._brought}
        for place in places:
            channel = channel_in(place)
            if channel and channel not in known:
                there = ", ".join(sorted(known))
                raise MailRefused(f"{place[:80]}: there is no channel {channel[:40]!r}; there is {there}")

    async def answering(self, thread: str, session: str, person: str, role: Role) -> PersonaChoice:
        """Who answers somebody in a conversation of this session, and by which rule."""
        opened = await self._store.open(thread)
        fold = Thread(thread, opened.first - 1)
        fold.extend(opened.entries)
        personas = await self.all()
        return personas.choose(fold.persona, person=person, role=role, address=session, server=fold.server)

    async def _save(self, name: str, fields: Mapping[str, Any], files: Mapping[str, str]) -> Persona:
        try:
            checked_files(files)
        except ValueError as error:
            raise MailRefused(str(error)) from error
        await self._check_places(fields.get("places") or ())
        now = await self._now()
        if unknown := unknown_tools(Persona(name, tools=fields.get("tools")), now.kits.of(OWNER).tools):
            raise MailRefused(f"there is no tool {unknown[0][:80]!r}; there is {', '.join(now.kits.of(OWNER).tools)}")
        if fields.get("model"):
            await now.models.look(fields["model"])
        if fields:
            await self._change({f"personas.{name}": dict(fields)})
        if files:
            await self._store.note(line_of("persona.files", name, {"files": sorted(files)}))
        await asyncio.to_thread(PersonaFiles(self._home, name).write, files)
        return await self.find(name)


def _listed(named: Collection[str]) -> str:
    return f"there is {', '.join(named)}" if named else "there are none yet: `everloop personas add NAME` makes one"


def _sentence(parts: list[str]) -> str:
    return f"From the next turn on {', '.join(parts)}. " if parts else ""


@asynccontextmanager
async def open_personas(home: Path | None = None) -> AsyncIterator[PersonaDesk]:
    """For the command line: a gateway that runs sees the file change. Raises what `open` raises."""
    async with opened_home(home) as opened, Supervisor(SystemClock()) as supervisor, AsyncExitStack() as stack:
        given = Overrides(waits=True, warms=False, embeds=False)
        storage = await open_storage(opened, KnownPeople(opened.store))
        builder = Builder(opened, storage, LocalBus(), given, supervisor, stack)
        built = await builder.make(opened.settings)
        book = SettingsEditor(opened.home, os.environ)

        async def now() -> Built:
            return built

        async def change(asked: Mapping[str, Any]) -> None:
            nonlocal built
            draft = book.draft(asked)
            made = await builder.make(draft.edition.settings)
            await write_noted(book, draft, opened.store)
            built = made

        yield PersonaDesk(opened.home, opened.store, now, change)


__all__ = ["FILES", "PersonaDesk", "open_personas"]
