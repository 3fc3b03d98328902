"""What is asked and told about personas."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ...readings.personas import LONGEST, Persona
from .shapes import ApiInput

_Open = Literal["user", "admin", "owner"]
_Name = Annotated[str, Meta(min_length=1, max_length=40)]
_Place = Annotated[str, Meta(min_length=1, max_length=600)]
_Tool = Annotated[str, Meta(min_length=1, max_length=100)]
_Files = dict[str, str]
_NONE: _Files = {}


class OfPersona(ApiInput, frozen=True):
    name: _Name


class ChangingPersona(ApiInput, frozen=True):
    """What is not said stays as it is. `tools` null are all that the role allows, [] none; an empty file goes."""

    prompt: Annotated[str, Meta(max_length=LONGEST)] | UnsetType = UNSET
    tools: Annotated[list[_Tool], Meta(max_length=200)] | UnsetType | None = UNSET
    model: Annotated[str, Meta(max_length=200)] | UnsetType = UNSET
    max_tokens: Annotated[int, Meta(ge=1)] | UnsetType | None = UNSET
    open_to: _Open | UnsetType = UNSET
    places: Annotated[list[_Place], Meta(max_length=500)] | UnsetType = UNSET
    files: _Files = _NONE


class AddingPersona(ChangingPersona, frozen=True, kw_only=True):
    name: _Name


class UsingPersona(ApiInput, frozen=True):
    """`place`: default, channel:…, server:…, chat:… or thread:…"""

    place: _Place


class PersonaShown(Struct, frozen=True):
    name: str
    prompt: str
    tools: list[str] | None
    model: str
    max_tokens: int | None
    open_to: str
    places: list[str]
    files: _Files


class PersonaList(Struct, frozen=True):
    """`tools` are those that a persona can name, `files` those that it can have."""

    personas: list[PersonaShown]
    tools: list[str]
    files: list[str]


class PersonaSaved(Struct, frozen=True):
    persona: PersonaShown


class PersonaTold(Struct, frozen=True):
    """`told` says in a sentence who answers from now on."""

    told: str


class PersonaAnswering(Struct, frozen=True):
    """Which persona answers in a conversation, "" being none, and the place that decided."""

    name: str
    by: str
    told: str


def shown(persona: Persona, files: _Files) -> PersonaShown:
    return PersonaShown(
        name=persona.name,
        prompt=persona.prompt,
        tools=None if persona.tools is None else list(persona.tools),
        model=persona.model,
        max_tokens=persona.max_tokens or None,
        open_to=persona.open_to.name.lower(),
        places=list(persona.places),
        files=files,
    )
