"""What is asked and told about settings, keys and models."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from .shapes import ApiInput


class OfProvider(ApiInput, frozen=True):
    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class KeyToKeep(ApiInput, frozen=True):
    key: Annotated[str, Meta(min_length=1, max_length=10_000)]


class Trying(ApiInput, frozen=True):
    """`name` is provider/model or a preset; empty: the usual one."""

    name: Annotated[str, Meta(max_length=200)] = ""


class SettingRow(Struct, frozen=True):
    """One setting. Of a secret only `is_set` tells anything. A key with `<name>` in it stands for those that can be
    added. `source` says where the value comes from, `place` which line or variable that is: what the environment or the
    start of the program says cannot be changed here, and what is `by_hand` in the file itself only."""

    key: str
    kind: Literal["text", "whole", "number", "switch", "choice", "list", "rows", "table"]
    about: str
    value: Any
    default: Any
    is_set: bool
    source: Literal["default", "file", "environment", "start"]
    place: str
    secret: bool
    by_hand: bool
    optional: bool
    options: list[Any]
    least: float | None
    most: float | None


class SettingsShown(Struct, frozen=True):
    """`settings` are those in force; `rows` those of the next start, of which `restart_needed` are not yet in force."""

    settings: dict[str, Any]
    version: str
    file: str
    rows: list[SettingRow]
    restart_needed: list[str]


class KeyShown(Struct, frozen=True):
    """A provider: `where` its key was found ("": nowhere), and which `variable` could hold it; never the key."""

    name: str
    where: str
    variable: str
    login: bool
    in_vault: bool
    problem: str


class KeyList(Struct, frozen=True):
    keys: list[KeyShown]


class KeyKept(Struct, frozen=True):
    name: str
    notes: list[str]


class KeyForgotten(Struct, frozen=True):
    name: str


class CheckShown(Struct, frozen=True):
    """Seconds, tokens and US dollars."""

    name: str
    ok: bool
    why: str
    total: float
    first: float | None = None
    input: int = 0
    output: int = 0
    dimensions: int = 0
    cost: float | None = None


class TriedModel(Struct, frozen=True):
    model: str
    ok: bool
    checks: list[CheckShown]
