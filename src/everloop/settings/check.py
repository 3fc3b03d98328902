"""A layer of settings against their shape: our names for the keys, every value checked, every error with its place.

Error texts never show a value, because any value may be a secret in the wrong place.
"""

import os
import re
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, cast, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from ..errors import SettingsError
from .mcp import TABLE, McpServerSection
from .shape import AccountSection, EmbeddedSection, Providers, nearest, notes_of, snake
from .sources import Layer, Typed


def checked_section(layer: Layer, shape: type[Struct], values: Any, path: tuple[str, ...]) -> dict[str, Any]:
    """A table of one layer with our names for the keys and every value checked."""
    if isinstance(values, Typed):
        values = _read_json(values)
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        layer.refuse(path, f"{'.'.join(path)} must be a table of settings")
    if shape is Providers:
        return _providers(layer, values, path)
    fields = {field.name: field for field in msgspec.structs.fields(shape)}
    tree: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    for written, value in values.items():
        where = (*path, str(written))
        name = snake(str(written))
        if not path and name == TABLE:  # as the files of other clients have it
            beside = _named_sections(layer, McpServerSection, value, where)
            continue
        if name not in fields:
            layer.refuse(where, unknown(where, shape))
        if name in tree:
            layer.refuse(where, f"{'.'.join(where)} is given twice, with and without capitals; keep one of them")
        field = fields[name]
        if value is None and not is_section(field.type):  # null in JSON: as if nothing had been said
            tree[name] = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
        elif is_section(field.type):
            tree[name] = checked_section(layer, field.type, value, where)
        elif kind := kind_of_sections(field.type):
            tree[name] = _named_sections(layer, kind, value, where)
        elif kind := kind_of_rows(field.type):
            tree[name] = _rows(layer, kind, value, where)
        else:
            tree[name] = _value(layer, field.type, value, where)
    if beside:
        tools = tree.setdefault("tools", {})
        tools[TABLE] = {**beside, **tools.get(TABLE, {})}
    return tree


def _providers(layer: Layer, values: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    tree: dict[str, Any] = {"accounts": {}}
    for name, value in values.items():
        if name == "embedded":
            tree["embedded"] = checked_section(layer, EmbeddedSection, value, (*path, name))
        else:
            tree["accounts"][name] = checked_section(layer, AccountSection, value, (*path, name))
    return tree


def _named_sections(layer: Layer, kind: type[Struct], values: Any, path: tuple[str, ...]) -> dict[str, Any]:
    """Tables under names that are the owner's to give."""
    if isinstance(values, Typed):
        values = _read_json(values)
    if kind is McpServerSection:
        tables = values if isinstance(values, Mapping) else {"*": values}
        return {str(name): _mcp_server(layer, value, (*path, str(name))) for name, value in tables.items()}
    if not isinstance(values, Mapping):
        layer.refuse(path, f"{'.'.join(path)} must be a table of tables")
    return {str(name): checked_section(layer, kind, value, (*path, str(name))) for name, value in values.items()}


def mcp_section(name: str, table: Mapping[str, Any]) -> McpServerSection:
    """A server as it would be read from a file. Raises SettingsError."""
    from .mcp_forms import normal_form

    layer = Layer(table, lambda path: "")
    said = checked_section(layer, McpServerSection, normal_form(table), ("tools", TABLE, name))
    return cast(McpServerSection, built(McpServerSection, said))


def _mcp_server(layer: Layer, values: Any, path: tuple[str, ...]) -> dict[str, Any]:
    """What one of them has wrong keeps nothing else from being read."""
    from .mcp_forms import normal_form  # few settings files have any

    if isinstance(values, Typed):
        values = _read_json(values)
    try:
        return checked_section(layer, McpServerSection, normal_form(values), path)
    except SettingsError as error:
        why = str(error)
    place = layer.place(path)
    file = place.partition(", line ")[0]  # the key that is wrong stands in another line than the server does
    return {"wrong": why if file and why.startswith(file) else f"{place or '.'.join(path)}: {why}"}


def _rows(layer: Layer, kind: type[Struct], values: Any, path: tuple[str, ...]) -> list[dict[str, Any]]:
    """A list of tables, each of which is checked as strictly as one that stands alone."""
    if isinstance(values, Typed):
        values = _read_json(values)
    if not isinstance(values, list | tuple):
        layer.refuse(path, f"{'.'.join(path)} must be a list of tables")
    return [checked_section(layer, kind, value, (*path, str(number))) for number, value in enumerate(values, 1)]


def _value(layer: Layer, hint: Any, value: Any, path: tuple[str, ...]) -> Any:
    if notes_of(hint).get("kept"):
        return _plain(value)
    wants = without_none(hint)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if layer.environ is not None and not notes_of(hint).get("references"):
        value = _expanded(layer, _Known(layer.environ, bool(notes_of(hint).get("vault"))), value, path)
    if isinstance(value, Typed):
        if wants is not hint and not value:
            return None
        value = _read(value, wants)
    try:
        return _checked(value, wants)
    except ValueError:  # msgspec's sentence may quote the value, and does not know the key
        layer.refuse(path, f"{'.'.join(path)} must be {_expected(wants)}")


def _checked(value: Any, wants: Any) -> Any:
    if get_origin(wants) is not Literal:
        return msgspec.convert(value, wants)
    if not any(option == value and type(option) is type(value) for option in get_args(wants)):
        raise ValueError
    return value


_REFERENCE = re.compile(r"\$(\$?)\{([^}]*)\}")


class _Known(NamedTuple):
    """What a reference is looked up in. Those to the vault stay as they are where who uses the value looks there."""

    environ: Mapping[str, str]
    vault: bool


def _expanded(layer: Layer, known: _Known, value: Any, path: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping):
        pairs = ((key, _expanded(layer, known, item, (*path, str(key)))) for key, item in value.items())
        return {key: str(item) if isinstance(item, Typed) else item for key, item in pairs}
    if not isinstance(value, str) or "${" not in value:
        return value
    name = ".".join(path)

    def look_up(reference: re.Match[str]) -> str:
        if reference[1]:
            return reference[0][1:]
        if known.vault and reference[2].startswith("vault:"):
            return reference[0]
        if not re.fullmatch(r"[A-Za-z_]\w*", reference[2]):
            layer.refuse(path, f"{name} has a ${{…}} without the name of a variable; write $${{ for a plain ${{")
        if reference[2] not in known.environ:
            layer.refuse(path, f"{name} needs the environment variable {reference[2]}, which is not set")
        return known.environ[reference[2]]

    return Typed(_REFERENCE.sub(look_up, value))


def read_text(text: str, hint: Any) -> Any:
    """What somebody has typed, as the setting wants it; None is what an optional one is without a value. As it is where
    it cannot be read so, or refers to a variable: whoever checks it says what is wrong."""
    wants = without_none(hint)
    if wants is not hint and not text:
        return None
    return text if "${" in text else _read(Typed(text), wants)


def _read(text: Typed, wants: Any) -> Any:
    """Text as the type that is wanted; as it is when it cannot be."""
    base = get_args(wants)[0] if get_origin(wants) is Annotated else wants
    if base is str or (get_origin(base) is Literal and base != Literal[True]):
        return str(text)
    if base in (bool, Literal[True]):
        return {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False,
                "off": False}.get(text.strip().lower(), str(text))  # fmt: skip
    if get_origin(base) is tuple and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    if base in (int, float):
        try:
            return base(text.strip())
        except ValueError:
            return str(text)
    return _read_json(text)


def _read_json(text: str) -> Any:
    try:
        return msgspec.json.decode(str(text))
    except (msgspec.DecodeError, RecursionError):
        return str(text)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Typed):
        return _read_json(value) if value[:1] in ("{", "[") else str(value)
    return value


