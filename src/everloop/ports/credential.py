"""A credential that a person keeps for their tools: models know its name, and its value is put in where a tool runs."""

import re

from msgspec import Struct

SHORTEST, LONGEST = 8, 8000  # characters of a value: a shorter one could not be told from other text where it is hidden
AUTHORIZATION = "Authorization"


class KeptCredential(Struct, frozen=True):
    """What its box holds. It is sent as `header` to these `origins` (`https://host[:port]`) and to no other, and given
    to `commands` only where its person has said so."""

    value: str
    origins: tuple[str, ...] = ()
    header: str = AUTHORIZATION
    commands: bool = False

    def __repr__(self) -> str:
        return f"KeptCredential(…, {self.origins!r}, {self.header!r}, {self.commands!r})"

    @property
    def headers(self) -> dict[str, str]:
        """As a request carries it. A word alone is a bearer token; who wants another scheme keeps it with its name."""
        bearer = self.header.lower() == AUTHORIZATION.lower() and " " not in self.value
        return {self.header: f"Bearer {self.value}" if bearer else self.value}


class CredentialRow(Struct, frozen=True):
    """What is told of one: everything but its value. `variable` is what commands find it in, if they may have it;
    `problem` says why it is of no use now."""

    name: str
    at: float
    origins: tuple[str, ...] = ()
    header: str = AUTHORIZATION
    variable: str = ""
    problem: str = ""


def variable_of(name: str) -> str:
    """What a command finds it in."""
    plain = re.sub(r"[^A-Z0-9_]", "_", name.upper())
    return plain if plain[:1].isalpha() else f"_{plain}"
