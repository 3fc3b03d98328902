"""The wire formats that models are spoken to in, each a module of pure functions under the Dialect protocol."""

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Literal, Protocol, cast

from ...core.prompt import Prompt
from ...errors import ProviderError
from ...ports.provider import Delta, Reply
from .quirks import Quirks

Name = Literal["openai_chat", "openai_responses", "anthropic_messages", "gemini"]


class Decoder(Protocol):
    """Is fed the body of one answer as the network gives it, and then tells the reply."""

    @property
    def done(self) -> bool:
        """Nothing more will come, whether or not the host closes the connection."""
        ...

    @property
    def complete(self) -> bool:
        """The host has said that the answer is at its end; only usage may still follow."""
        ...

    @property
    def heard(self) -> int:
        """How many events have said something. Comments and empty ones, which only keep a connection open, don't."""
        ...

    def feed(self, data: bytes) -> Delta | None:
        """What these bytes add to the answer; `b""` is the end of the body. Raises ProviderError."""
        ...

    def reply(self) -> Reply:
        """The whole answer. Raises StreamCut if its end has not come, HostFailed if it is not of this dialect."""
        ...


class Dialect(Protocol):
    """A module satisfies it."""

    NAME: str
    LISTING: str  # the path of the host's list of models

    def path(self, model: str) -> str:
        """What follows the host's base address when this model is asked for a streamed answer."""
        ...

    def headers(self, key: str) -> dict[str, str]:
        """How the key is shown; with an empty key, only what the dialect itself asks for."""
        ...

    def encode(self, prompt: Prompt, quirks: Quirks, host: str) -> bytes:
        """The body of a streaming request. `host` tells whose signed blocks may be sent back."""
        ...

    def decoder(self, host: str, model: str) -> Decoder: ...

    def error_from(
        self, host: str, model: str, status: int, headers: Mapping[str, str], body: bytes
    ) -> ProviderError: ...


def address(base: str, path: str) -> str:
    """A path of the dialect's behind a base that may already name the version with which the path begins."""
    base = base.rstrip("/")
    version = re.match(r"/v\d\w*(?=/)", path)
    return base + (path[version.end() :] if version and base.endswith(version[0]) else path)


def load(name: Name) -> Dialect:
    """Only the dialects that are spoken are ever imported."""
    return cast(Dialect, import_module(f".{name}", __name__))


def signer(dialect: str, host: str, model: str) -> str:
    """Who alone can read an opaque block: thoughts signed by one model at one host mean nothing to another."""
    return f"{dialect} {host}/{model}"