def lay_over(below: dict[str, Any], above: Mapping[str, Any]) -> None:
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(below.get(key), dict):
            lay_over(below[key], value)
        else:
            below[key] = value


def built(shape: type[Struct], tree: Mapping[str, Any]) -> Struct:
    made = dict(tree)
    for field in msgspec.structs.fields(shape):
        if field.name in made and is_section(field.type):
            made[field.name] = built(field.type, made[field.name])
        elif field.name in made and (kind := kind_of_sections(field.type)):
            made[field.name] = {name: built(kind, section) for name, section in made[field.name].items()}
        elif field.name in made and (kind := kind_of_rows(field.type)):
            made[field.name] = tuple(built(kind, row) for row in made[field.name])
    return shape(**made)


def is_section(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct)


def kind_of_sections(hint: Any) -> type[Struct] | None:
    """What the values of a table of named tables are."""
    kind = get_args(hint)[1] if get_origin(hint) is dict else None
    return kind if is_section(kind) else None


def kind_of_rows(hint: Any) -> type[Struct] | None:
    """What the rows of a list of tables are."""
    kind = get_args(hint)[0] if get_origin(hint) is tuple else None
    return kind if is_section(kind) else None


def without_none(hint: Any) -> Any:
    if get_origin(hint) is UnionType or NoneType in get_args(hint):
        return next(kind for kind in get_args(hint) if kind is not NoneType)
    return hint


def unknown(path: tuple[str, ...], shape: type[Struct]) -> str:
    near = nearest(path[-1], shape, 0.6)
    hint = f"did you mean {near}?" if near else f"the keys here are {', '.join(shape.__struct_fields__)}"
    return f"there is no setting {'.'.join(path)}; {hint}"


_WORDS: dict[Any, str] = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def _expected(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        if expected := notes_of(hint).get("expected"):
            return str(expected)
        base, *notes = get_args(hint)
        limits = [(meta.ge, meta.le) for meta in notes if isinstance(meta, Meta)]
        words = [f"at least {low:g}" for low, _ in limits if low is not None]
        words += [f"at most {high:g}" for _, high in limits if high is not None]
        return " ".join([_expected(base), "of" if words else "", " and ".join(words)]).strip()
    if get_origin(hint) is Literal:
        return " or ".join("true" if option is True else f'"{option}"' for option in get_args(hint))
    return "a list of text" if get_origin(hint) is tuple else _WORDS.get(hint, "a table of text")
