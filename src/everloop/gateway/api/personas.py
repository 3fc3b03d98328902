"""Personas: who the agent is at which place. What a persona is told and may do is the owner's to say."""

from collections.abc import Awaitable
from typing import Any, TypeVar

from msgspec import UNSET

from ...errors import HomeError, ModelMissing, SettingsError
from ..http.errors import Refused
from .persona_shapes import ChangingPersona, PersonaAnswering, PersonaList, PersonaSaved, PersonaTold, shown
from .route import ApiAnswer, ApiCall
from .sessions import conversation_in

_Done = TypeVar("_Done")


async def list_personas(call: ApiCall) -> ApiAnswer:
    desk = call.agent.personas
    named = (await desk.all()).named.values()
    return PersonaList(
        [shown(each, desk.files(each.name)) for each in named], await desk.tools(), list(desk.file_names)
    )


async def add_persona(call: ApiCall) -> ApiAnswer:
    desk, asked = call.agent.personas, call.body
    persona = await _done(desk.add(asked.name, _fields(asked), asked.files))
    return PersonaSaved(shown(persona, desk.files(persona.name)))


async def change_persona(call: ApiCall) -> ApiAnswer:
    desk, asked = call.agent.personas, call.body
    persona = await _done(desk.edit(call.path.name, _fields(asked), asked.files))
    return PersonaSaved(shown(persona, desk.files(persona.name)))


async def remove_persona(call: ApiCall) -> ApiAnswer:
    return PersonaTold(await _done(call.agent.personas.remove(call.path.name)))


async def use_persona(call: ApiCall) -> ApiAnswer:
    return PersonaTold(await _done(call.agent.personas.use(call.path.name, call.body.place)))


async def persona_of_session(call: ApiCall) -> ApiAnswer:
    found = await conversation_in(call)
    choice = await call.agent.personas.answering(found.id, found.session, call.principal.user, call.principal.role)
    return PersonaAnswering(choice.name, choice.by, choice.sentence)


def _fields(asked: ChangingPersona) -> dict[str, Any]:
    names = ("prompt", "tools", "model", "max_tokens", "open_to", "places")
    return {name: value for name in names if (value := getattr(asked, name)) is not UNSET}


async def _done(deed: Awaitable[_Done]) -> _Done:
    try:
        return await deed
    except ModelMissing as error:
        raise Refused(409, "model_missing", f"{str(error).rstrip('.')}.") from error
    except (SettingsError, HomeError) as error:
        raise Refused(409, "setting_refused", f"{str(error).rstrip('.')}.") from error
