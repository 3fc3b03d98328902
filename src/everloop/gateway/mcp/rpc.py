"""JSON-RPC 2.0 as the Model Context Protocol uses it, spoken to clients: https://modelcontextprotocol.io/specification

What is said with a handshake (`initialize`) up to the version of 2025-11-25. Clients of 2026-07-28, which has none, ask
first whether we speak theirs, are told that there is no such method, and begin with the handshake.
"""

from typing import Any

import msgspec
from msgspec import Struct

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  # the newest first

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
FORBIDDEN = -32003  # ours: the token lacks a scope, or its person a role

RpcId = str | int
Message = dict[str, Any]


class RpcRefused(Exception):
    """What cannot be answered with a result. `id` is that of the request, if it could be read."""

    def __init__(self, code: int, message: str, id: RpcId | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.id = id

    def told(self, id: RpcId | None = None) -> Message:
        return error(self.id if id is None else id, self.code, str(self))


class RpcRequest(Struct, frozen=True):
    """Without an `id` it is a notification, which nobody answers."""

    method: str
    params: Message = {}
    id: RpcId | None = None

    @property
    def progress_token(self) -> RpcId | None:
        """By which the client wants to be told how it goes on; None: it does not."""
        meta = self.params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        return token if isinstance(token, str | int) and not isinstance(token, bool) else None


def read(body: bytes) -> RpcRequest | None:
    """What a client says; None for an answer of its to a question that we never ask. Raises RpcRefused."""
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
        raise RpcRefused(PARSE_ERROR, f"This is not valid JSON ({problem}).") from problem
    if isinstance(said, list):
        raise RpcRefused(INVALID_REQUEST, "Several messages in one are not taken: send one at a time.")
    if not isinstance(said, dict) or said.get("jsonrpc") != "2.0":
        raise RpcRefused(INVALID_REQUEST, 'A message is an object with "jsonrpc": "2.0".')
    id = said.get("id")
    if "method" not in said and ("result" in said or "error" in said):
        return None
    if isinstance(id, bool) or not (id is None or isinstance(id, str | int)):
        raise RpcRefused(INVALID_REQUEST, "The id of a request is a string or a whole number.")
    if "id" in said and id is None:
        raise RpcRefused(INVALID_REQUEST, "The id of a request cannot be null.")
    method, params = said.get("method"), said.get("params", {})
    if not isinstance(method, str):
        raise RpcRefused(INVALID_REQUEST, "A message has a method.", id)
    if not isinstance(params, dict):
        raise RpcRefused(INVALID_PARAMS, "The params of a method are an object.", id)
    return RpcRequest(method, params, id)


def result(id: RpcId | None, value: Message) -> Message:
    return {"jsonrpc": "2.0", "id": id, "result": value}


def error(id: RpcId | None, code: int, message: str) -> Message:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


def notification(method: str, params: Message) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def version_for(wanted: object) -> str:
    """The version that is spoken with a client which wants this one: the same if we know it, else our newest."""
    return wanted if wanted in VERSIONS and isinstance(wanted, str) else VERSIONS[0]


def spoken(text: str, *, failed: bool = False, more: Message | None = None) -> Message:
    """The result of a tool."""
    told: Message = {"content": [{"type": "text", "text": text}], "isError": failed}
    return told | ({"structuredContent": more} if more is not None else {})
