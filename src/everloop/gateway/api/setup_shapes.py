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
    needs_key: bool


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


class ProviderShown(Struct, frozen=True):
    """A provider to connect to: `address` is where it is asked ("": it has to be told), `ready` that nothing more has
    to be given, `login` that it is logged in to with `everloop models login`."""

    name: str
    title: str
    group: Literal["hosted", "local", "own"]
    address: str
    needs_key: bool
    login: bool
    ready: bool


class ProviderList(Struct, frozen=True):
    providers: list[ProviderShown]


class Looking(ApiInput, frozen=True):
    """Without an `address` it is the provider's; without a `key`, the one that is kept, if the address is the same."""

    provider: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    address: Annotated[str, Meta(max_length=2000)] = ""
    key: Annotated[str, Meta(max_length=10_000)] = ""


class Connecting(Looking, frozen=True, kw_only=True):
    model: Annotated[str, Meta(min_length=1, max_length=300)]


class ModelOffered(Struct, frozen=True):
    """A model, how many tokens it can read, and US dollars for a million of them; null is not known."""

    name: str
    window: int | None
    input: float | None
    output: float | None


class ModelsFound(Struct, frozen=True):
    """`address` is where they were listed, `usual` the one to begin with."""

    address: str
    models: list[ModelOffered]
    usual: str


class ModelConnected(Struct, frozen=True):
    model: str
    notes: list[str]


class EmbeddedShown(Struct, frozen=True):
    """The model of this machine. `answers`: it is the usual one. Bytes; `left` are seconds, null where nobody knows;
    `what` is being done, and `why` it failed."""

    answers: bool
    state: Literal["none", "absent", "fetching", "ready", "failed"]
    done: int
    total: int
    what: str
    left: float | None
    why: str
