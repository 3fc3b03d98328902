"""The platform door, for bots that live elsewhere: one request a message, one answer, whole or as it comes.

A platform's place becomes a session of its own, `platform:<platform>/<server>/<channel>[:<thread>]`, and whoever wrote
the message speaks there as `<platform>:<user>`: someone whom nobody has introduced is a guest, whatever the bot may do.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, Any

from aiohttp import web
from msgspec import Meta, Struct

from ..core.events import Answer, ToolCalled, ToolReturned
from ..core.keys import author_of, escaped, place_of
from ..core.log import CallReturned
from ..core.mail import Address, Inbound, Said
from ..core.message import Part, Text
from ..core.people import chat_of
from ..core.ports import Store
from ..core.tool import ToolCall
from ..readings.calls import calls_in
from .blobs import blob_of, check_size, enclosed
from .bodies import read_body, read_json, shaped
from .desk import Desk
from .identity import who
from .links import links_of
from .principal import lacking, principal_of
from .refusals import Refused, explain
from .repeats import Repeats, event_of
from .streaming import Piece, Told, stream
from .whole_answer import give

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

    async def streamed(request: web.Request) -> web.StreamResponse:
        with repeats.attempt(house.store, request, await _letter(house, request)).waits() as attempt:
            return await stream(house, request, attempt, _Teller(house.store))

    return [web.post("/message", _in_our_shape(message)), web.post("/message/stream", _in_our_shape(streamed))]


async def _letter(house: Desk, request: web.Request) -> Inbound:
    bot = who(request)
    plain = read_json(await read_body(request))
    message = shaped(plain, Message)
    author = author_of(message.platform, message.platform_user_id)
    address = _address(message)
    whose = chat_of(CHANNEL, address.chat) if message.platform_channel_id else ""
    parts: list[Part] = [Text(message.content)] if message.content.strip() else []
    for attachment in message.attachments:
        parts.append(await _part(house, attachment, whose or author))
    if not parts:
        raise Refused("The message is empty.", "message_refused", param="content")
    row = await house.store.session(str(address))
    if row is not None and row.owner != bot:
        raise Refused("This place belongs to someone else's bot.", "session_not_found", status=404)
    letter = Said(tuple(parts), author, str(address), unattended=True, principal=whose)
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


async def _part(house: Desk, attachment: Attachment, owner: str) -> Part:
    """What it is said to be is not believed; its bytes tell. But what is said to be too large need not be fetched."""
    check_size(attachment.size_bytes or 0)
    return await enclosed(house, blob_of(attachment.url, attachment.filename or ""), owner)


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
    if not thread:
        return []
    records = calls_in(int(began), await store.read(thread, int(began) - 1))
    return [_described(each.call, each.returned) for each in records if each.call]


def _described(call: ToolCall, came: CallReturned | None) -> dict[str, Any]:
    told = {"outcome": came.outcome, "result": came.text} if came else {"outcome": "", "result": ""}
    return {"name": call.name, "arguments": call.args, **told}


class _Teller:
    def __init__(self, store: Store) -> None:
        self._store = store

    def more(self, piece: Piece) -> Iterator[Told]:
        if piece.reasoning:
            yield {"delta": piece.reasoning}, "thinking"
        if piece.text:
            yield {"delta": piece.text, "message": piece.call}, "content"

    def work(self, event: ToolCalled | ToolReturned) -> Iterator[Told]:
        if isinstance(event, ToolCalled):
            yield {"name": event.tool, "arguments": event.args}, "tool_call"
        else:
            yield {"name": event.tool, "outcome": event.outcome, "result": event.text}, "tool_result"

    async def end(self, answer: Answer, missing: Piece | None) -> list[Told]:
        return [*(self.more(missing) if missing else ()), (await _told(self._store, answer), "done")]

    def fail(self, refused: Refused) -> list[Told]:
        return [({"error": _error(refused)}, "error")]


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
