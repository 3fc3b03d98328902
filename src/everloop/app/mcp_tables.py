"""What somebody says of an MCP server that is to be set up: what of it is written into the settings file, and what is
kept in the vault."""

import re
from collections.abc import Mapping
from itertools import count
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from ..errors import EverloopError, SettingsError
from ..readings.secret_parts import Parts, argument_parts, replaced, text_parts, value_parts
from ..settings.check import mcp_section
from ..settings.mcp import McpServerSection
from .channels import references_in
from .mcp_servers import NAME, looks_secret, references_of
from .secrets import VAULT, checked_secret

_PREFIX = "mcp."


class NewServer(Struct, frozen=True):
    """A server as it would be written; `secrets` are kept under these names."""

    name: str
    section: McpServerSection
    secrets: Mapping[str, str]

    def __repr__(self) -> str:
        return f"NewServer({self.name!r})"

    @property
    def known(self) -> dict[str, str]:
        """The secrets, as the settings refer to them."""
        return {f"{VAULT}{name}": secret for name, secret in self.secrets.items()}

    @property
    def command(self) -> tuple[str, ...]:
        """As it was given, with its secrets: whoever installs a package hands the rest of it on."""
        return tuple(_told(each, self.known) for each in (self.section.command, *self.section.args))

    @property
    def table(self) -> dict[str, Any]:
        """What stands in the file: all that is not as it is without it."""
        return _said(self.section, McpServerSection())

    @property
    def beyond_usual(self) -> tuple[str, ...]:
        """What it would see, reach, be given or be trusted with, as no server is that says nothing of it."""
        section, references = self.section, sorted(references_of(self.section) - self.known.keys())
        effects = dict.fromkeys(each for each in section.effects.values() if each != "unsafe")
        given = [f"the secret {each[len(VAULT) :]}" if each.startswith(VAULT) else each for each in references]
        wishes = {
            "run outside of the sandbox": section.command and not section.sandbox,
            "see your workspace": section.workspace,
            f"reach {', '.join(section.network)}": section.network,
            f"be given {', '.join(given)}": given,
            f"be used by {section.permission}s": section.permission != "owner",
            "have models asked": section.sampling,
            f"have tools count as {' or '.join(effects)}": effects,
        }
        return tuple(wish for wish, is_wanted in wishes.items() if is_wanted)

    def with_package(self, command: tuple[str, ...], digest: str) -> "NewServer":
        section = replace(self.section, command=command[0], args=tuple(command[1:]), package=digest)
        return replace(self, section=section)


def new_server(name: str, given: Mapping[str, Any]) -> NewServer:
    """Raises EverloopError, which quotes no value."""
    if not NAME.fullmatch(name):
        raise EverloopError("a server's name has up to 50 letters (a to z), digits, dots, dashes and underscores")
    section, own = mcp_section(name, given), _OwnSecrets(name)
    args = tuple(own.parted(parts) for parts in argument_parts(section.args))
    named = {
        key: {each: own.named(each, value) for each, value in values.items()}
        for key, values in (("env", section.env), ("headers", section.headers))
    }
    url, login = own.parted(text_parts(section.url)), section.oauth
    if login.client_secret and not references_in(login.client_secret):
        login = replace(login, client_secret=own.kept("client_secret", login.client_secret))
    return NewServer(name, replace(section, args=args, url=url, oauth=login, **named), own.secrets)


class _OwnSecrets:
    """What is taken out of the settings of a server, and the references that stand there instead."""

    def __init__(self, server: str) -> None:
        self._server = server
        self.secrets: dict[str, str] = {}

    def named(self, name: str, value: str) -> str:
        """What a variable or a header is to say."""
        if looks_secret(name) and not references_in(value):
            return self.kept(name, value)
        return self.parted(value_parts(value, name))

    def parted(self, parts: Parts) -> str:
        return replaced(parts, lambda part: self.kept(part.name, part.text))

    def kept(self, key: str, value: str) -> str:
        """A reference to it. One that is written twice is kept once. Raises EverloopError."""
        secret, plain = checked_secret(value), re.sub(r"[^A-Za-z0-9_-]", "_", key)[:40]
        names = (own_secret(self._server, plain if n == 1 else f"{plain}_{n}") for n in count(1))
        name = next(each for each in names if self.secrets.get(each, secret) == secret)
        self.secrets[name] = secret
        return f"${{{VAULT}{name}}}"


def _told(text: str, known: Mapping[str, str]) -> str:
    for reference, secret in known.items():
        text = text.replace(f"${{{reference}}}", secret)
    return text


def own_secret(server: str, key: str) -> str:
    """The name in the vault of what is a server's own. A server's name may have dots in it, and `key` none: that of
    `a.b` is never one of `a`."""
    return f"{_PREFIX}{server}.{key}"


def is_own(server: str, secret: str) -> bool:
    return secret.rpartition(".")[0] == f"{_PREFIX}{server}"


def check_alone(name: str, found: McpServerSection | None, wanted: McpServerSection | None) -> None:
    """Raises SettingsError where something lies over the file."""
    if found != wanted:
        raise SettingsError(
            f"tools.mcp_servers.{name} is also set by the environment, or was given when the program was started; "
            "change it there"
        )


def _said(section: Any, default: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in asdict(section).items():
        usual = getattr(default, key)
        if key == "oauth":
            value, usual = _said(value, usual), {}
        if value != usual:
            found[key] = list(value) if isinstance(value, tuple) else value
    return found
