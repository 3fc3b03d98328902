"""/v1/chat/completions: https://platform.openai.com/docs/api-reference/chat"""

import os
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from ...core.wording import with_unknown
from ...ports.events import Answer, ToolCalled, ToolReturned
from ..http.bodies import read_body, read_json
from ..http.errors import Refused
from ..http.repeats import Repeats
from ..http.streaming import AnswerDelta, SseEvent, stream
from ..ports import TurnAgent
from . import chat_shapes
from .reply import NO_RETRY, Attached, answered, attached_to, chat_usage, error_of, named, now
from .request import ClientRequest
from .to_inbound import write
from .trim import StreamTrimmer, trimmed

FINISH = {"stop": "stop", "length": "length", "calls": "tool_calls", "refused": "content_filter"}
BETWEEN = "\n\n"  # what is said in two model calls of one turn


async def complete(agent: TurnAgent, repeats: Repeats, request: web.Request) -> web.StreamResponse:
    plain = read_json(await read_body(request))
    asking = chat_shapes.read(plain)
    inbound, admit = await write(agent, request, asking, plain)
    with repeats.attempt(agent.store, request, inbound, admit) as attempt:
        if asking.stream:
            return await stream(agent, request, attempt, _ChatStream(agent, asking), NO_RETRY)
        return await answered(agent, request, attempt, lambda answer, attached: _completion(answer, asking, attached))


def _completion(answer: Answer, asking: ClientRequest, attached: Attached) -> dict[str, Any]:
    content = with_unknown(trimmed(answer.content, asking.json, asking.stops), answer.unknown)
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None, **attached}
    if answer.calls:
        message["content"] = content or None
        message["tool_calls"] = _plain(answer)
    choice = {"index": 0, "message": message, "finish_reason": _finish(answer), "logprobs": None}
    return {
        "id": _id(),
        "object": "chat.completion",
        "created": now(),
        "model": answer.model or asking.brought.model,
        "choices": [choice],
        "usage": chat_usage(answer.usage),
    }


def _finish(answer: Answer) -> str:
    return "tool_calls" if answer.calls else FINISH[answer.finish] if answer.finish != "calls" else "stop"


def _plain(answer: Answer) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.args}}
        for call in named(answer.calls)
    ]


def _id() -> str:
    return f"chatcmpl-{os.urandom(12).hex()}"


class _ChatStream:
    def __init__(self, agent: TurnAgent, asking: ClientRequest) -> None:
        self._agent = agent
        self._usage = asking.usage
        self._chunks = _CompletionChunks(asking.brought.model)
        self._trimming = StreamTrimmer(asking.json, asking.stops)

    def more(self, piece: AnswerDelta) -> list[SseEvent]:
        return [(self._chunks.more(shown), "") for shown in self._trimming.pieces(piece)]

    def work(self, event: ToolCalled | ToolReturned) -> list[SseEvent]:
        return [] if self._chunks.begun else [(self._chunks.begin(), "")]

    async def end(self, answer: Answer, missing: AnswerDelta | None) -> list[SseEvent]:
        pieces = [*(self._trimming.pieces(missing) if missing else ()), *self._trimming.rest()]
        attached = await attached_to(self._agent, answer)
        return [*((chunk, "") for chunk in self._chunks.end(answer, pieces, self._usage, attached)), ("[DONE]", "")]

    def fail(self, refused: Refused) -> list[SseEvent]:
        return [({"error": error_of(refused)}, "")]


class _CompletionChunks:
    """The pieces of one completion."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._id = _id()
        self._created = now()
        self._call = 0
        self.begun = False
        self._said = False

    def more(self, piece: AnswerDelta) -> dict[str, Any]:
        delta: dict[str, Any] = {} if self.begun else {"role": "assistant"}
        self.begun = True
        if piece.text:
            apart = self._said and piece.call != self._call
            delta["content"] = f"{BETWEEN if apart else ''}{piece.text}"
            self._call, self._said = piece.call, True
        if piece.reasoning:
            delta["reasoning_content"] = piece.reasoning
        return self._chunk(delta)

    def begin(self) -> dict[str, Any]:
        """A sign of life, before anything is said: everloop's own tools run."""
        self.begun = True
        return self._chunk({"role": "assistant", "content": ""})

    def end(
        self, answer: Answer, missing: Sequence[AnswerDelta], usage: bool, attached: Attached
    ) -> list[dict[str, Any]]:
        chunks = [self.more(piece) for piece in missing]
        delta: dict[str, Any] = {} if self.begun else {"role": "assistant", "content": ""}
        if answer.calls:
            delta["tool_calls"] = [{"index": index, **call} for index, call in enumerate(_plain(answer))]
            chunks.append(self._chunk(delta))
            delta = {}
        chunks.append(self._chunk(delta | attached, _finish(answer)))
        if usage:
            chunks.append({**self._chunk({}), "choices": [], "usage": chat_usage(answer.usage)})
        return chunks

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}],
        }
