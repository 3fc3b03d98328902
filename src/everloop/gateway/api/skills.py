"""Skills of whoever asks: seen, installed from an archive once it was reviewed, removed."""

from collections.abc import Awaitable
from typing import TypeVar

from ...errors import HomeError
from ..http.errors import Refused
from .route import ApiAnswer, ApiCall
from .skill_shapes import SkillDetail, SkillList, SkillReviewed, SkillTold

LARGEST = 20_000_000  # bytes of an archive
_Done = TypeVar("_Done")


async def list_skills(call: ApiCall) -> ApiAnswer:
    asks = call.principal
    return SkillList(list(await call.agent.skills.rows(asks.user, asks.role)))


async def show_skill(call: ApiCall) -> ApiAnswer:
    asks = call.principal
    return SkillDetail(await call.agent.skills.show(asks.user, asks.role, call.path.name))


async def review_skill(call: ApiCall) -> ApiAnswer:
    asked = call.query
    data = await _archive(call)
    return SkillReviewed(await call.agent.skills.review(call.principal.user, data, asked.file, asked.path))


async def install_skill(call: ApiCall) -> ApiAnswer:
    asked, skills = call.query, call.agent.skills
    data = await _archive(call)
    return SkillTold(
        await _done(
            skills.install(call.principal.user, data, asked.file, asked.path, pin=asked.pin, replace=asked.replace)
        )
    )


async def remove_skill(call: ApiCall) -> ApiAnswer:
    return SkillTold(await _done(call.agent.skills.remove(call.principal.user, call.path.name)))


async def accept_skill(call: ApiCall) -> ApiAnswer:
    asked = call.body
    told = await call.agent.skills.accept(call.principal.user, call.path.name, asked.allow, asked.held)
    return SkillTold(told)


async def _archive(call: ApiCall) -> bytes:
    pieces, size = [], 0
    async for piece in call.request.content.iter_any():
        size += len(piece)
        if size > LARGEST:
            raise Refused(413, "too_large", f"An archive has at most {LARGEST:,} bytes.")
        pieces.append(piece)
    return b"".join(pieces)


async def _done(deed: Awaitable[_Done]) -> _Done:
    try:
        return await deed
    except HomeError as error:
        raise Refused(409, "home", f"{str(error).rstrip('.')}.") from error
