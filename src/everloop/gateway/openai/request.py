"""What a client asks, whichever of the two dialects it speaks: a conversation, and what it brings along.

A conversation that a client holds itself is shown to the model as it is, so it has to be one that hosts accept: every
call is followed by its result, and it ends with someone who waits for an answer.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ...core.prompt import Brought, Effort, Offered
from ...core.tool import ToolCall
from ..http.blobs import Blob
from ..http.errors import Refused

MOST_MESSAGES = 2000
MOST_FILES = 20
MOST_TOKENS = 100_000_000  # that can be asked for; what a model gives is less
MOST_TOOLS = 128
MOST_TOOL_BYTES = 500_000
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MOST_STOPS = 16
DEFAULT = "everloop"
BARE = "everloop/bare"  # the model of the settings, without everloop's tools and words
BARELY = "bare/"  # the same of a preset, or of any provider/model

_MUST_CALL = "You must call one of the tools {names} before you answer."
_JSON = "Answer with one JSON object and nothing else."
_OF_SCHEMA = "Answer with one JSON value and nothing else. It must fit this JSON schema: {schema}"


TextOrFile = str | Blob


class ClientMessage(Struct, frozen=True):
    role: Literal["user", "assistant", "tool"]
    pieces: tuple[TextOrFile, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    answers: str = ""


class ClientRequest(Struct, frozen=True):
    turns: tuple[ClientMessage, ...]
    brought: Brought
    stream: bool = False
    usage: bool = False  # a stream tells at its end what was used
    previous: str = ""  # the session that it goes on in, when it names a response to go on from
    named: bool = False  # whether one can go on from its answer by naming it
    json: bool = False  # the answer is to be JSON
    stops: tuple[str, ...] = ()  # words before which it is to end


def model_of(name: str) -> tuple[str, bool]:
    """What a client's name for a model means here ("" is that of the settings), and whether it is to be bare."""
    if name == BARE:
        return "", True
    if name.startswith(BARELY):
        return model_of(name.removeprefix(BARELY))[0], True
    return ("" if name == DEFAULT else name), False


def stops_of(stop: str | Sequence[str] | None) -> tuple[str, ...]:
    stops = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if len(stops) > MOST_STOPS:
        raise Refused(400, "invalid_request", f"There are more than {MOST_STOPS} stop words.", param="stop")
    return tuple(filter(None, stops))


def wants_json(format: dict[str, Any] | None) -> bool:
    return format is not None and format.get("type") in ("json_object", "json_schema")


def check(turns: Sequence[ClientMessage]) -> None:
    """Raises Refused for what no host would take."""
    if not turns:
        raise Refused(400, "invalid_request", "There is no message from the user.", param="messages")
    if sum(isinstance(piece, Blob) for turn in turns for piece in turn.pieces) > MOST_FILES:
        raise Refused(400, "too_many_files", f"There are more than {MOST_FILES} files.")
    if turns[-1].role == "assistant":
        raise Refused(
            400, "invalid_request", "The last message must be the user's, or a tool's result.", param="messages"
        )
    if turns[-1].role == "user" and not _says(turns[-1]):
        raise Refused(400, "invalid_request", "The last message is empty.", param="messages")


def check_calls(turns: Sequence[ClientMessage]) -> None:
    """Raises Refused unless every call has its result right after it, and every result its call."""
    waiting: list[str] = []
    for turn in turns:
        if turn.role == "tool":
            if turn.answers not in waiting:
                raise Refused(
                    400, "invalid_request", f"The result {turn.answers!r} answers no call that stands right before it."
                )
            waiting.remove(turn.answers)
            continue
        if waiting:
            raise Refused(400, "invalid_request", f"The call {waiting[0]!r} has no result right after it.")
        waiting = [call.id for call in turn.calls]
        if len(set(waiting)) < len(waiting):
            raise Refused(400, "invalid_request", "Two calls of one message have the same id.")
    if waiting:
        raise Refused(400, "invalid_request", f"The call {waiting[0]!r} has no result.")


