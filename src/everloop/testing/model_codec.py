"""A scripted line as the bytes of OpenAI's chat completions, and a request as what it showed the model.

`encode` turns a line into the few things a server has to do: write these bytes, pause, wait, answer with a status,
hang, cut. Neighbouring pieces are one write, so an answer without pauses is one.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, assert_never

import msgspec
from msgspec import Struct

from ..core.message import Message, said
from ..core.prompt import Finish, Usage
from ..core.tool import ToolCall
from ..errors import (
    BadRequest,
    ContextOverflow,
    HostTimeout,
    HostUnreachable,
    KeyRefused,
    ProviderError,
    RateLimited,
    StreamCut,
    UnknownModel,
)
from .script import (
    Act,
    Call,
    CutAt,
    Empty,
    End,
    Fail,
    Http,
    Line,
    Pause,
    Raw,
    Say,
    Shown,
    Spend,
    Think,
    Wait,
    acts_of,
    args_of,
    call_id,
    pieces_of,
    tokens_in,
)


class Cut(Struct, frozen=True):
    """Close the connection."""


class Hang(Struct, frozen=True):
    """Never go on."""


Move = bytes | Pause | Wait | Http | Cut | Hang


class Encoded(Struct, frozen=True):
    """A line as what a server does. A stream that is whole has usage and `[DONE]` after its last bytes."""

    moves: tuple[Move, ...]
    whole: bool
    usage: Usage | None
    output: int  # tokens, by the usual estimate

    def usage_for(self, asked: int) -> Usage:
        """The usage to report for a request of so many bytes."""
        return self.usage or Usage(tokens_in(asked), self.output)


class _Role(Struct):
    role: str


class _StreamOptions(Struct):
    include_usage: bool = False


class ChatRequest(Struct):
    """As much of a request as it takes to choose a line; `msgspec` skips the rest without building it."""

    messages: list[_Role]
    model: str = ""
    stream: bool = False
    stream_options: _StreamOptions | None = None

    @property
    def length(self) -> int:
        """The length of the conversation, as a ScriptedModel counts it: without the system's messages."""
        return sum(message.role not in ("system", "developer") for message in self.messages)

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage


parse_request = msgspec.json.Decoder(ChatRequest).decode

DONE = b"data: [DONE]\n\n"
FINISHES: dict[Finish, str] = {"stop": "stop", "length": "length", "calls": "tool_calls", "refused": "content_filter"}
_CREATED = int(time.time())
_NAMES = {"id": "chatcmpl-scripted", "created": _CREATED}


def encode(line: Line, model: str, messages: int) -> Encoded:
    """The line as a stream. `messages` is the length of the conversation, from which calls get their ids."""
    acts = acts_of(line)
    moves, whole = _up_to_the_break(list(_moves(acts, model, messages)), acts)
    return Encoded(tuple(_merged(moves)), whole, _usage_in(acts), tokens_in(_output_of(acts)))


def encode_whole(line: Line, model: str, messages: int, asked: int) -> Encoded:
    """The line as one JSON answer to a request of `asked` bytes that did not want a stream."""
    acts = acts_of(line)
    calls = [act for act in acts if isinstance(act, Call)]
    message: dict[str, Any] = {"role": "assistant", "content": _joined(acts, Say) or (None if calls else "")}
    if thought := _joined(acts, Think):
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = [_wire_call(call, messages, place) for place, call in enumerate(calls)]
    usage = _usage_in(acts) or Usage(tokens_in(asked), tokens_in(_output_of(acts)))
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_of(acts)}
    answer = {**_NAMES, "object": "chat.completion", "model": model, "choices": [choice], "usage": _wire_usage(usage)}
    before = [move for act in acts if not isinstance(act, Say | Think | Call) for move in _moves_of(act, False)]
    moves, _ = _up_to_the_break([*before, msgspec.json.encode(answer)], acts)
    return Encoded(tuple(_merged(moves)), False, usage, usage.output)


def usage_chunk(model: str, usage: Usage) -> bytes:
    chunk = {**_NAMES, "object": "chat.completion.chunk", "model": model, "choices": [], "usage": _wire_usage(usage)}
    return _event(chunk)


def http_of(error: ProviderError) -> Http:
    """The answer of a host that makes a client raise this error."""
    match error:
        case KeyRefused():
            return _refusal(401, error, "invalid_request_error", "invalid_api_key")
        case UnknownModel():
            return _refusal(404, error, "invalid_request_error", "model_not_found")
        case RateLimited(retry_after=seconds):
            headers = {} if seconds is None else {"Retry-After": f"{seconds:g}"}
            return _refusal(429, error, "requests", "rate_limit_exceeded", headers)
        case ContextOverflow():
            return _refusal(400, error, "invalid_request_error", "context_length_exceeded")
        case BadRequest():
            return _refusal(400, error, "invalid_request_error", None)
        case _:
            return _refusal(500, error, "server_error", None)


def shown_in(body: bytes) -> Shown:
    """What a request showed the model. The wire has no place for a tail of its own: it is in the messages."""
    request = msgspec.json.decode(body)
    messages = request["messages"]
    system = "\n".join(_text_of(each["content"]) for each in messages if each["role"] in ("system", "developer"))
    rest = tuple(_message_of(each) for each in messages if each["role"] in ("user", "assistant", "tool"))
    tools = tuple(tool["function"]["name"] for tool in request.get("tools", ()))
    return Shown(request.get("model", ""), system, rest, tools)


