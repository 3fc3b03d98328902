"""What is asked and told about what people keep for themselves: keys of model providers, and credentials for tools."""

from typing import Annotated

from msgspec import Meta, Struct

from .shapes import ApiInput


class OfCredential(ApiInput, frozen=True):
    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]


class OwnKeyShown(Struct, frozen=True):
    """A key of yours that is kept for a provider, and since when (Unix time). `problem` says why it is of no use."""

    provider: str
    at: float
    problem: str = ""


class OwnKeyList(Struct, frozen=True):
    """Your keys, and the `providers` for whom one may be given; `notes` say what is to be known of a change."""

    keys: list[OwnKeyShown]
    providers: list[str]
    notes: list[str] = []


class KeepingCredential(ApiInput, frozen=True):
    """`hosts` are those that it may be sent to, as `header`; `commands`: they may have it too, once a person has said
    yes to each."""

    value: Annotated[str, Meta(min_length=1, max_length=10_000)]
    hosts: tuple[Annotated[str, Meta(max_length=300)], ...] = ()
    header: Annotated[str, Meta(max_length=60)] = "Authorization"
    commands: bool = False


class CredentialShown(Struct, frozen=True):
    """`variable` is what commands find it in, where they may have it."""

    name: str
    at: float
    origins: list[str]
    header: str
    variable: str
    problem: str = ""


class OwnCredentialList(Struct, frozen=True):
    credentials: list[CredentialShown]