def tidy(turns: Sequence[ClientMessage]) -> list[ClientMessage]:
    """The same conversation as hosts like it: nobody says nothing, the user begins, the results stand in the order of
    their calls, and the assistant does not speak twice in a row."""
    tidied: list[ClientMessage] = []
    for turn in turns:
        last = tidied[-1] if tidied else None
        if turn.role == "assistant" and not turn.calls and not _says(turn):
            continue
        if turn.role == "user" and not _says(turn):
            turn = ClientMessage("user", ("(nothing)",))
        if turn.role == "assistant" and last is None:
            tidied.append(ClientMessage("user", ("(the conversation begins)",)))
        if turn.role == "assistant" and last is not None and last.role == "assistant":
            tidied[-1] = ClientMessage("assistant", (*last.pieces, *turn.pieces), (*last.calls, *turn.calls))
        else:
            tidied.append(turn)
    return _in_order(tidied)


def _in_order(turns: list[ClientMessage]) -> list[ClientMessage]:
    ordered: list[ClientMessage] = []
    places: dict[str, int] = {}
    for turn in turns:
        ordered.append(turn)
        if turn.role != "tool":
            places = {call.id: len(ordered) + place for place, call in enumerate(turn.calls)}
            continue
        if len(ordered) == max(places.values(), default=0) + 1:  # the last result of this answer
            first = len(ordered) - len(places)
            ordered[first:] = sorted(ordered[first:], key=lambda each: places[each.answers])
    return ordered


def _says(turn: ClientMessage) -> bool:
    return any(isinstance(piece, Blob) or piece.strip() for piece in turn.pieces)


def results_of(turns: Sequence[ClientMessage]) -> str:
    """The results that a conversation ends with, as a message: in a session the call itself has been answered."""
    names = {call.id: call.name for turn in turns for call in turn.calls}
    found = []
    for turn in reversed(turns):
        if turn.role != "tool":
            break
        text = "\n".join(piece for piece in turn.pieces if isinstance(piece, str))
        found.append(f"Result of {names.get(turn.answers, 'the call')} ({turn.answers}):\n{text}")
    return "\n\n".join(reversed(found))


def offered(name: str, description: str | None, schema: dict[str, Any] | None) -> Offered:
    """A tool that the client runs. Raises Refused for a name that hosts refuse."""
    if not _NAME.fullmatch(name):
        raise Refused(
            400,
            "invalid_request",
            f"A tool's name has 1 to 64 letters, digits, _ or -, unlike {name[:80]!r}.",
            param="tools",
        )
    return Offered(name, description or "", schema or {"type": "object", "properties": {}})


def chosen_tools(tools: Sequence[Offered], choice: object) -> tuple[tuple[Offered, ...], str]:
    """The tools as the client's `tool_choice` leaves them, and what the model is told about it.

    No host is forced to call: everloop has tools of its own that may be needed first."""
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names) or len(names) > MOST_TOOLS:
        raise Refused(
            400, "invalid_request", f"Tools have names of their own, and there are at most {MOST_TOOLS}.", param="tools"
        )
    if len(msgspec.json.encode(tools)) > MOST_TOOL_BYTES:
        raise Refused(400, "invalid_request", f"The tools have more than {MOST_TOOL_BYTES:,} bytes.", param="tools")
    match choice:
        case None | "auto":
            return tuple(tools), ""
        case "none":
            return (), ""
        case "required" if names:
            return tuple(tools), _MUST_CALL.format(names=", ".join(names))
        case {"type": "function", "function": {"name": str(name)}} | {"type": "function", "name": str(name)} if (
            name in names
        ):
            return tuple(tool for tool in tools if tool.name == name), _MUST_CALL.format(names=name)
    raise Refused(
        400, "invalid_request", "tool_choice is none, auto, required, or names one of the tools.", param="tool_choice"
    )


def told_of_format(format: object) -> str:
    """What the model is told of the form that the client wants its answer in. Raises Refused."""
    match format:
        case None | {"type": "text"}:
            return ""
        case {"type": "json_object"}:
            return _JSON
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}} | {
            "type": "json_schema",
            "schema": dict(schema),
        }:
            return _OF_SCHEMA.format(schema=msgspec.json.encode(schema).decode())
    raise Refused(
        400,
        "invalid_request",
        "The form of an answer is text, json_object, or json_schema with a schema.",
        param="response_format",
    )


_EFFORTS: dict[str | None, Effort] = {
    None: "",
    "none": "none",
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
}


def effort_of(name: str | None) -> Effort:
    if name not in _EFFORTS:
        raise Refused(
            400, "invalid_request", "The effort is none, minimal, low, medium or high.", param="reasoning_effort"
        )
    return _EFFORTS[name]
