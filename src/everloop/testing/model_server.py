"""The scripted model as an HTTP server that speaks OpenAI's chat completions.

In a test:

    async with ModelServer(by_conversation=[Call("look"), Say("done")]) as server:
        …  # server.url is http://127.0.0.1:PORT/v1

As a process of its own, which prints `ready http://127.0.0.1:PORT/v1` when it can be asked and ends on SIGTERM:

    python -m everloop.testing.model_server --port 0 --script FILE.json

The file is a list of lines, or an object:

    {"by": "conversation",   how the next line is found: "order" (the default) or "conversation"
     "first": 0.1,           seconds before the first byte of each line (none by default)
     "between": 0.01,        seconds between the deltas of each line (none by default)
     "lines": […]}

A line is one act or a list of acts, in the order in which they happen:

    "hello" or {"say": "hello"} or {"say": ["hel", "lo"]}       text, whole or in these deltas
    {"think": "hm"}                                             reasoning_content, in the same forms
    {"call": "read_file", "args": {"path": "x"}, "id": "c1"}    a tool call; args may be a string, sent as it is, or
                                                                a list of the pieces it comes in; several acts in one
                                                                line are parallel calls; the id is optional
    {"empty": true}                                             nothing
    {"pause": 0.5}                                              seconds
    {"wait": "gate"}                                            until POST /_open?gate=gate
    {"usage": {"input": 9, "output": 3, "cache_read": 0}}       instead of an estimate
    {"end": "length"}                                           or stop, calls, refused
    {"fail": "rate", "message": "…", "retry_after": 2}          or key, model, overflow, request, server, connection,
                                                                timeout (never answers), cut (closes the connection);
                                                                after a delta the error is sent inside the stream
    {"http": 503, "body": {…}, "headers": {…}}                  any other answer
    {"raw": "data: {garbage\\n\\n"}                             put into the stream as it is
    {"cut_at": 120}                                             close after so many bytes of the body

Beside POST /v1/chat/completions and GET /v1/models there are, for the test:

    GET /_calls                {"calls": 3, "abandoned": 0, "requests": [{"at": …, "headers": {…}, "body": {…}}]},
                               where abandoned are the answers whose client went away; the last 1,000 requests are kept
    GET /_calls?at_least=3     the same, as soon as there have been that many calls
    POST /_script              another script, in the format of the file
    POST /_open?gate=NAME      open a gate
"""

import argparse
import asyncio
import signal
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, assert_never

import msgspec
import uvloop
from aiohttp import web
from msgspec import Struct

from .model_codec import (
    DONE,
    ChatRequest,
    Cut,
    Encoded,
    Hang,
    encode,
    encode_whole,
    parse_request,
    shown_in,
    usage_chunk,
)
from .script import (
    ByConversation,
    Call,
    Http,
    Line,
    Pause,
    Script,
    Shown,
    Tally,
    Wait,
    acts_of,
    script_of,
    step_of,
)
from .script_file import parse_script

WINDOW = 128_000  # tokens that its models can read, as it says
KEPT = 1000  # requests; a benchmark makes more than a test wants to read


class ServedRequest(Struct, frozen=True):
    """A request as it came; `at` is the monotonic clock of the machine."""

    at: float
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return msgspec.json.decode(self.raw)


