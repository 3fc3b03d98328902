"""/v1/chat/completions: https://platform.openai.com/docs/api-reference/chat"""

import secrets
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from ...core.unknown import with_unknown
from ..bodies import read_body, read_json
from ..desk import Answer, Desk
from ..drafts import Draft, Piece
from ..failures import explain_turn
from ..repeats import Attempt, Repeats
from ..sse import Sse, with_beats
from . import chat_shapes
from .answering import NO_RETRY, answered, chat_usage, error_of, named, now
from .asking import Asking
from .letters import write
from .trimming import Trimming, trimmed

FINISH = {"stop": "stop", "length": "length", "calls": "tool_calls", "refused": "content_filter"}
BETWEEN = "\n\n"  # what is said in two model calls of one turn


async def complete(house: Desk, repeats: Repeats, request: web.Request) -> web.StreamResponse:
    plain = read_json(await read_body(request))
    asking = chat_shapes.read(plain)
    inbound = await write(house, request, asking, plain)
    with repeats.attempt(house.store, request, inbound).waits() as attempt:
        if asking.stream:
            return await _stream(house, request, attempt, asking)
        return await answered(house, request, attempt, lambda answer: _completion(answer, asking))


def _completion(answer: Answer, asking: Asking) -> dict[str, Any]:
    content = with_unknown(trimmed(answer.content, asking.json, asking.stops), answer.unknown)
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
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
    return f"chatcmpl-{secrets.token_hex(12)}"


async def _stream(house: Desk, request: web.Request, attempt: Attempt, asking: Asking) -> web.StreamResponse:
    sse = Sse(request, NO_RETRY)
    chunks, trimming = _Chunks(asking.brought.model), Trimming(asking.json, asking.stops)
    draft = Draft()
    try:
        async for event in with_beats(house.watch(attempt.inbound, attempt.again), sse):
            if event.name == "answer":
                answer = event.data["answer"]
                missing = draft.complete(answer)
                pieces = [*(trimming.pieces(missing) if missing else ()), *trimming.rest()]
                for chunk in chunks.end(answer, pieces, asking.usage):
                    await sse.send(chunk)
            elif piece := draft.follow(event):
                for shown in trimming.pieces(piece):
                    await sse.send(chunks.more(shown))
            elif draft.works(event) and not sse.begun:
                await sse.send(chunks.begin())
        await sse.send("[DONE]")
    except ConnectionError:
        pass  # whoever asked has gone; the turn goes on without them
    except Exception as error:  # the answer has begun with a 200, so what fails is told inside
        refused = await explain_turn(house.store, attempt.inbound, error)
        if not sse.begun:
            raise refused from error
        await sse.send({"error": error_of(refused)})
    return sse.response


class _Chunks:
    """The pieces of one completion."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._id = _id()
        self._created = now()
        self._call = 0
        self._begun = False
        self._said = False

    def more(self, piece: Piece) -> dict[str, Any]:
        delta: dict[str, Any] = {} if self._begun else {"role": "assistant"}
        self._begun = True
        if piece.text:
            apart = self._said and piece.call != self._call
            delta["content"] = f"{BETWEEN if apart else ''}{piece.text}"
            self._call, self._said = piece.call, True
        if piece.reasoning:
            delta["reasoning_content"] = piece.reasoning
        return self._chunk(delta)

    def begin(self) -> dict[str, Any]:
        """A sign of life, before anything is said: everloop's own tools run."""
        self._begun = True
        return self._chunk({"role": "assistant", "content": ""})

    def end(self, answer: Answer, missing: Sequence[Piece], usage: bool) -> list[dict[str, Any]]:
        chunks = [self.more(piece) for piece in missing]
        delta: dict[str, Any] = {} if self._begun else {"role": "assistant", "content": ""}
        if answer.calls:
            delta["tool_calls"] = [{"index": index, **call} for index, call in enumerate(_plain(answer))]
            chunks.append(self._chunk(delta))
            delta = {}
        chunks.append(self._chunk(delta, _finish(answer)))
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
