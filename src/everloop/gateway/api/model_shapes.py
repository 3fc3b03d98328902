"""Models and their hosts, as the API shows them."""

from typing import Annotated

from msgspec import Meta, Struct

from .shapes import ApiInput


class ModelChoice(Struct, frozen=True):
    """`name` is what `/model` takes; `model` what answers then. It reads `window` tokens and says at most `answer`;
    `input` and `output` are dollars for a million tokens. null: nobody says. What is `local` runs on this machine."""

    name: str
    model: str
    default: bool = False
    window: int | None = None
    answer: int | None = None
    input: float | None = None
    output: float | None = None
    local: bool = False


class ConnectedHost(Struct, frozen=True):
    """One that is not `configured` is a server that may run on this machine, or not."""

    name: str
    configured: bool


class ConnectedHosts(Struct, frozen=True):
    hosts: list[ConnectedHost]


class OfHost(ApiInput, frozen=True):
    name: Annotated[str, Meta(min_length=1, max_length=200)]


class HostModel(Struct, frozen=True):
    """As ModelChoice; `sees` images, calls `tools`. null: nobody says."""

    name: str
    window: int | None
    answer: int | None
    input: float | None
    output: float | None
    sees: bool | None
    tools: bool | None


class HostModels(Struct, frozen=True):
    """`state` says in two words why there are none, `why` in a sentence, to admins."""

    name: str
    state: str
    why: str
    models: list[HostModel]


class ModelList(Struct, frozen=True):
    """`missing` says why nobody can answer, and what to do; empty when somebody can."""

    default: str
    notice: str
    choices: list[ModelChoice]
    missing: str = ""