class ModelServer:
    """A scripted model behind a port of its own; takes the scripts that `ScriptedModel` takes."""

    def __init__(
        self,
        script: Sequence[Line] | Callable[[Shown], Line] | Script = (),
        *,
        by_conversation: Sequence[Line] | None = None,
        models: Sequence[str] = ("scripted",),
        port: int = 0,
    ) -> None:
        self.models = models
        self.requests: deque[ServedRequest] = deque(maxlen=KEPT)
        self.gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.port = port
        self._tally = Tally()
        self._abandoned = Tally()
        self.play(script if by_conversation is None else ByConversation(by_conversation))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def calls(self) -> int:
        """How often it was asked for a completion."""
        return self._tally.count

    @property
    def abandoned(self) -> int:
        """How many answers were not finished because the client went away."""
        return self._abandoned.count

    @property
    def prompts(self) -> list[Shown]:
        """What the kept requests showed."""
        return [shown_in(asked.raw) for asked in self.requests]

    async def called(self, times: int) -> None:
        """Wait until it has been asked so many times in all."""
        await self._tally.reached(times)

    async def left(self, times: int) -> None:
        """Wait until so many answers have been abandoned in all."""
        await self._abandoned.reached(times)

    def play(self, script: Sequence[Line] | Callable[[Shown], Line] | Script) -> None:
        """From now on answer by this script."""
        self._script = script_of(script)
        self._encoded: dict[tuple[int, str, int], tuple[Line, Encoded]] = {}

    async def __aenter__(self) -> Self:
        server = web.Server(self._answer, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, backlog=1024)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        match request.method, request.path:
            case "POST", "/v1/chat/completions":
                return await self._complete(request)
            case "GET", "/v1/models":
                row = {"object": "model", "created": 0, "owned_by": "test", "max_model_len": WINDOW}  # as vLLM tells it
                models = [{"id": name, **row} for name in self.models]
                return _json({"object": "list", "data": models})
            case "GET", "/_calls":
                await self.called(int(request.query.get("at_least", 0)))
                return _json(self._account())
            case "POST", "/_script":
                return await self._take_script(request)
            case "POST", "/_open":
                self.gates[request.query["gate"]].set()
                return _json({})
        return _json({"error": {"message": f"no {request.method} {request.path} here", "type": "not_found"}}, 404)

    async def _complete(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.content.read()  # request.read() would refuse more than a megabyte
        self.requests.append(ServedRequest(time.monotonic(), request.headers, body))
        self._tally.add()
        try:
            chat = parse_request(body)
        except msgspec.DecodeError as error:
            return _json({"error": {"message": str(error), "type": "invalid_request_error", "code": None}}, 400)
        line = self._script.pick(step_of(chat.messages), lambda: shown_in(body))
        try:
            if not chat.stream:
                whole = encode_whole(line, chat.model, chat.length, len(body))
                return await _perform(request, whole, b"", "application/json")
            encoded = self._encode(line, chat)
            usage = usage_chunk(chat.model, encoded.usage_for(len(body))) if chat.wants_usage else b""
            return await _perform(request, encoded, usage + DONE if encoded.whole else b"", "text/event-stream")
        except asyncio.CancelledError:
            self._abandoned.add()
            raise
        except ConnectionError:
            self._abandoned.add()
            return web.Response()  # for aiohttp, which finds that nobody is there; raising would log a traceback

    def _encode(self, line: Line, chat: ChatRequest) -> Encoded:
        length = chat.length if any(isinstance(act, Call) for act in acts_of(line)) else 0
        key = (id(line), chat.model, length)
        kept = self._encoded.get(key)
        if kept is None or kept[0] is not line:  # the line is kept beside its bytes, so its id is not given away
            if len(self._encoded) >= 1000:
                self._encoded.clear()
            kept = self._encoded[key] = (line, encode(line, chat.model, length))
        return kept[1]

    async def _take_script(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            self.play(parse_script(msgspec.json.decode(await request.content.read()), self.gates))
        except ValueError as error:  # msgspec's DecodeError is one
            return _json({"error": {"message": str(error), "type": "invalid_request_error"}}, 400)
        return _json({})

    def _account(self) -> dict[str, Any]:
        requests = [
            {"at": each.at, "headers": dict(each.headers), "body": msgspec.Raw(each.raw)} for each in self.requests
        ]
        return {"calls": self.calls, "abandoned": self.abandoned, "requests": requests}


async def _perform(request: web.BaseRequest, encoded: Encoded, end: bytes, kind: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": kind})
    last = len(encoded.moves) - 1
    for index, move in enumerate(encoded.moves):
        match move:
            case bytes():
                if not response.prepared:  # so that pauses come before the head, and a failure may still set a status
                    await response.prepare(request)
                await response.write(move + end if index == last else move)
            case Pause(seconds=seconds):
                await asyncio.sleep(seconds)
            case Wait(gate=gate):
                await gate.wait()
            case Http():
                return _http(move)
            case Cut():
                if request.transport is not None:
                    request.transport.close()
                return response
            case Hang():
                await asyncio.Event().wait()
            case _:
                assert_never(move)
    return response


def _http(answer: Http) -> web.Response:
    if isinstance(answer.body, str):
        return web.Response(status=answer.status, text=answer.body, headers=answer.headers)
    return _json(answer.body, answer.status, dict(answer.headers))


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    body = msgspec.json.encode(value)
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)


async def _serve(port: int, script: Any) -> None:
    server = ModelServer(port=port)
    server.play(parse_script(script, server.gates))
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with server:
        sys.stdout.write(f"ready {server.url}\n")
        sys.stdout.flush()
        await ended.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m everloop.testing.model_server", description="A scripted model.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--script", type=Path, required=True, help="a JSON file; the module's docstring has its format")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(options.port, msgspec.json.decode(options.script.read_bytes())))


if __name__ == "__main__":
    main()
