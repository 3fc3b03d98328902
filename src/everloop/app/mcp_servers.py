"""The MCP servers that the settings name, with what they refer to looked up. One that is wrong keeps no other from
being used, and is told."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from ..core.people import Role
from ..core.tool import Effect
from ..errors import SettingsError, VaultLocked
from ..ports import Vault
from ..ports.mcp import McpOAuth, McpServer, McpTransport
from ..readings.secret_parts import argument_parts, secrets_of, shown_arguments, text_parts
from ..settings.mcp import McpServerSection
from ..settings.shape import masked, shown_text
from .channels import UnknownVariable, is_secret, references_in
from .secrets import SECRET_NAME, VAULT, UnknownSecret, take_out

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,49}")
_REFERENCE = re.compile(rf"\$\{{([A-Za-z_]\w*|{VAULT}{SECRET_NAME})\}}")
_SECRET_HEADER = re.compile(r"auth|cookie", re.IGNORECASE)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# What makes the sandbox is started with the variables of the server, and would load what these name: outside of it.
_LOADING = re.compile(r"LD_\w+|DYLD_\w+|GLIBC_TUNABLES")
Sections = Mapping[str, McpServerSection]


async def servers_of(
    sections: Sections, vault: Vault, environ: Mapping[str, str] = os.environ
) -> dict[str, McpServer | str]:
    """Those that are switched on, by their names; of one that is wrong, a sentence. Raises StoreError."""
    return {name: await _server(name, each, vault, environ) for name, each in sections.items() if each.enabled}


async def _server(name: str, section: McpServerSection, vault: Vault, environ: Mapping[str, str]) -> McpServer | str:
    try:
        kept = await take_out(vault, secrets_named([section]))
        return server_of(name, section, {**environ, **kept})
    except (SettingsError, VaultLocked) as error:
        return str(error)


def secrets_named(sections: Iterable[McpServerSection]) -> frozenset[str]:
    """What of the vault they refer to."""
    found = {each for section in sections for each in references_of(section)}
    return frozenset(each.removeprefix(VAULT) for each in found if each.startswith(VAULT))


def references_of(section: McpServerSection) -> frozenset[str]:
    """The variables and, behind `vault:`, the secrets that it refers to."""
    return frozenset(each for text in _texts(section) for each in references_in(text))


def server_of(name: str, section: McpServerSection, known: Mapping[str, str]) -> McpServer:
    """In `known` stands what `${…}` is looked up in. Raises SettingsError, which quotes no value."""
    place = f"tools.mcp_servers.{name}"
    if section.wrong:
        raise SettingsError(section.wrong)
    if not NAME.fullmatch(name):
        raise SettingsError(f"{place}: a name has up to 50 letters (a to z), digits, dots, dashes and underscores")
    look_up = _Lookup(place, known)
    transport = _transport(place, section)
    server = McpServer(
        name=name,
        transport=transport,
        command=(look_up("command", section.command), *(look_up("args", each) for each in section.args))
        if transport == "stdio"
        else (),
        env={key: look_up(f"env.{key}", value) for key, value in section.env.items()},
        url=look_up("url", section.url) if transport != "stdio" else "",
        headers={key: look_up(f"headers.{key}", value) for key, value in section.headers.items()},
        oauth=McpOAuth(
            client_id=look_up("oauth.client_id", section.oauth.client_id),
            client_secret=look_up("oauth.client_secret", section.oauth.client_secret),
            scopes=section.oauth.scopes,
            issuers=section.oauth.issuers,
        ),
        network=section.network,
        workspace=section.workspace,
        sandbox=section.sandbox,
        package=section.package,
        seconds=section.timeout,
        tools=section.tools,
        permission=Role.OWNER if section.workspace else Role[section.permission.upper()],
        effects={pattern: Effect(word) for pattern, word in section.effects.items()},
        sampling=section.sampling,
    )
    _check(place, server)
    taken_out = [known[VAULT + each] for each in secrets_named([section]) if VAULT + each in known]
    return replace(server, secrets=frozenset({*taken_out, *_secrets_in(server)} - {""}))


def _transport(place: str, section: McpServerSection) -> McpTransport:
    if section.command and section.url:
        raise SettingsError(f"{place} has a command and a url: keep one of them")
    if not section.command and not section.url:
        raise SettingsError(f"{place} has neither a command nor a url")
    if section.transport == "auto":
        return "stdio" if section.command else "http"
    if (section.transport == "stdio") != bool(section.command):
        raise SettingsError(f"{place}.transport is {section.transport}, which does not go with what else is set there")
    return section.transport


def _check(place: str, server: McpServer) -> None:
    """What would fail only when it is first called, and nobody looks. Raises SettingsError."""
    if server.transport == "stdio" and not server.command[0].strip():
        raise SettingsError(f"{place}.command is empty")
    if any("\0" in each for each in (*server.command, *server.env, *server.env.values())):
        raise SettingsError(f"{place} has a character in it that no program can be given")
    if server.url and not re.fullmatch(r"https?://[^\s/?#]+[^\s]*", server.url):
        raise SettingsError(f"{place}.url must begin with https:// or http://")
    if any(not each or "=" in each for each in server.env):
        raise SettingsError(f"{place}.env has a name that no variable can have")
    if server.sandbox and (loading := [each for each in server.env if _LOADING.fullmatch(each)]):
        raise SettingsError(
            f"{place}.env has {loading[0]}, which would count outside of the sandbox, too; write it before the "
            f"command: env {loading[0]}=… COMMAND"
        )
    if not all(_HEADER.fullmatch(key) for key in server.headers):
        raise SettingsError(f"{place}.headers has a name that no header can have")
    if not all(value.isprintable() for value in server.headers.values()):
        raise SettingsError(f"{place}.headers has a value that cannot be sent in a header")


class _Lookup:
    def __init__(self, place: str, known: Mapping[str, str]) -> None:
        self._place = place
        self._known = known

    def __call__(self, key: str, text: str) -> str:
        """Raises SettingsError."""

        def found(reference: re.Match[str]) -> str:
            name = reference[1]
            if name in self._known:
                return self._known[name]
            if name.startswith(VAULT):
                raise UnknownSecret(f"{self._place}.{key}", name.removeprefix(VAULT))
            raise UnknownVariable(f"{self._place}.{key} needs the environment variable {name}, which is not set")

        return _REFERENCE.sub(found, text)


def _texts(section: McpServerSection) -> tuple[str, ...]:
    login = (section.oauth.client_id, section.oauth.client_secret)
    return (section.command, *section.args, *section.env.values(), section.url, *section.headers.values(), *login)


def looks_secret(key: str) -> bool:
    """Whether a variable or a header looks like one that nobody may see."""
    return is_secret(key) or bool(_SECRET_HEADER.search(key))


def where_of(section: McpServerSection) -> str:
    """How it is reached, without what may be a key."""
    import shlex  # only whoever looks needs it

    if not section.command:
        return masked(section.url)
    words = [each if references_in(each) else shown_text(each) for each in shown_arguments(section.args)]
    return shlex.join([shown_text(section.command), *words])


def without_secrets_of(server: McpServer, text: str) -> str:
    """What somebody says of a server, with no secret of its settings in it."""
    for secret in sorted((each for each in server.secrets if len(each) >= 4), key=len, reverse=True):
        text = text.replace(secret, "…")
    return text


def _secrets_in(server: McpServer) -> Iterator[str]:
    named = {**server.env, **server.headers}
    for value in [value for key, value in named.items() if looks_secret(key)]:
        yield from (value, value.partition(" ")[2])
    for parts in (*argument_parts(server.command[1:]), *map(text_parts, (*named.values(), server.url))):
        yield from secrets_of(parts)
    yield server.oauth.client_secret
