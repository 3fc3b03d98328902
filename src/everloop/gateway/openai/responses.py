"""/v1/responses: https://platform.openai.com/docs/api-reference/responses

A response is named by its session and by what the turn is called there, so that `previous_response_id` goes on in the
thread that made it.
"""

import base64
import binascii
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from aiohttp import web
from msgspec import structs

from ...core.log import UserSaid
from ...core.mail import Inbound, Said
from ...core.wording import with_unknown
from ...ports.events import Answer, ToolCalled, ToolReturned
from ..access.principal import principal_of
from ..http.bodies import read_body, read_json
from ..http.errors import Refused
from ..http.repeats import Attempt, Repeats
from ..http.streaming import AnswerDelta, SseEvent, stream
from ..ports import LetterStore, TurnAgent
from . import responses_shapes
from .reply import NO_RETRY, Attached, answered, attached_to, named, now, responses_usage
from .request import ClientRequest
from .to_inbound import write
from .trim import StreamTrimmer, trimmed

_GONE = "There is no response of this id."
_NOT_LAST = "That response is not the last of its conversation any more; only the last can be gone on from."
Body = dict[str, Any]


async def respond(agent: TurnAgent, repeats: Repeats, request: web.Request) -> web.StreamResponse:
    plain = read_json(await read_body(request))
    asking, previous = responses_shapes.read(plain)
    if previous:
        asking = structs.replace(asking, previous=await _session_of(agent.store, previous, principal_of(request).user))
    inbound, admit = await write(agent, request, asking, plain)
    with repeats.attempt(agent.store, request, inbound, admit) as attempt:
        made = _ResponseWriter(asking, responses_shapes.echo(plain), attempt)
        if asking.stream:
            return await stream(agent, request, attempt, _ResponsesStream(agent, made), NO_RETRY)
        return await answered(agent, request, attempt, made.whole)


def _name(inbound: Inbound) -> str:
    assert isinstance(inbound.letter, Said)
    assert inbound.letter.brought is not None
    name = msgspec.json.encode((str(inbound.address), inbound.letter.brought.id))
    return f"resp_{base64.urlsafe_b64encode(name).decode().rstrip('=')}"


async def _session_of(store: LetterStore, id: str, user: str) -> str:
    """The session that a response was made in. Raises Refused unless it can be gone on from."""
    gone = Refused(404, "previous_response_not_found", _GONE, param="previous_response_id")
    try:
        text = id.removeprefix("resp_")
        plain = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        session, turn = msgspec.json.decode(plain, type=tuple[str, str])
    except (binascii.Error, ValueError) as error:
        raise gone from error
    row = await store.session(session)
    if row is None or row.owner != user:
        raise gone
    said = [entry.brought for entry in await store.read(row.id) if isinstance(entry, UserSaid)]
    if not any(brought and brought.id == turn for brought in said):
        raise gone
    last = said[-1]
    if last is None or last.id != turn:
        raise Refused(409, "previous_response_not_last", _NOT_LAST, param="previous_response_id")
    return session


def _message(text: str, status: str = "completed", id: str = "") -> Body:
    content = [_part(text)] if status != "in_progress" else []
    return {
        "id": id or f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": content,
    }


def _part(text: str) -> Body:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _calls(answer: Answer) -> list[Body]:
    return [
        {
            "id": f"fc_{secrets.token_hex(12)}",
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.args,
            "status": "completed",
        }
        for call in named(answer.calls)
    ]


class _ResponseWriter:
    """One response, from its beginning to its end. What the request has said of itself is in it as it was said."""

    def __init__(self, asking: ClientRequest, echo: Body, attempt: Attempt) -> None:
        self.asking = asking
        self._echo = echo
        self._attempt = attempt
        self._created = now()

    def begun(self) -> Body:
        return self._shape("in_progress", [])

    def whole(self, answer: Answer, attached: Attached) -> Body:
        text = with_unknown(trimmed(answer.content, self.asking.json, ()), answer.unknown)
        said = [_message(text)] if text or not answer.calls else []
        told = self.completed(answer, [*said, *_calls(answer)], attached)
        return {**told, "model": answer.model or self.asking.brought.model}

    def completed(self, answer: Answer, output: list[Body], attached: Attached) -> Body:
        why = {"length": "max_output_tokens", "refused": "content_filter"}.get(answer.finish)
        return {
            **self._shape("incomplete" if why else "completed", output),
            "incomplete_details": {"reason": why} if why else None,
            "usage": responses_usage(answer.usage),
            **attached,
        }

    def failed(self, refused: Refused) -> Body:
        return {**self._shape("failed", []), "error": {"code": "server_error", "message": str(refused), **refused.told}}

    def _shape(self, status: str, output: list[Body]) -> Body:
        return {
            "id": _name(self._attempt.inbound),
            "object": "response",
            "created_at": self._created,
            "status": status,
            "model": self.asking.brought.model,
            "output": output,
            "error": None,
            "incomplete_details": None,
            "usage": None,
            **self._echo,
        }


