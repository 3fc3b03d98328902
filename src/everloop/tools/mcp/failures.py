"""What failed between us and a server, told to the SDK in its own language.

An exception inside the SDK's transport would end it, and with it every call that is under way. So a request that fails
is answered in the server's place, by an error that only we can have written: it carries a word that no server knows.
"""

from secrets import token_hex
from typing import Any, Literal

import msgspec
from mcp import MCPError
from msgspec import Struct

from ...errors import McpDown, McpLogin

FailureKind = Literal["down", "lost", "login", "session"]

_CODE = -32099  # of the range that JSON-RPC leaves to implementations
_SESSION_OVER = -32600, "Session terminated"  # as the SDK itself tells it
_OURS = token_hex(16)


class SessionLost(McpDown):
    """The server no longer knows our session, and has done nothing with the request: begin another, and ask again."""


class WireFailure(Struct, frozen=True):
    """`lost`: the request had gone out, and nobody knows what came of it. All others were not acted upon."""

    kind: FailureKind
    text: str

    def as_error(self) -> McpDown:
        errors: dict[FailureKind, type[McpDown]] = {"login": McpLogin, "session": SessionLost}
        return errors.get(self.kind, McpDown)(self.text)

    def as_answer(self) -> bytes:
        """The JSON-RPC error that stands for it; whose request it answers, the SDK knows."""
        code, message = _SESSION_OVER if self.kind == "session" else (_CODE, self.text)
        error = {"code": code, "message": message, "data": {"by": _OURS, "kind": self.kind, "text": self.text}}
        return msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})


def failure_of(error: MCPError) -> WireFailure | None:
    """What failed, if this is our own word; None where the server has said it."""
    data: Any = error.data
    match data:
        case {"by": str(by), "kind": "down" | "lost" | "login" | "session" as kind, "text": str(text)} if by == _OURS:
            return WireFailure(kind, text)
    return None


def down_of(error: MCPError) -> McpDown | None:
    """As `failure_of`, as the error to be raised."""
    failure = failure_of(error)
    return failure.as_error() if failure else None
