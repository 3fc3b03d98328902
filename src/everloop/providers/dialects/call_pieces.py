"""Tool calls put together from the pieces in which chat-completions hosts stream them.

Hosts differ: some number the calls, some number all of them 0, some give only an id, some neither; some repeat
id and name with every piece, some send a call as a whole.
"""

from hashlib import sha1
from typing import Any

import msgspec
from msgspec import Raw, Struct

from ...core.message import Message, Opaque
from ...core.tool import ToolCall

NAME = "openai_chat"


class FunctionPiece(Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class CallPiece(Struct):
    index: int | None = None
    id: str | None = None
    function: FunctionPiece | None = None
    extra_content: Any = None


class _GatheredCall(Struct):
    id: str
    name: str
    args: list[str]
    extra: Any = None


_NOTHING = FunctionPiece()


class CallPieces:
    """Collects pieces in the order in which they come."""

    __slots__ = ("_at", "_by_id", "_calls")

    def __init__(self) -> None:
        self._calls: list[_GatheredCall] = []
        self._at: dict[int, _GatheredCall] = {}
        self._by_id: dict[str, _GatheredCall] = {}

    def add(self, pieces: Any) -> None:
        """Raises msgspec.ValidationError if the pieces are of no known form."""
        for piece in msgspec.convert(pieces, list[CallPiece]):
            function = piece.function or _NOTHING
            args = _as_text(function.arguments)
            call = self._call_of(piece, function.name or "", args)
            call.id = call.id or piece.id or ""
            self._by_id.setdefault(call.id, call)
            call.name = call.name or function.name or ""
            call.extra = call.extra or piece.extra_content
            call.args.append(args)

    def calls(self, answer: str) -> tuple[ToolCall, ...]:
        """The whole calls. One without an id gets one that follows from the answer's id and the call's place."""
        return tuple(
            ToolCall(call.id or _make_id(answer, place), call.name, mend("".join(call.args)) or "{}")
            for place, call in enumerate(self._named())
        )

    def opaque(self, signer: str) -> tuple[Opaque, ...]:
        """What the host wants back with each call, in the order of the calls: Gemini signs its thoughts there."""
        extras = [call.extra for call in self._named()]
        return (Opaque(signer, Raw(msgspec.json.encode(extras))),) if any(extras) else ()

    def _named(self) -> list[_GatheredCall]:
        return [call for call in self._calls if call.name]

    def _call_of(self, piece: CallPiece, name: str, args: str) -> _GatheredCall:
        known = self._find(piece)
        if known is not None and not _begins_another(known, piece.id or "", name, args):
            return known
        call = _GatheredCall("", "", [])
        self._calls.append(call)
        if piece.index is not None:
            self._at[piece.index] = call
        return call

    def _find(self, piece: CallPiece) -> _GatheredCall | None:
        if piece.index is not None:
            return self._at.get(piece.index)
        if piece.id:
            return self._by_id.get(piece.id)
        return self._calls[-1] if self._calls else None


def extras_in(message: Message, signer: str) -> list[Any]:
    """What `CallPieces.opaque` has kept, if it was kept for the same signer."""
    return next((msgspec.json.decode(opaque.block) for opaque in message.opaque if opaque.dialect == signer), [])


def _begins_another(known: _GatheredCall, id: str, name: str, args: str) -> bool:
    if id and known.id:
        return id != known.id
    if not name or not known.name:
        return False
    so_far = "".join(known.args)
    if so_far and not _is_whole(so_far):
        return False
    return name != known.name or bool(so_far and args)


def _is_whole(args: str) -> bool:
    try:
        msgspec.json.decode(args)
    except msgspec.DecodeError:
        return False
    return True


def _as_text(arguments: str | dict[str, Any] | None) -> str:
    if isinstance(arguments, dict):
        return msgspec.json.encode(arguments).decode()
    return arguments or ""


def _make_id(answer: str, place: int) -> str:
    return short_id(f"{answer}:{place}")


def short_id(id: str) -> str:
    """Nine letters and digits: the strictest form that a host (Mistral) asks for."""
    return sha1(id.encode(), usedforsecurity=False).hexdigest()[:9]


def mend(text: str) -> str:
    """Join the halves of characters that a host has sent as two escapes; a half that stays alone becomes �."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