class _ResponsesStream:
    def __init__(self, agent: TurnAgent, made: _ResponseWriter) -> None:
        self._agent = agent
        self._told = _ResponseEvents(made)
        self._trimming = StreamTrimmer(made.asking.json, ())

    def more(self, piece: AnswerDelta) -> Iterator[SseEvent]:
        for shown in self._trimming.pieces(piece):
            if shown.text:
                yield from _named(self._told.more(shown))

    def work(self, event: ToolCalled | ToolReturned) -> Iterator[SseEvent]:
        return _named(self._told.begin())

    async def end(self, answer: Answer, missing: AnswerDelta | None) -> Iterator[SseEvent]:
        pieces = [*(self._trimming.pieces(missing) if missing else ()), *self._trimming.rest()]
        return _named(self._told.end(answer, pieces, await attached_to(self._agent, answer)))

    def fail(self, refused: Refused) -> Iterator[SseEvent]:
        return _named(self._told.fail(refused))


def _named(events: Iterator[Body]) -> Iterator[SseEvent]:
    return ((event, event["type"]) for event in events)


class _ResponseEvents:
    """The events of one streamed response. What is said in each model call is a message of its own."""

    def __init__(self, made: _ResponseWriter) -> None:
        self._made = made
        self._number = 0
        self._output: list[Body] = []
        self._call = 0
        self._message = ""  # the id of the message that is being said
        self._text = ""

    def more(self, piece: AnswerDelta) -> Iterator[Body]:
        yield from self.begin()
        if not self._message or piece.call != self._call:
            yield from self._finish_message()
            self._call, self._message, self._text = piece.call, f"msg_{secrets.token_hex(12)}", ""
            yield self._event("output_item.added", **self._place, item=_message("", "in_progress", self._message))
            yield self._event("content_part.added", **self._here, part=_part(""))
        self._text += piece.text
        yield self._event("output_text.delta", **self._here, delta=piece.text, logprobs=[])

    def end(self, answer: Answer, missing: Sequence[AnswerDelta], attached: Attached) -> Iterator[Body]:
        yield from self.begin()
        for piece in missing:
            yield from self.more(piece)
        yield from self._finish_message()
        for item in _calls(answer):
            begun = {**item, "arguments": "", "status": "in_progress"}
            yield self._event("output_item.added", **self._place, item=begun)
            named_ = {**self._place, "item_id": item["id"]}
            yield self._event("function_call_arguments.delta", **named_, delta=item["arguments"])
            yield self._event("function_call_arguments.done", **named_, name=item["name"], arguments=item["arguments"])
            yield self._event("output_item.done", **self._place, item=item)
            self._output.append(item)
        response = self._made.completed(answer, self._output, attached)
        yield self._event(response["status"], response=response)

    def fail(self, refused: Refused) -> Iterator[Body]:
        yield from self.begin()
        yield self._event("failed", response=self._made.failed(refused))

    @property
    def _place(self) -> Body:
        return {"output_index": len(self._output)}

    @property
    def _here(self) -> Body:
        return {**self._place, "item_id": self._message, "content_index": 0}

    def begin(self) -> Iterator[Body]:
        if not self._number:
            yield self._event("created", response=self._made.begun())
            yield self._event("in_progress", response=self._made.begun())

    def _finish_message(self) -> Iterator[Body]:
        if not self._message:
            return
        item = _message(self._text, id=self._message)
        yield self._event("output_text.done", **self._here, text=self._text, logprobs=[])
        yield self._event("content_part.done", **self._here, part=_part(self._text))
        yield self._event("output_item.done", **self._place, item=item)
        self._output.append(item)
        self._message = ""

    def _event(self, kind: str, /, **fields: Any) -> Body:
        self._number += 1
        return {"type": f"response.{kind}", "sequence_number": self._number - 1, **fields}