def _moves(acts: Sequence[Act], model: str, messages: int) -> Iterator[Move]:
    head, tail = _envelope(model)
    started = False
    place = 0
    for act in acts:
        deltas: list[dict[str, Any]] = []
        if isinstance(act, Say):
            deltas = [{"content": piece} for piece in pieces_of(act.text)]
        elif isinstance(act, Think):
            deltas = [{"reasoning_content": piece} for piece in pieces_of(act.text)]
        elif isinstance(act, Call):
            deltas = _call_deltas(act, messages, place)
            place += 1
        if not started and (deltas or _cuts(act)):
            yield head + b'{"role":"assistant","content":""}' + tail
        started = started or bool(deltas) or isinstance(act, Raw)
        for delta in deltas:
            yield head + msgspec.json.encode(delta) + tail
        yield from _moves_of(act, started)
    yield head + b"{}" + tail.replace(b"null", msgspec.json.encode(_finish_of(acts)))


def _cuts(act: Act) -> bool:
    """Whether the act cuts a stream, for which there has to be one; without a first byte the host is unreachable."""
    return isinstance(act, Fail) and isinstance(act.error, StreamCut)


def _moves_of(act: Act, started: bool) -> Iterator[Move]:
    """What an act does beside the deltas it may give."""
    match act:
        case Pause() | Wait() | Http():
            yield act
        case Raw(text=text):
            yield text.encode()
        case Fail(error=HostTimeout()):
            yield Hang()
        case Fail(error=StreamCut() | HostUnreachable()):
            yield Cut()
        case Fail(error=error):
            http = http_of(error)
            if started:  # the status has gone out already, so hosts put the error into the stream
                yield _event(http.body)
                yield Cut()
            else:
                yield http
        case Say() | Think() | Call() | Empty() | Spend() | End() | CutAt():
            pass
        case _:
            assert_never(act)


def _up_to_the_break(moves: list[Move], acts: Sequence[Act]) -> tuple[list[Move], bool]:
    """The moves as far as they are performed, and whether that is all of them."""
    for index, move in enumerate(moves):
        if isinstance(move, Http | Cut | Hang):
            return moves[: index + 1], False
    for act in acts:
        if isinstance(act, CutAt):
            return [*_until_byte(moves, act.byte), Cut()], False
    return moves, True


def _until_byte(moves: Sequence[Move], byte: int) -> Iterator[Move]:
    for move in moves:
        if isinstance(move, bytes):
            yield move[:byte]
            byte -= len(move)
            if byte <= 0:
                return
        else:
            yield move


def _merged(moves: Sequence[Move]) -> Iterator[Move]:
    run: list[bytes] = []
    for move in moves:
        if isinstance(move, bytes):
            run.append(move)
            continue
        if run:
            yield b"".join(run)
            run = []
        yield move
    if run:
        yield b"".join(run)


def _envelope(model: str) -> tuple[bytes, bytes]:
    """What stands before and after the delta in each chunk of an answer."""
    names = msgspec.json.encode({**_NAMES, "object": "chat.completion.chunk", "model": model})
    return b"data: " + names[:-1] + b',"choices":[{"index":0,"delta":', b',"finish_reason":null}]}\n\n'


def _event(value: Any) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def _call_deltas(call: Call, messages: int, place: int) -> list[dict[str, Any]]:
    wire = _wire_call(call, messages, place)
    first = {"index": place, **wire, "function": {"name": call.name, "arguments": ""}}
    rest = [{"index": place, "function": {"arguments": piece}} for piece in _args_in_pieces(call)]
    return [{"tool_calls": [piece]} for piece in (first, *rest)]


def _args_in_pieces(call: Call) -> Sequence[str]:
    if not isinstance(call.args, str | Mapping):
        return call.args
    args = args_of(call)
    third = len(args) // 3 + 1
    return [args[start : start + third] for start in range(0, len(args), third)]


def _wire_call(call: Call, messages: int, place: int) -> dict[str, Any]:
    function = {"name": call.name, "arguments": args_of(call)}
    return {"id": call_id(call, messages, place), "type": "function", "function": function}


def _wire_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    }


def _refusal(status: int, error: ProviderError, kind: str, code: str | None, headers: Mapping[str, str] = {}) -> Http:
    return Http(status, {"error": {"message": str(error), "type": kind, "param": None, "code": code}}, headers)


def _finish_of(acts: Sequence[Act]) -> str:
    told: list[Finish] = [act.finish for act in acts if isinstance(act, End)]
    return FINISHES[told[-1] if told else "calls" if any(isinstance(act, Call) for act in acts) else "stop"]


def _usage_in(acts: Sequence[Act]) -> Usage | None:
    return next((act.usage for act in acts if isinstance(act, Spend)), None)


def _output_of(acts: Sequence[Act]) -> int:
    calls = sum(len(args_of(act)) for act in acts if isinstance(act, Call))
    return len(_joined(acts, Say)) + len(_joined(acts, Think)) + calls


def _joined(acts: Sequence[Act], kind: type[Say] | type[Think]) -> str:
    return "".join("".join(act.text) for act in acts if isinstance(act, kind))


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if part["type"] == "text")
    return content or ""


def _message_of(wire: dict[str, Any]) -> Message:
    role: Literal["user", "assistant", "tool"] = wire["role"]
    calls = tuple(
        ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in wire.get("tool_calls") or ()
    )
    text = _text_of(wire.get("content"))
    return Message(role, said(text) if text else (), calls, wire.get("tool_call_id", ""))
