"""Skills of whoever asks: seen, installed from an archive once it was reviewed, removed."""

from collections.abc import Awaitable
from typing import TypeVar

from ...errors import HomeError, MailRefused
from ..http.errors import Refused, sentence
from .route import ApiAnswer, ApiCall
from .skill_shapes import SkillDetail, SkillList, SkillReviewed, SkillTold

LARGEST = 20_000_000  # bytes of an archive
_Done = TypeVar("_Done")


async def list_skills(call: ApiCall) -> ApiAnswer:
    asks = call.principal
    return SkillList(list(await call.agent.skills.rows(asks.user, asks.role)))


async def show_skill(call: ApiCall) -> ApiAnswer:
    asks = call.principal
    try:
        return SkillDetail(await call.agent.skills.show(asks.user, asks.role, call.path.name))
    except MailRefused as error:
        raise Refused(404, "not_found", sentence(error)) from error


async def review_skill(call: ApiCall) -> ApiAnswer:
    asked, person = call.body, call.principal.user
    data = await _archive(call)
    return SkillReviewed(await call.agent.skills.review(person, data, asked.name or asked.file, asked.path))


async def install_skill(call: ApiCall) -> ApiAnswer:
    asked, person, skills = call.body, call.principal.user, call.agent.skills
    data, source = await _archive(call), asked.name or asked.file
    told = skills.install(person, data, source, asked.path, pin=asked.pin, replace=asked.replace)
    return SkillTold(await _done(told))


async def remove_skill(call: ApiCall) -> ApiAnswer:
    return SkillTold(await _done(call.agent.skills.remove(call.principal.user, call.path.name)))


async def accept_skill(call: ApiCall) -> ApiAnswer:
    asked = call.body
    told = await call.agent.skills.accept(call.principal.user, call.path.name, asked.allow, asked.held)
    return SkillTold(told)


async def _archive(call: ApiCall) -> bytes:
    """What whoever asks has sent before."""
    owner, ref = call.principal.user, call.body.file
    try:
        async with call.agent.files.open(owner, ref) as file:
            if file.size > LARGEST:
                raise Refused(413, "too_large", f"An archive has at most {LARGEST:,} bytes.")
        return await call.agent.files.get(owner, ref)
    except (OSError, ValueError) as error:
        raise Refused(404, "not_found", "There is no such file of yours.") from error


async def _done(deed: Awaitable[_Done]) -> _Done:
    try:
        return await deed
    except HomeError as error:
        raise Refused(409, "home", f"{str(error).rstrip('.')}.") from error
