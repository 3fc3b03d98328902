"""Personas of the settings, and what is told where one answers: its words, its files, fewer tools, another model."""

import logging
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ..core.briefing import Briefing, Situation
from ..core.people import role_named
from ..core.personas import PersonaChoice
from ..core.prompt import Section
from ..errors import SettingsError
from ..ports import Briefer
from ..readings.personas import Persona, Personas
from ..settings import PersonaSection, Settings
from ..tools.persona_files import PersonaFiles

_log = logging.getLogger("everloop.personas")

BRIEFINGS = 500  # that are kept ready


def personas_of(settings: Settings) -> Personas:
    """Raises SettingsError where two have the same place, or a name or a place is none."""
    try:
        return Personas({name: _persona(name, section) for name, section in settings.personas.items()})
    except ValueError as error:
        raise SettingsError(str(error)) from error


def _persona(name: str, section: PersonaSection) -> Persona:
    return Persona(
        name=name,
        prompt=section.prompt,
        tools=section.tools,
        model=section.model,
        max_tokens=section.max_tokens or 0,
        open_to=role_named(section.open_to),
        places=section.places,
    )


def unknown_tools(persona: Persona, names: Collection[str]) -> list[str]:
    """What it names, and is no tool here."""
    return [each for each in persona.tools or () if not any(fnmatchcase(name, each) for name in names)]


def missing_tools(personas: Personas, names: Collection[str]) -> Iterator[str]:
    """A sentence for each persona that counts on tools that there are not: they may have been disabled since."""
    for persona in personas.named.values():
        if unknown := unknown_tools(persona, names):
            yield f"personas.{persona.name}.tools names {', '.join(unknown)}, which is no tool here: it does without."


class _PersonaBriefing(Struct, frozen=True):
    """A briefing as a persona has it, and what that was made of."""

    plain: Briefing
    choice: PersonaChoice
    files: tuple[Section, ...]
    briefing: Briefing


class PersonaBriefer:
    """The Briefer port: what is told anyway, and then what the persona makes of it, if there is one."""

    def __init__(self, plain: Briefer, personas: Personas, home: Path) -> None:
        self._plain = plain
        self._personas = personas
        self._files = {name: PersonaFiles(home, name) for name in personas.named}
        self._told: dict[tuple[str, int], _PersonaBriefing] = {}

    async def brief(self, situation: Situation) -> Briefing:
        plain = await self._plain.brief(situation)
        if not self._personas.named and not situation.wish.name:
            return plain
        choice = self._personas.choose(
            situation.wish,
            person=situation.person,
            role=situation.role,
            address=situation.address,
            server=situation.server,
        )
        if not choice.name and not choice.instead_of:
            return plain
        files, key = self._files[choice.name].sections() if choice.name else (), (choice.name, id(plain))
        told = self._told.get(key)
        if told is None or told.plain is not plain or told.files is not files or told.choice != choice:
            if len(self._told) >= BRIEFINGS:
                self._told.clear()
            if choice.instead_of:
                _log.warning("%s", choice.sentence)
            persona = self._personas.named.get(choice.name, Persona(""))
            briefing = as_persona(plain, persona, choice, files)
            told = self._told[key] = _PersonaBriefing(plain, choice, files, briefing)
        return told.briefing


def as_persona(plain: Briefing, persona: Persona, choice: PersonaChoice, files: tuple[Section, ...]) -> Briefing:
    """A file of the persona's own stands in place of the one of that name that is told otherwise."""
    tools = {name: spec for name, spec in plain.rules.tools.items() if persona.leaves(name)}
    own = {section.name for section in files}
    return replace(
        plain,
        rules=replace(plain.rules, tools=tools),
        files=(*files, *(section for section in plain.files if section.name not in own)),
        persona=choice,
        prompt=persona.prompt.strip(),
        model=persona.model,
        max_tokens=persona.max_tokens,
    )
