"""The settings as rows, for forms: what each one is, what it may be, and where its present value comes from."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from .check import is_section, kind_of_rows, kind_of_sections, without_none
from .edit import Path, key_of
from .shape import AccountSection, EmbeddedSection, Providers, Settings, notes_of, shown_value
from .words import ABOUT

Kind = Literal["text", "whole", "number", "switch", "choice", "list", "rows", "table"]
Source = Literal["default", "file", "environment", "start"]
NAME = "<name>"
# Tables of tables whose names are the owner's.
NAMED: tuple[Path, ...] = (
    *(("agents", "profiles"), ("models",), ("personas",), ("prices",), ("providers",)),
    ("tools", "mcp_servers"),
)


class Origin(Struct, frozen=True):
    """Where a value comes from: `place` is a line of the file, or a variable."""

    source: Source = "default"
    place: str = ""


class SettingsRow(Struct, frozen=True):
    """One setting. Of a secret only `is_set` tells anything. A key with `<name>` in it stands for those that can be
    added; `least` and `most` bound a number."""

    key: str
    kind: Kind
    about: str
    value: Any
    default: Any
    is_set: bool
    source: Source = "default"
    place: str = ""
    secret: bool = False
    by_hand: bool = False  # changed in the file itself and nowhere else
    optional: bool = False  # null is a value, too
    options: tuple[Any, ...] = ()
    least: float | None = None
    most: float | None = None

    @property
    def is_pattern(self) -> bool:
        return NAME in self.key


class Leaf(Struct, frozen=True):
    """A place where a value can stand."""

    path: Path
    hint: Any
    default: Any


def leaves_of(shape: Any = Settings, path: Path = (), names: Mapping[Path, tuple[str, ...]] = {}) -> Iterator[Leaf]:
    """Every place there is; under tables whose names are the owner's, those of `names` and one for any."""
    if shape is Providers:
        yield from leaves_of(EmbeddedSection, (*path, "embedded"))
        yield from _named(AccountSection, path, names)
        return
    for field in msgspec.structs.fields(shape):
        where = (*path, field.name)
        if notes_of(field.type).get("kept"):
            continue
        if is_section(field.type):
            yield from leaves_of(field.type, where, names)
        elif kind := kind_of_sections(field.type):
            yield from _named(kind, where, names)
        else:
            made = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
            yield Leaf(where, field.type, made)


def _named(kind: type[Struct], path: Path, names: Mapping[Path, tuple[str, ...]]) -> Iterator[Leaf]:
    for name in (*names.get(path, ()), NAME):
        yield from leaves_of(kind, (*path, name))


def rows_of(settings: Settings, origins: Mapping[Path, Origin]) -> list[SettingsRow]:
    """`origins` say of every path that someone has set who did."""
    named: dict[Path, tuple[str, ...]] = {
        ("agents", "profiles"): tuple(settings.agents.profiles),
        ("models",): tuple(settings.models),
        ("personas",): tuple(settings.personas),
        ("prices",): tuple(settings.prices),
        ("providers",): tuple(settings.providers.accounts),
        ("tools", "mcp_servers"): tuple(settings.tools.mcp_servers),
    }
    return [_row(leaf, settings, origins.get(leaf.path, Origin())) for leaf in leaves_of(names=named)]


def value_at(settings: Settings, path: Path, missing: Any = None) -> Any:
    """What stands under a path of the file, as the settings have it."""
    node: Any = settings
    for part in path:
        if isinstance(node, Providers) and part != "embedded":
            node = node.accounts
        node = node.get(part) if isinstance(node, Mapping) else getattr(node, part, None)
        if node is None:
            return missing
    return node


def _row(leaf: Leaf, settings: Settings, origin: Origin) -> SettingsRow:
    secret, wants = bool(notes_of(leaf.hint).get("secret")), without_none(leaf.hint)
    now = leaf.default if NAME in leaf.path else value_at(settings, leaf.path, leaf.default)
    base = get_args(wants)[0] if get_origin(wants) is Annotated else wants
    limits = [note for note in get_args(wants)[1:] if isinstance(note, Meta)] if base is not wants else []
    return SettingsRow(
        key=".".join(leaf.path) if NAME in leaf.path else key_of(leaf.path),
        kind=_kind(base),
        about=ABOUT.get(".".join(_general(leaf.path)), ""),
        value=None if secret else shown_value(now, leaf.hint),
        default=None if secret else shown_value(leaf.default),
        is_set=bool(now) if secret else origin.source != "default",
        source=origin.source,
        place=origin.place,
        secret=secret,
        by_hand="by_hand" in notes_of(leaf.hint),
        optional=wants is not leaf.hint,
        options=get_args(base) if get_origin(base) is Literal else (),
        least=next((_number(meta.ge) for meta in limits if meta.ge is not None), None),
        most=next((_number(meta.le) for meta in limits if meta.le is not None), None),
    )


def _general(path: Path) -> Path:
    table = named_table(path)
    return (*table, NAME, *path[len(table) + 1 :]) if table else path


def named_table(path: Path) -> Path:
    """The table of tables that a path leads into, where its next part is a name of the owner's; () if there is none."""
    found = next((each for each in NAMED if path[: len(each)] == each and len(path) > len(each)), ())
    return found if found and path[len(found)] != "embedded" else ()


def _number(limit: Any) -> float:
    return float(limit)


def _kind(base: Any) -> Kind:
    if get_origin(base) is Literal:
        return "switch" if get_args(base) == (True,) else "choice"
    if get_origin(base) is tuple:
        return "rows" if kind_of_rows(base) else "list"
    kinds: dict[Any, Kind] = {str: "text", int: "whole", float: "number", bool: "switch"}
    return kinds.get(base, "table")
