"""What somebody says of an MCP server that is to be set up: what of it is written into the settings file, and what is
kept in the vault."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from ..errors import EverloopError, SettingsError
from ..settings.check import mcp_section
from ..settings.mcp import McpServerSection
from .channels import references_in
from .mcp_servers import NAME, looks_secret
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
    def table(self) -> dict[str, Any]:
        """What stands in the file: all that is not as it is without it."""
        return _said(self.section, McpServerSection())

    def with_package(self, command: tuple[str, ...], digest: str) -> "NewServer":
        section = replace(self.section, command=command[0], args=tuple(command[1:]), package=digest)
        return replace(self, section=section)


def new_server(name: str, given: Mapping[str, Any]) -> NewServer:
    """Raises EverloopError, which quotes no value."""
    if not NAME.fullmatch(name):
        raise EverloopError("a server's name has up to 50 letters (a to z), digits, dots, dashes and underscores")
    section = mcp_section(name, given)
    secrets: dict[str, str] = {}
    kept: dict[str, Any] = {}
    for key, values in (("env", section.env), ("headers", section.headers)):
        plain = {each: value for each, value in values.items() if looks_secret(each) and not references_in(value)}
        secrets |= {own_secret(name, each): checked_secret(value) for each, value in plain.items()}
        kept[key] = {**values, **{each: f"${{{VAULT}{own_secret(name, each)}}}" for each in plain}}
    if (login := section.oauth).client_secret and not references_in(login.client_secret):
        own = own_secret(name, "client_secret")
        secrets[own] = checked_secret(login.client_secret)
        section = replace(section, oauth=replace(login, client_secret=f"${{{VAULT}{own}}}"))
    return NewServer(name, replace(section, **kept), secrets)


def own_secret(server: str, key: str) -> str:
    """The name in the vault of what is a server's own."""
    return f"{_PREFIX}{server}.{key}"


def is_own(server: str, secret: str) -> bool:
    return secret.startswith(own_secret(server, ""))


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
