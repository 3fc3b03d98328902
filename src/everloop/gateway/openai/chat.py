"""/v1/chat/completions: https://platform.openai.com/docs/api-reference/chat"""

import secrets
from typing import Any

from aiohttp import web

from ...core.mail import Inbound
from ..bodies import read_body, read_json
from ..desk import Answer, Desk
from ..drafts import Draft, Piece
from ..refusals import explain
from ..sse import Sse, with_beats
from . import chat_shapes
from .answering import NO_RETRY, chat_usage, error_of, named, now
from .asking import Asking
from .letters import put_away, write

FINISH = {"stop": "stop", "length": "length", "calls": "tool_calls", "refused": "content_filter"}
BETWEEN = "\n\n"  # what is said in two model calls of one turn


async def complete(house: Desk, request: web.Request) -> web.StreamResponse:
    body = await read_body(request)
    asking = chat_shapes.read(read_json(body))
    inbound = await write(house, request, asking, body)
    if asking.stream:
        return await _stream(house, request, inbound, asking)
    answer = await house.answer(inbound)
    await put_away(house, inbound, answer)
    return web.json_response(_completion(answer, asking), headers=NO_RETRY)


def _completion(answer: Answer, asking: Asking) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.told, "refusal": None}
    if answer.calls:
        message["content"] = answer.told or None
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


async def _stream(house: Desk, request: web.Request, inbound: Inbound, asking: Asking) -> web.StreamResponse:
    sse = Sse(request, NO_RETRY)
    chunks = _Chunks(asking.brought.model)
    draft = Draft()
    try:
        async for event in with_beats(house.watch(inbound), sse):
            if event.name == "answer":
                answer = event.data["answer"]
                for chunk in chunks.end(answer, draft.complete(answer), asking.usage):
                    await sse.send(chunk)
                await put_away(house, inbound, answer)
            elif piece := draft.follow(event):
                await sse.send(chunks.more(piece))
        await sse.send("[DONE]")
    except ConnectionError:
        pass  # whoever asked has gone; the turn goes on without them
    except Exception as error:  # the answer has begun with a 200, so what fails is told inside
        if not sse.begun:
            raise
        await sse.send({"error": error_of(explain(error))})
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

    def end(self, answer: Answer, missing: Piece | None, usage: bool) -> list[dict[str, Any]]:
        self._model = answer.model or self._model
        chunks = [self.more(missing)] if missing else []
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
