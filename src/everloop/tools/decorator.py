"""A typed function as a tool: what a model is shown of it comes from its name, its docstring and its signature."""

import inspect
import types
import typing
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import msgspec

from ..core.people import Role
from ..core.tool import Circumstances, Effect, Exit, Risk, ToolSpec
from ..ports.tools import CallContext, Result, Tool

AsyncFunction = Callable[..., Awaitable[Result]]


@typing.overload
def tool(effect: AsyncFunction, /) -> Tool: ...


@typing.overload
def tool(
    effect: Effect = Effect.UNSAFE,
    *,
    name: str = "",
    local: bool = False,
    guarded: bool = False,
    seconds: float = 60.0,
    permission: Role = Role.OWNER,
    risk: Callable[[dict[str, Any], Circumstances], Risk] | None = None,
    scene: str = "",
    polls: bool = False,
    undoable: bool = False,
    outside: bool = False,
    exit: Exit = "",
) -> Callable[[AsyncFunction], Tool]: ...


def tool(
    effect: Effect | AsyncFunction = Effect.UNSAFE,
    *,
    name: str = "",
    local: bool = False,
    guarded: bool = False,
    seconds: float = 60.0,
    permission: Role = Role.OWNER,
    risk: Callable[[dict[str, Any], Circumstances], Risk] | None = None,
    scene: str = "",
    polls: bool = False,
    undoable: bool = False,
    outside: bool = False,
    exit: Exit = "",
) -> Tool | Callable[[AsyncFunction], Tool]:
    """Turn a typed async function into a Tool: name, docstring and signature become what the model is shown.

    A parameter annotated `CallContext` is filled in by the loop and hidden from the model. Describe a parameter
    with `Annotated[str, "what it is"]`. Without arguments, as `@tool`, the tool is unsafe and for the owner alone.
    Raises TypeError when the function cannot be a tool.
    """
    if not isinstance(effect, Effect):
        return tool()(effect)

    def make(function: AsyncFunction) -> Tool:
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"a tool is an async function; write `async def {getattr(function, '__name__', '…')}`")
        schema, wants, takes_null, description = _known_signature(function)
        spec = ToolSpec(
            name=name or function.__name__,
            description=description,
            schema=schema,
            effect=effect,
            local=local,
            guarded=guarded,
            seconds=seconds,
            permission=permission,
            risk=risk,
            scene=scene,
            polls=polls,
            undoable=undoable,
            outside=outside,
            exit=exit,
            closed=True,
        )

        async def run(args: dict[str, Any], context: CallContext) -> Result:
            given = {n: value for n, value in args.items() if value is not None or n in takes_null}
            return await function(**given, **({wants: context} if wants else {}))

        return Tool(spec, run)

    return make


class _Signature(NamedTuple):
    """What a function says of itself. `wants` is the parameter that is handed the context."""

    schema: dict[str, Any]
    wants: str | None
    takes_null: frozenset[str]
    description: str


_READ: dict[object, _Signature] = {}
_MOST = 1000  # signatures that are remembered


def _known_signature(function: AsyncFunction) -> _Signature:
    """Everybody has tools of their own, made by the same lines: what these say is read once, and shared. What an
    annotation means that is kept as text, its module says, and by that no function is known."""
    texts = any(isinstance(hint, str) for hint in getattr(function, "__annotations__", {}).values())
    if type(function) is not types.FunctionType or "__wrapped__" in vars(function) or texts:
        return _signature_of(function)
    said = (*function.__annotations__.items(), *(function.__kwdefaults__ or {}).items())
    key = function.__code__, function.__defaults__, function.__doc__, said
    try:
        hash(key)
    except TypeError:  # a default such as []
        return _signature_of(function)
    if key not in _READ:
        if len(_READ) >= _MOST:
            _READ.clear()
        _READ[key] = _signature_of(function)
    return _READ[key]


def _signature_of(function: AsyncFunction) -> _Signature:
    hints = _hints(function)
    schema = schema_of(function, hints)
    wants = next((name for name, hint in hints.items() if hint is CallContext), None)
    takes_null = {name for name, hint in hints.items() if name in schema["required"] or _allows_none(hint)}
    return _Signature(schema, wants, frozenset(takes_null), inspect.getdoc(function) or "")


def schema_of(function: Callable[..., Any], hints: dict[str, Any] | None = None) -> dict[str, Any]:
    """The JSON schema of a function's arguments, from its signature. Raises TypeError when a model cannot call it."""
    hints = _hints(function) if hints is None else hints
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"a tool's parameter is given by name, which {parameter} of {function.__name__} cannot be")
        hint = hints.get(parameter.name, str)
        if hint is CallContext:
            continue
        shape = _schema_of_type(hint)
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
        elif parameter.default and parameter.default != shape.get("minimum"):  # what goes without saying is not said
            shape["default"] = parameter.default
        properties[parameter.name] = shape
    return {"type": "object", "properties": properties, "required": required}


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:  # an annotation kept as text sees the module, not the function it was written in
        raise TypeError(
            f"an annotation of {function.__name__} names {error.name}, which is not at the top of its module"
        ) from error
    hints.pop("return", None)
    return hints


def _allows_none(hint: Any) -> bool:
    return type(None) in get_args(get_args(hint)[0] if get_origin(hint) is Annotated else hint)


_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}


def _schema_of_type(hint: Any) -> dict[str, Any]:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _schema_of_type(args[0]) | _schema_of_notes(args[1:])
    if origin is Literal and {type(value) for value in args} <= _PLAIN.keys():
        kinds = list(dict.fromkeys(_PLAIN[type(value)] for value in args))
        return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": list(args)}
    if hint is Any:
        return {}
    if origin in (typing.Union, types.UnionType):
        kinds = [kind for kind in args if kind is not type(None)]
        return _schema_of_type(kinds[0]) if len(kinds) == 1 else {"anyOf": [_schema_of_type(kind) for kind in kinds]}
    if origin in (list, tuple):
        return {"type": "array", "items": _schema_of_type(args[0])}
    if origin is dict or hint in _PLAIN:
        return {"type": _PLAIN[origin or hint]}
    raise TypeError(f"a tool's parameter cannot be of type {hint!r}; use str, int, float, bool, list, dict or Literal")


def _schema_of_notes(notes: tuple[Any, ...]) -> dict[str, Any]:
    shape: dict[str, Any] = {}
    for note in notes:
        if isinstance(note, str):
            shape.setdefault("description", note)
        if isinstance(note, msgspec.Meta):
            limits = {"minimum": note.ge, "maximum": note.le, "description": note.description}
            shape |= {name: limit for name, limit in limits.items() if limit is not None}
    return shape
