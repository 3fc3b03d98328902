"""The platform door, for bots that live elsewhere: one request a message, one answer, whole or as it comes.

A platform's place becomes a session of its own, `platform:<platform>/<server>/<channel>[:<thread>]`, and whoever wrote
the message speaks there as `<platform>:<user>`: someone whom nobody has introduced is a guest, whatever the bot may do.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from aiohttp import web
from msgspec import Meta, Struct

from ..core.keys import author_of, escaped, place_of
from ..core.log import CallReturned, ModelSaid
from ..core.mail import Address, Inbound, Said
from ..core.message import Part, Text
from ..core.ports import Event, Store
from .blobs import blob_of, check_size, enclosed
from .bodies import read_body, read_json, shaped
from .desk import Answer, Desk
from .drafts import Draft, Piece
from .failures import explain_turn
from .giving import give
from .identity import who
from .links import links_of
from .principal import lacking, principal_of
from .refusals import Refused, explain
from .repeats import Attempt, Repeats, event_of
from .sse import Sse, with_beats

CHANNEL = "platform"
MOST_ATTACHMENTS = 20
_Name = Annotated[str, Meta(max_length=200)]
_Given = Annotated[str, Meta(min_length=1, max_length=200)]


class Attachment(Struct):
    url: Annotated[str, Meta(min_length=1)]  # or all of it, as a data: URL
    filename: _Name | None = None
    mime_type: _Name | None = None
    size_bytes: int | None = None


class Message(Struct):
    platform: _Given
    platform_user_id: _Given
    content: str = ""
    platform_server_id: _Name | None = None
    platform_channel_id: _Name | None = None
    platform_thread_id: _Name | None = None
    attachments: Annotated[list[Attachment], Meta(max_length=MOST_ATTACHMENTS)] = []
    id: _Name | None = None


def routes(house: Desk) -> list[web.RouteDef]:
    """Every request has been authenticated: `request["principal"]` is the bot's."""

    repeats = Repeats()

    async def tell(answer: Answer) -> web.Response:
        return web.json_response(await _told(house.store, answer))

    async def message(request: web.Request) -> web.StreamResponse:
        with repeats.attempt(house.store, request, await _letter(house, request)).waits() as attempt:
            return await give(house, request, attempt, tell)

    async def stream(request: web.Request) -> web.StreamResponse:
        with repeats.attempt(house.store, request, await _letter(house, request)).waits() as attempt:
            return await _stream(house, request, attempt)

    return [web.post("/message", _in_our_shape(message)), web.post("/message/stream", _in_our_shape(stream))]


async def _letter(house: Desk, request: web.Request) -> Inbound:
    bot = who(request)
    plain = read_json(await read_body(request))
    message = shaped(plain, Message)
    author = author_of(message.platform, message.platform_user_id)
    address = _address(message)
    parts: list[Part] = [Text(message.content)] if message.content.strip() else []
    for attachment in message.attachments:
        parts.append(await _part(house, attachment, author))
    if not parts:
        raise Refused("The message is empty.", "message_refused", param="content")
    row = await house.store.session(str(address))
    if row is not None and row.owner != bot:
        raise Refused("This place belongs to someone else's bot.", "session_not_found", status=404)
    letter = Said(tuple(parts), author, str(address), unattended=True)
    principal = principal_of(request)
    if scope := lacking(principal, letter):
        raise Refused(f"This needs a token of the scope {scope}.", "forbidden", status=403)
    named = f"{escaped(bot)}/{address}/{escaped(message.id)}" if message.id else ""
    event = named or event_of(bot, principal.credential, CHANNEL, plain)
    return Inbound(address, event, letter, bot)


def _address(message: Message) -> Address:
    """Where a message was written. Without a channel it is a conversation of the two alone."""
    return place_of(
        *(CHANNEL, message.platform, message.platform_server_id or ""),
        user=message.platform_user_id,
        room=message.platform_channel_id or "",
        thread=message.platform_thread_id or "",
    )


async def _part(house: Desk, attachment: Attachment, author: str) -> Part:
    """What it is said to be is not believed; its bytes tell. But what is said to be too large need not be fetched."""
    check_size(attachment.size_bytes or 0)
    return await enclosed(house, blob_of(attachment.url, attachment.filename or ""), author)


async def _told(store: Store, answer: Answer) -> dict[str, Any]:
    return {
        "content": answer.told,
        "unknown": answer.unknown,
        "files": links_of(answer.turn.partition(":")[0], answer.files),
        "error": None,
        "tool_calls_metadata": await _calls(store, answer.turn),
    }


async def _calls(store: Store, turn: str) -> list[dict[str, Any]]:
    """The tool calls of a turn, in their order, with what came of them."""
    thread, _, began = turn.partition(":")
    found: dict[tuple[int, int], dict[str, Any]] = {}
    if not thread:
        return []
    for seq, entry in enumerate(await store.read(thread, int(began) - 1), int(began)):
        match entry:
            case ModelSaid(calls=calls):
                for place, call in enumerate(calls):
                    found[seq, place] = {"name": call.name, "arguments": call.args, "outcome": "", "result": ""}
            case CallReturned(answer=answer, place=place) if (answer, place) in found:
                found[answer, place] |= {"outcome": entry.outcome, "result": entry.text}
    return list(found.values())


async def _stream(house: Desk, request: web.Request, attempt: Attempt) -> web.StreamResponse:
    sse = Sse(request, {})
    draft = Draft()
    try:
        async for event in with_beats(house.watch(attempt.inbound, attempt.again), sse):
            if event.name == "answer":
                answer = event.data["answer"]
                if missing := draft.complete(answer):
                    await _send_piece(sse, missing)
                await sse.send(await _told(house.store, answer), "done")
            else:
                await _show(sse, draft, event)
    except ConnectionError:
        pass  # the bot has gone; the turn goes on without it
    except Exception as error:  # the answer has begun with a 200, so what fails is told inside
        refused = await explain_turn(house.store, attempt.inbound, error)
        if not sse.begun:
            raise refused from error
        await sse.send({"error": _error(refused)}, "error")
    return sse.response


async def _show(sse: Sse, draft: Draft, event: Event) -> None:
    if piece := draft.follow(event):
        await _send_piece(sse, piece)
    elif event.name == "tool_call" and draft.ours:
        await sse.send({"name": event.data["name"], "arguments": event.data["args"]}, "tool_call")
    elif event.name == "tool_result" and draft.ours:
        told = {name: event.data[name] for name in ("name", "outcome", "text")}
        await sse.send({"name": told["name"], "outcome": told["outcome"], "result": told["text"]}, "tool_result")


async def _send_piece(sse: Sse, piece: Piece) -> None:
    if piece.reasoning:
        await sse.send({"delta": piece.reasoning}, "thinking")
    if piece.text:
        await sse.send({"delta": piece.text, "message": piece.call}, "content")


def _error(refused: Refused) -> dict[str, Any]:
    return {"code": refused.code, "message": str(refused), **refused.told}


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _in_our_shape(handler: Handler) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except ConnectionError:
            raise  # nobody is there any more
        except Exception as error:  # the border to a stranger's request
            refused = explain(error)
            told = {"content": "", "files": [], "unknown": [], "error": _error(refused), "tool_calls_metadata": []}
            return web.json_response(told, status=refused.status)

    return answer
