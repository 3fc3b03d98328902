"""What a bot is given: the answer with its files and tool calls, whole or as it comes."""

from collections.abc import Iterator
from typing import Any

from aiohttp import web

from ...core.log import CallReturned
from ...core.mail import Inbound, Said
from ...core.tool import ToolCall
from ...ports import Log
from ...ports.events import Answer, ToolCalled, ToolReturned
from ...readings.calls import calls_in
from ..http.errors import Refused, refused_at_http_door
from ..http.handler import Handler
from ..http.repeats import Attempt
from ..http.streaming import AnswerDelta, SseEvent
from ..signed_links import Links


async def body_of(store: Log, answer: Answer, links: Links) -> dict[str, Any]:
    return {
        "content": answer.told,
        "unknown": answer.unknown,
        "files": await links(answer.turn.partition(":")[0], answer.files),
        "error": None,
        "tool_calls_metadata": await _calls(store, answer.turn),
    }


async def _calls(store: Log, turn: str) -> list[dict[str, Any]]:
    """The tool calls of a turn, in their order, with what came of them."""
    thread, _, began = turn.partition(":")
    if not thread:
        return []
    records = calls_in(int(began), await store.read(thread, int(began) - 1))
    return [_described(each.call, each.returned) for each in records if each.call]


def _described(call: ToolCall, came: CallReturned | None) -> dict[str, Any]:
    told = {"outcome": came.outcome, "result": came.text} if came else {"outcome": "", "result": ""}
    return {"name": call.name, "arguments": call.args, **told}


# The turn has come to a question, which waits in the outbox; so will the answer.
ASKED: dict[str, Any] = {
    "content": "",
    "files": [],
    "unknown": [],
    "error": None,
    "tool_calls_metadata": [],
    "waiting": True,
}


def is_asked(refused: Refused, inbound: Inbound) -> bool:
    """Whether nothing is wrong: whoever wrote can be asked, and somebody is."""
    letter = inbound.letter
    return refused.code == "session_waits" and isinstance(letter, Said) and not letter.unattended


class PlatformStream:
    def __init__(self, store: Log, links: Links, attempt: Attempt) -> None:
        self._store = store
        self._links = links
        self._attempt = attempt

    def more(self, piece: AnswerDelta) -> Iterator[SseEvent]:
        if piece.reasoning:
            yield {"delta": piece.reasoning}, "thinking"
        if piece.text:
            yield {"delta": piece.text, "message": piece.call}, "content"

    def work(self, event: ToolCalled | ToolReturned) -> Iterator[SseEvent]:
        if isinstance(event, ToolCalled):
            yield {"name": event.tool, "arguments": event.args}, "tool_call"
        else:
            yield {"name": event.tool, "outcome": event.outcome, "result": event.text}, "tool_result"

    async def end(self, answer: Answer, missing: AnswerDelta | None) -> list[SseEvent]:
        return [*(self.more(missing) if missing else ()), (await body_of(self._store, answer, self._links), "done")]

    def fail(self, refused: Refused) -> list[SseEvent]:
        if is_asked(refused, self._attempt.inbound):
            return [(ASKED, "waiting")]
        return [({"error": _error(refused)}, "error")]


def _error(refused: Refused) -> dict[str, Any]:
    return {"code": refused.code, "message": str(refused), **refused.told}


def in_our_shape(handler: Handler) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except ConnectionError:
            raise  # nobody is there any more
        except Exception as error:  # the border to a stranger's request
            refused = refused_at_http_door(error)
            told = {"content": "", "files": [], "unknown": [], "error": _error(refused), "tool_calls_metadata": []}
            return web.json_response(told, status=refused.status)

    return answer
