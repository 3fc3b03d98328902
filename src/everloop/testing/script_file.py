"""A script from its JSON form, which `everloop.testing.model_server` describes."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ..core.prompt import Finish, Usage
from ..errors import (
    BadRequest,
    ContextOverflow,
    HostFailed,
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
    ByConversation,
    Call,
    CutAt,
    Empty,
    End,
    Fail,
    Http,
    InOrder,
    Line,
    Pause,
    Raw,
    Say,
    Script,
    Spend,
    Think,
    Wait,
    paced,
)

_SCRIPTS: dict[str, Callable[[Sequence[Line]], Script]] = {"order": InOrder, "conversation": ByConversation}


def parse_script(data: Any, gates: Mapping[str, asyncio.Event]) -> Script:
    """The script that the data describe; `gates` are those it may wait for, by name. Raises ValueError."""
    if isinstance(data, list):
        data = {"lines": data}
    try:
        lines = [paced(parse_line(line, gates), data.get("first", 0), data.get("between", 0)) for line in data["lines"]]
        return _SCRIPTS[data.get("by", "order")](lines)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a script is a list of lines or {{by, first, between, lines}}; wrong at {error}") from error


def parse_line(data: Any, gates: Mapping[str, asyncio.Event]) -> Line:
    return [_parse_act(act, gates) for act in data] if isinstance(data, list) else _parse_act(data, gates)


_ERRORS: dict[str, type[ProviderError]] = {
    error.kind: error
    for error in (
        KeyRefused,
        UnknownModel,
        RateLimited,
        ContextOverflow,
        BadRequest,
        HostTimeout,
        HostUnreachable,
        HostFailed,
        StreamCut,
    )
}


def _parse_act(data: Any, gates: Mapping[str, asyncio.Event]) -> Act:
    match data:
        case str():
            return Say(data)
        case {"say": text}:
            return Say(text)
        case {"think": text}:
            return Think(text)
        case {"call": name}:
            return Call(name, data.get("args", {}), data.get("id", ""))
        case {"pause": seconds}:
            return Pause(seconds)
        case {"wait": gate}:
            return Wait(gates[gate])
        case {"fail": "rate"}:
            return Fail(RateLimited(data.get("message", "slow down"), data.get("retry_after")))
        case {"fail": kind} if kind in _ERRORS:
            return Fail(_ERRORS[kind](data.get("message", f"scripted: {kind}")))
        case {"empty": _}:
            return Empty()
        case {"usage": usage}:
            return Spend(msgspec.convert(usage, Usage))
        case {"end": finish}:
            return End(msgspec.convert(finish, Finish))
        case {"http": status}:
            return Http(status, data.get("body", ""), data.get("headers", {}))
        case {"raw": text}:
            return Raw(text)
        case {"cut_at": byte}:
            return CutAt(byte)
    raise ValueError(f"this is no act of a script: {msgspec.json.encode(data).decode()[:200]}")
