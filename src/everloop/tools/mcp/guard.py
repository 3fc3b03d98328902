"""What a server says, before the SDK hears it: counted, bounded, and the descriptions of tools taken down whole.

The SDK begins a task for each notification and each request, checks answers against schemas that the server wrote
itself (whose patterns may take for ever, and whose references may lead anywhere), and forgets the fields of a
description that it does not know. So a server that floods is ended here; of its notifications only those pass that
somebody waits for; and a tool reaches the SDK as its name and parameters, with its whole description beside it.
"""

import json
import logging
import re
from collections.abc import Callable
from itertools import islice
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from ...errors import McpDown
from ...readings.visible import in_one_line
from .definitions import definition_of
from .limits import MOST_ITEMS, MOST_TOOLS
from .running import MOST_QUESTIONS

_log = logging.getLogger("everloop.mcp")

DEFINITION = "everloop/definition"  # in the `_meta` of a tool, as the SDK sees it: its whole description
LEFT_OUT = "everloop/left-out"  # in the `_meta` of an answer: how many items of it were left out
FLOOD, WINDOW = 5000, 10.0  # messages in so many seconds, after which a server is ended
NONSENSE = 200  # in so many seconds, of what is no message; stray lines are forgiven
LISTS_CHANGED = "notifications/tools/list_changed"
LOGGED = "notifications/message"
_LISTS = ("content", "contents", "messages", "resources", "resourceTemplates", "prompts")
_LONGEST_LOGGED = 500  # characters


class TokenBucket:
    """So many at once, and then so many in a second."""

    def __init__(self, most: float, per_second: float, now: Callable[[], float]) -> None:
        self._most = self._left = most
        self._per_second = per_second
        self._now = now
        self._at = now()

    def take(self) -> bool:
        now = self._now()
        self._left = min(self._most, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class GuardedStream:
    """The stream of a wire, with what is too much left out. When it has ended, `why` says what was wrong."""

    def __init__(self, server: str, stream: Any, *, on_lists_changed: Callable[[], None]) -> None:
        self._server = server
        self._stream = stream
        self._on_lists_changed = on_lists_changed
        self._now = anyio.current_time
        self._notices = TokenBucket(40, 20, self._now)
        self._requests = TokenBucket(20, 2, self._now)
        self._logged = TokenBucket(50, 5, self._now)
        self._window = (self._now(), 0)
        self._nonsense = 0
        self.heard_at = self._now()
        self.ended = anyio.Event()
        self.why = ""
        self.said = ""  # the last that a server which has ended said of it

    async def receive(self) -> SessionMessage | Exception:
        try:
            while not self.why:
                item = await self._stream.receive()
                self._count()
                if (passed := self._passed(item)) is not None:
                    return passed
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self.why = self.why or "it has ended the connection"
        self.ended.set()
        raise anyio.EndOfStream

    def end(self, why: str) -> None:
        """Nothing that it says from now on is heard."""
        self.why = self.why or why
        self.ended.set()

    def _count(self) -> None:
        self.heard_at = self._now()
        began, count = self._window
        if self.heard_at - began > WINDOW:
            began, count = self.heard_at, 0
            self._nonsense = 0
        self._window = began, count + 1
        if count >= FLOOD:
            self.why = f"it has said more than {FLOOD:,} things within {WINDOW:g} seconds"

    def _passed(self, item: Any) -> SessionMessage | None:
        """What the SDK is to hear of it."""
        if isinstance(item, McpDown) and not self.why:
            self.why = re.sub(f"^the MCP server {re.escape(self._server)} ", "it ", item.message)
            self.said = item.said
        if self.why or not isinstance(item, SessionMessage):
            self._note_nonsense(item)
            return None
        match item.message:
            case JSONRPCNotification():
                return item if self._is_awaited(item.message) else None
            case JSONRPCRequest():
                return item if self._requests.take() else None
            case JSONRPCResponse(result=result):
                _bound(result)
        return item

    def _note_nonsense(self, item: Any) -> None:
        if self.why:
            return
        self._nonsense += 1
        if self._logged.take():
            _log.debug("%s says what is no message: %s", self._server, _line(str(item)))
        if self._nonsense > NONSENSE:
            self.why = "what it says is not MCP: most of it is no JSON-RPC message"

    def _is_awaited(self, notice: JSONRPCNotification) -> bool:
        params = notice.params or {}
        match notice.method:
            case "notifications/tools/list_changed":
                self._on_lists_changed()
                return False
            case "notifications/message":
                if self._logged.take():
                    _log.debug("%s says: %s", self._server, _line(_text(params.get("data"))))
                return False
            case "notifications/progress":
                return _is_progress(params) and self._notices.take()
            case "notifications/cancelled" | "notifications/subscriptions/acknowledged":
                return self._notices.take()
        return False

    async def aclose(self) -> None:
        self.ended.set()
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _bound(result: dict[str, Any]) -> None:
    """In place: at most so many items of each list, and of tools what the SDK needs."""
    left_out = 0
    for key in _LISTS:
        if isinstance(items := result.get(key), list) and len(items) > MOST_ITEMS:
            left_out += len(items) - MOST_ITEMS
            result[key] = items[:MOST_ITEMS]
    if isinstance(asked := result.get("inputRequests"), dict):
        result["inputRequests"] = dict(islice(asked.items(), MOST_QUESTIONS))
    if isinstance(tools := result.get("tools"), list):
        known = [shown for raw in tools[:MOST_TOOLS] if (shown := _as_the_sdk_needs(raw))]
        left_out += len(tools) - len(known)
        result["tools"] = known
    meta = result.get("_meta")
    kept = {key: value for key, value in meta.items() if key != LEFT_OUT} if isinstance(meta, dict) else {}
    if left_out:
        result["_meta"] = {**kept, LEFT_OUT: left_out}
    elif isinstance(meta, dict):
        result["_meta"] = kept


def _as_the_sdk_needs(raw: Any) -> dict[str, Any] | None:
    if (definition := definition_of(raw)) is None:
        return None
    return {
        "name": definition.tool,
        "inputSchema": _well_formed(raw["inputSchema"]),
        "_meta": {DEFINITION: definition.body},
    }


def _well_formed(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that the SDK takes, so that one tool's does not cost a server all of them; models are shown another."""
    found = {key: value for key, value in schema.items() if key not in ("$schema", "properties", "required", "$defs")}
    for key in ("properties", "$defs"):
        if isinstance(named := schema.get(key), dict):
            found[key] = {name: value for name, value in named.items() if isinstance(value, dict)}
    if isinstance(required := schema.get("required"), list):
        found["required"] = [name for name in required if isinstance(name, str)]
    return {**found, "type": "object"}


def _is_progress(params: dict[str, Any]) -> bool:
    token, progress, message = params.get("progressToken"), params.get("progress"), params.get("message")
    known = isinstance(token, int | str) and isinstance(progress, int | float) and not isinstance(progress, bool)
    return known and (message is None or isinstance(message, str))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _line(text: str) -> str:
    return in_one_line(text[:_LONGEST_LOGGED])
