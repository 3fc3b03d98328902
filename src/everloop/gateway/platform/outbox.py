"""The way out for bots: what the agent says by itself, and answers whose request was gone, fetched by long polling.

A bot gets what is meant for the people of the platforms that its token names, and says what became of it. What it does
not confirm within its time comes again, under the same id.
"""

import asyncio
from typing import Annotated, Any, Literal

from aiohttp import web
from msgspec import Meta, Struct

from ...core.mail import Address
from ...core.people import OWNER
from ...ports.polled import PolledAnswer, PolledPlaces, PolledReceipt, PolledState
from ...readings.keys import escaped, name_of
from ..access.guard import admit_again
from ..access.permissions import BOT, Route
from ..access.principal import Principal, principal_of
from ..http.bodies import read_body, read_json, shaped
from ..http.errors import Refused
from ..http.turn_errors import is_there
from ..ports import TurnAgent
from ..signed_links import Links
from .reply import in_our_shape
from .to_inbound import CHANNEL

LOOK = 0.5  # seconds between two looks whether something was said
LONGEST_WAIT = 60
SEVERAL = "platform"  # the one field of a query that may be given more than once
MOST = 100  # answers at once
MOST_RECEIPTS = 1000
LARGEST = 1_000_000  # bytes of receipts
_SAID: dict[str, PolledState] = {"sent": "sent", "failed": "failed", "later": "pending"}


class PolledQuery(Struct, frozen=True):
    """`wait` are seconds for which a request may stay open, `seconds` those that a bot has for what it is given."""

    wait: Annotated[int, Meta(ge=0, le=LONGEST_WAIT)] = 0
    limit: Annotated[int, Meta(ge=1, le=MOST)] = 20
    seconds: Annotated[int, Meta(ge=1, le=3600)] = 60


class BotReceipt(Struct, frozen=True):
    """`later`: it comes again, after so many seconds."""

    id: Annotated[str, Meta(min_length=1, max_length=100)]
    state: Literal["sent", "failed", "later"] = "sent"
    why: Annotated[str, Meta(max_length=500)] = ""
    seconds: Annotated[float, Meta(ge=0, le=86_400)] = 0.0


class BotReceipts(Struct, frozen=True):
    receipts: Annotated[list[BotReceipt], Meta(min_length=1, max_length=MOST_RECEIPTS)]


def outbox_routes(agent: TurnAgent, links: Links) -> list[Route]:
    async def fetch(request: web.Request) -> web.StreamResponse:
        asked, places = _asked(request), places_of(principal_of(request), request.query.getall(SEVERAL, []))
        found = await _wait_for(agent, request, asked, places)
        try:
            if found:
                await admit_again(request)
            bot = principal_of(request).user
            items = [item_of(each, bot, await links(each.thread, each.outbound.files)) for each in found]
            response = web.json_response({"items": items})
            await response.prepare(request)
            await response.write_eof()
            if not is_there(request):
                raise ConnectionResetError("whoever asked has gone")
        except BaseException:  # also when the gateway ends: what nobody was given can be had at once
            await agent.polled.put_back(found)
            raise
        return response

    async def confirm(request: web.Request) -> web.StreamResponse:
        places = places_of(principal_of(request), [])
        said = shaped(read_json(await read_body(request, LARGEST)), BotReceipts).receipts
        receipts = [PolledReceipt(each.id, _SAID[each.state], each.why, each.seconds) for each in said]
        unknown = await agent.polled.settle(places, receipts)
        return web.json_response({"settled": len(receipts) - len(unknown), "unknown": unknown})

    return [
        Route("GET", "/message/outbox", in_our_shape(fetch), BOT, allows_head=False),
        Route("POST", "/message/outbox/receipts", in_our_shape(confirm), BOT),
    ]


def _asked(request: web.Request) -> PolledQuery:
    """Raises Refused, which names what is wrong."""
    given = {name: value for name, value in request.query.items() if name != SEVERAL}
    if unknown := [name for name in given if name not in PolledQuery.__struct_fields__]:
        fields = ", ".join((*PolledQuery.__struct_fields__, SEVERAL))
        raise Refused(400, "invalid_request", f"There is no {unknown[0][:50]!r} here; there are {fields}.")
    numbers = {name: int(text) if text.isascii() and text.isdigit() else text for name, text in given.items()}
    return shaped(numbers, PolledQuery)


def places_of(principal: Principal, platforms: list[str]) -> PolledPlaces:
    """Where a bot may fetch: at the places of these platforms, or of all that its token names. Raises Refused."""
    for platform in platforms:
        principal.check_speaks_for(platform)
    keys = {escaped(each) for each in platforms} or principal.platforms
    prefixes = [f"{CHANNEL}:{key}/" for key in keys]
    if principal.user != OWNER:  # as `to_inbound` names the places of another's bot
        prefixes += [f"{CHANNEL}:{escaped(f'{escaped(principal.user)}/{name_of(key)}')}/" for key in keys]
    return PolledPlaces(CHANNEL, principal.user, tuple(sorted(prefixes)))


async def _wait_for(
    agent: TurnAgent, request: web.Request, asked: PolledQuery, places: PolledPlaces
) -> list[PolledAnswer]:
    """What there is, as soon as there is something. Raises ConnectionError when nobody is there any more."""
    loop = asyncio.get_running_loop()
    until = loop.time() + asked.wait
    while is_there(request):
        found = await agent.polled.take(places, asked.limit, float(asked.seconds))
        if found or loop.time() >= until:
            return found
        await asyncio.sleep(min(LOOK, max(0.0, until - loop.time())))
    raise ConnectionResetError("whoever asked has gone")


def item_of(answer: PolledAnswer, bot: str, files: list[dict[str, str]]) -> dict[str, Any]:
    """As a bot is given it. A name that is too long for a key is told by its hash there: then it is null."""
    outbound, approval = answer.outbound, answer.outbound.approval
    return {
        "id": answer.id,
        **place_in(outbound.address, bot),
        "session": str(outbound.address),
        "kind": outbound.kind,
        "content": outbound.text,
        "failed": outbound.failed,
        "files": files,
        "in_reply_to": _replied_to(answer, bot),
        "approval": {"id": approval, "allow": f"/approve {approval}", "deny": f"/approve {approval} no"}
        if approval
        else None,
        "at": answer.at,
        "attempt": answer.attempts,
        "maybe_repeated": answer.unsure,
    }


def place_in(address: Address, bot: str) -> dict[str, str | None]:
    """What a bot calls a place: the reverse of `keys.place_of`."""
    platform, server, place = [*address.chat.split("/"), "", ""][:3]
    known_as = _name(platform) or ""
    return {
        "platform": known_as if bot == OWNER else known_as.removeprefix(f"{escaped(bot)}/"),
        "platform_server_id": _name(server),
        "platform_channel_id": None if place.startswith("@") else _name(place),
        "platform_thread_id": _name(address.thread),
        "platform_user_id": _name(place[1:]) if place.startswith("@") else None,
    }


def _name(key: str) -> str | None:
    return name_of(key) if key and "!" not in key else None


def _replied_to(answer: PolledAnswer, bot: str) -> list[str]:
    """The ids that the bot has given to the messages which this answers."""
    prefix = f"{escaped(bot)}/{answer.outbound.address}/"
    named = [event.removeprefix(prefix) for event in answer.events if event.startswith(prefix)]
    return [name for key in named if (name := _name(key))]
