"""everloop as an MCP server: what it answers to whom, whichever way they are connected.

A client sees the tools that its person and its token may use. `ask` is a turn; the others are run at once, for that
person, by the same rules as for their own turns.
"""

import secrets
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...core.mail import Inbound, Stop
from ...core.tool import Effect, ToolSpec
from ...errors import StoreError, ToolError
from ...ports.tools import Result, Shown
from ..access.principal import Principal
from ..ports import McpAgent
from .asking import ASK, ask_tool
from .rpc import (
    FORBIDDEN,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Message,
    RpcId,
    RpcRefused,
    RpcRequest,
    result,
    spoken,
    version_for,
)

INSTRUCTIONS = (
    "everloop is an agent that remembers. `ask` has it do something; `recall` and `search_history` find what it knows "
    "and what was said; `remember` keeps a fact for later."
)
ASKERS = 1000  # requests that can be cancelled at once


class McpService:
    def __init__(self, agent: McpAgent, version: str) -> None:
        self._agent = agent
        self._version = version
        self._asked: dict[tuple[str, str, RpcId], Inbound] = {}  # by the credential, the client and the request

    async def answer(self, request: RpcRequest, principal: Principal) -> Message:
        """To anything but a call of `ask`. Raises RpcRefused."""
        match request.method:
            case "initialize":
                return result(request.id, self._introduction(request))
            case "ping":
                return result(request.id, {})
            case "tools/list":
                return result(request.id, {"tools": await self._tools(principal)})
            case "tools/call":
                return result(request.id, await self._call(request, principal))
        raise RpcRefused(METHOD_NOT_FOUND, f"There is no method {request.method[:100]!r} here.", request.id)

    async def note(self, request: RpcRequest, principal: Principal, client: str = "") -> None:
        """A client says that it has given up: its turn is stopped, as by /stop."""
        id = request.params.get("requestId")
        if request.method != "notifications/cancelled" or not isinstance(id, str | int):
            return
        if asked := self._asked.get((principal.credential, client, id)):
            stop = Inbound(asked.address, f"stop:{secrets.token_hex(12)}", Stop(principal.user), asked.owner)
            await self._agent.tell(stop)

    @contextmanager
    def cancellable(
        self, request: RpcRequest, principal: Principal, inbound: Inbound, client: str = ""
    ) -> Iterator[None]:
        """Within the block the client may say that it has given up. `client` tells those of one token apart, who all
        count their requests from the same number."""
        if request.id is None or len(self._asked) >= ASKERS:
            yield
            return
        name = (principal.credential, client, request.id)
        self._asked[name] = inbound
        try:
            yield
        finally:
            if self._asked.get(name) is inbound:  # else the same was asked again, by whoever has lost the connection
                del self._asked[name]

    def _introduction(self, request: RpcRequest) -> Message:
        return {
            "protocolVersion": version_for(request.params.get("protocolVersion")),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "everloop", "title": "everloop", "version": self._version},
            "instructions": INSTRUCTIONS,
        }

    async def _tools(self, principal: Principal) -> list[Message]:
        specs = await self._agent.direct_tools.specs(principal.user, principal.role)
        direct = [_described(spec) for spec in specs if _may(principal, spec)]
        return [*([ask_tool()] if principal.may("chat") else ()), *direct]

    async def _call(self, request: RpcRequest, principal: Principal) -> Message:
        name, args = request.params.get("name"), request.params.get("arguments") or {}
        if not isinstance(name, str) or not isinstance(args, dict):
            raise RpcRefused(INVALID_PARAMS, "A call has a name, and arguments that are an object.", request.id)
        specs = await self._agent.direct_tools.specs(principal.user, principal.role)
        spec = next((each for each in specs if each.name == name), None)
        if spec is None:
            raise RpcRefused(INVALID_PARAMS, f"There is no tool {name[:100]!r} for you here.", request.id)
        if not _may(principal, spec):
            raise RpcRefused(FORBIDDEN, f"{name} needs a token of the scope {_scope(spec)}.", request.id)
        try:
            return _told(await self._agent.direct_tools.call(principal.user, principal.role, name, args))
        except (ToolError, StoreError) as error:
            return spoken(str(error), failed=True)


def is_ask(request: RpcRequest) -> bool:
    return request.method == "tools/call" and request.params.get("name") == ASK


def arguments_of(request: RpcRequest) -> dict[str, Any]:
    """Of a call. Raises RpcRefused."""
    args = request.params.get("arguments") or {}
    if not isinstance(args, dict):
        raise RpcRefused(INVALID_PARAMS, "The arguments of a call are an object.", request.id)
    return args


def _scope(spec: ToolSpec) -> str:
    return "read" if spec.effect is Effect.READ else "chat"


def _may(principal: Principal, spec: ToolSpec) -> bool:
    return principal.may(_scope(spec))


def _described(spec: ToolSpec) -> Message:
    reads = spec.effect is Effect.READ
    hints = {"readOnlyHint": reads, "idempotentHint": spec.effect is not Effect.UNSAFE}
    return {"name": spec.name, "description": spec.description, "inputSchema": spec.schema, "annotations": hints}


def _told(came: Result) -> Message:
    shown = came if isinstance(came, Shown) else Shown(came)
    told = spoken(shown.text)
    images = [each for each in shown.pictures if each.mime.startswith("image/")]
    told["content"] += [
        {"type": "image", "data": b64encode(each.data).decode(), "mimeType": each.mime} for each in images
    ]
    return told
