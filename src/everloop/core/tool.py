"""Tools as values: what the model may call, what calling it can do to the world, and whether a call is well-formed."""

from collections.abc import Callable, Collection, Iterator
from enum import StrEnum
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from .exits import Exits, Giver, Weighed
from .people import Role


class Effect(StrEnum):
    """What may happen if a call is made twice; decides what a restart does with a call that had started."""

    READ = "read"  # changes nothing: run again
    IDEMPOTENT = "idempotent"  # a second run changes nothing more: run again
    KEYED = "keyed"  # the receiver knows our key: run again with the same key
    VERIFIABLE = "verifiable"  # we can look whether it happened
    UNSAFE = "unsafe"  # never run again unasked


Exit = Literal["", "address", "words"]


class ToolCall(Struct, frozen=True, gc=False, omit_defaults=True):
    """A call as the model wrote it: `args` is the exact JSON text. `id` is the provider's and may repeat. `exit` is its
    tool's, noted when the answer is kept."""

    id: str
    name: str
    args: str
    exit: Exit = ""


Level = Literal["low", "medium", "high"]


class Risk(Struct, frozen=True, gc=False, omit_defaults=True):
    """What one call might do, for the policy and for the person who is asked."""

    level: Level = "low"
    leaves: bool = False  # the sandbox, or speaks to others
    mutates: bool = False
    privileged: bool = False
    why: str = ""
    argv: tuple[str, ...] = ()  # the words of a plain command, by which it can be allowed ahead
    folder: str = ""  # where it runs, in the workspace
    host: str = ""  # to whom it speaks, with a port that is not the usual one
    background: bool = False  # nobody waits for its end
    seconds: int = 0  # its time limit


class Ground(Struct, frozen=True, gc=False):
    """A folder of the workspace: what it is called, without links, and what it is, whatever it is called."""

    name: str
    identity: str


class Circumstances(Protocol):
    """What a tool may know of the conversation when it says how risky a call is."""

    @property
    def outside(self) -> bool:
        """Whether what strangers wrote has been read in it."""

    def mentions(self, text: str) -> bool:
        """Whether a person, or a stranger whose words were read, has given this address, as a whole."""

    def giver_of(self, url: str) -> Giver:
        """Who has given this address: a person, else a stranger, else nobody."""

    def weigh(self, query: str) -> Weighed:
        """Which of these words no person has said."""

    def left(self) -> Exits:
        """What has left in this turn already, unasked, of what only strangers gave."""


class ToolSpec(Struct, frozen=True):
    """`permission` is the least role that may use it. `scene` is what else decides what a call does, such as the folder
    it works in; a permission for a call holds only as long as this is the same."""

    name: str
    description: str
    schema: dict[str, Any]
    effect: Effect = Effect.UNSAFE
    local: bool = False  # neither leaves the process nor takes long
    guarded: bool = False  # a person is asked first
    seconds: float = 60.0
    permission: Role = Role.OWNER
    risk: Callable[[dict[str, Any], Circumstances], Risk] | None = None  # None: as the effect says
    scene: str = ""
    polls: bool = False  # the same call again is no sign of going in circles
    undoable: bool = False  # all that it does is change files, and each change is told with the result
    outside: bool = False  # it may bring strangers' words into what it does, as a command with a network
    exit: Exit = ""  # how a call leads out: its `url` is fetched, or its `query` is searched for
    closed: bool = False  # it takes no arguments but those of its schema


def may_use(role: Role, spec: ToolSpec, lifted: Collection[str] = ()) -> bool:
    """Whether a tool is for somebody of this role. `lifted` are those that the owner has given to guests as well, which
    can be had of what only reads: whoever is blocked has none."""
    lifts = spec.name in lifted and spec.effect is Effect.READ
    return role >= (min(spec.permission, Role.GUEST) if lifts else spec.permission)


class FileChange(Struct, frozen=True, gc=False):
    """A file that a call has changed. `before` refers to what it held, or is `new` (there was none) or `not kept` (it
    was too large); `now` is the beginning of the new content's sha256, or `gone`."""

    path: str
    before: str
    now: str


def parse_args(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call. Raises ValueError with a sentence for the model when they are not a JSON object."""
    if not call.args.strip():
        return {}
    try:
        args = msgspec.json.decode(call.args)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError(f"the arguments are not valid JSON ({error}); send one JSON object") from error
    if not isinstance(args, dict):
        raise ValueError("the arguments must be one JSON object")
    return args


def problems_of(call: ToolCall, spec: ToolSpec) -> list[str]:
    """What is wrong with a call, in sentences for the model; empty when it can run."""
    try:
        args = parse_args(call)
    except ValueError as error:
        return [str(error)]
    schema = {**spec.schema, "additionalProperties": False} if spec.closed else spec.schema
    return list(_problems(args, schema, ""))


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "null": lambda value: value is None,
}


def _problems(value: Any, schema: dict[str, Any], where: str) -> Iterator[str]:
    name = where or "the arguments"
    if "anyOf" in schema:
        if not any(not list(_problems(value, option, where)) for option in schema["anyOf"]):
            yield f"{name} fits none of the allowed forms"
        return
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_CHECKS.get(kind, lambda _: True)(value) for kind in kinds):
        yield f"{name} must be {' or '.join(kinds)}, not {msgspec.json.encode(value).decode()[:80]}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{name} must be one of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{name} must be {schema['const']!r}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            yield f"{name} must be at least {schema['minimum']}"
        if value > schema.get("maximum", value):
            yield f"{name} must be at most {schema['maximum']}"
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from _problems(item, schema["items"], f"{where}[{index}]")
    if isinstance(value, dict):
        yield from _object_problems(value, schema, where)


def _object_problems(value: dict[str, Any], schema: dict[str, Any], where: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    prefix = f"{where}." if where else ""
    for missing in [key for key in schema.get("required", []) if key not in value]:
        yield f"{prefix}{missing} is required"
    for key, item in value.items():
        if item is None and key in properties and key not in schema.get("required", []):
            continue  # many models say null for "not given"
        if key in properties:
            yield from _problems(item, properties[key], f"{prefix}{key}")
        elif schema.get("additionalProperties") is False:
            yield f"{prefix}{key} is not a parameter; the parameters are {', '.join(properties) or 'none'}"
