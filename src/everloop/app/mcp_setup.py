"""Setting up an MCP server, and removing one.

A server is looked at before anything is written: what it offers is shown, and what was shown is what is allowed, byte
by byte. What is secret goes into the vault.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Protocol

from ..core.people import OWNER
from ..core.tool import Effect
from ..errors import EverloopError, McpDown, McpLogin
from ..ports.audit import acting, line_of
from ..ports.mcp import McpOffer, McpPin, McpServer
from ..ports.mcp_rows import McpReview
from ..readings.visible import visible
from ..settings import Settings
from ..settings.edit import SettingChange
from ..settings.editor import SettingsDraft, SettingsEditor
from ..settings.mcp import McpServerSection
from .mcp import HouseMcp, pins_for
from .mcp_servers import secrets_named, server_of, where_of, without_secrets_of
from .mcp_tables import NewServer, check_alone, is_own, new_server
from .mcp_tool_rows import tool_rows
from .mcp_tools import OfferedTools, allowable, effect_of
from .opening import OpenHome
from .secrets import forget_secret, keep_secret, kept_secrets, take_out
from .settings_writing import write_noted


class InstallsPackages(Protocol):
    """Installs what an npx or uvx command would fetch, in the folder of a server. Raises ToolError."""

    def question(self, name: str, command: Sequence[str], *, sandbox: bool) -> str:
        """What is asked before something is fetched; "" where there is nothing to fetch."""
        ...

    async def install(self, name: str, command: Sequence[str], *, sandbox: bool) -> tuple[tuple[str, ...], str]:
        """The command with its exact version, and the digest of what was installed; "" where there is nothing to."""
        ...

    async def remove(self, name: str) -> None:
        """The server's folder."""


class ForgetsLogins(Protocol):
    async def log_out(self, name: str) -> bool:
        """Whether there was a login."""
        ...


class McpSetup:
    def __init__(
        self,
        home: OpenHome,
        book: SettingsEditor,
        mcp: HouseMcp,
        changed: Callable[[], Awaitable[None]],
        *,
        packages: InstallsPackages,
        logins: Callable[[], ForgetsLogins],
    ) -> None:
        """`changed` is called when the settings were written, for whoever has servers open here."""
        self._home = home
        self._book = book
        self._mcp = mcp
        self._changed = changed
        self._packages = packages
        self._logins = logins
        self._alone = asyncio.Lock()

    def question(self, name: str, given: Mapping[str, Any]) -> str:
        """What has to be asked before it can be looked at; "" where nothing has to be fetched. Raises EverloopError."""
        return self._asks(new_server(name, given))

    def wishes(self, name: str, given: Mapping[str, Any]) -> tuple[str, ...]:
        """What somebody else's settings of a server want for it that none has by itself. Raises EverloopError."""
        return new_server(name, given).beyond_usual

    async def install(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Fetch what its command runs; the settings with that. Raises EverloopError."""
        new = new_server(name, given)
        if not new.section.command:
            return dict(given)
        command, digest = await self._install(new)
        return {**given, "command": command[0], "args": list(command[1:]), "package": digest} if digest else dict(given)

    async def install_again(self, name: str) -> None:
        """What the command of a server fetches that is set up; its tools are to be allowed anew, if that is something
        else than before. Raises EverloopError."""
        async with self._alone:
            section = await self._section(name)
            new = NewServer(name, section, {})
            command, digest = await self._install(new) if section.command else ((), "")
            if not digest:
                raise EverloopError(f"there is nothing to install for {name}")
            draft = await self._drafted(new.with_package(command, digest))
            await self._home.store.note(line_of("mcp.added", name, {"package": digest}))
            await write_noted(self._book, draft, self._home.store)
        await self._changed()

    async def question_again(self, name: str) -> str:
        """As `question`, of a server that is set up. Raises EverloopError."""
        new = NewServer(name, await self._section(name), {})
        return self._asks(new)

    async def discard(self, name: str) -> None:
        """What was fetched for a server that nobody has set up."""
        if name not in (await self._settings()).tools.mcp_servers:
            await self._packages.remove(name)

    async def review(self, name: str, given: Mapping[str, Any]) -> McpReview:
        """What it offers, and nothing is written. Raises EverloopError."""
        new = new_server(name, given)
        server, offer = await self._tried(new)
        return McpReview(
            name,
            where_of(new.section),
            tool_rows(server, [], offer, OfferedTools()),
            _pin(server, offer),
            visible(offer.title),
            visible(offer.version),
            visible(offer.instructions),
            tuple(sorted(new.secrets)),
        )

    async def add(self, name: str, given: Mapping[str, Any], pin: str, effects: Mapping[str, Effect] = {}) -> None:
        """Set it up with these settings, and allow what was reviewed as `pin`. Raises EverloopError, and nothing was
        written then."""
        new = new_server(name, given)
        async with self._alone:
            server, offer = await self._tried(new)
            if not pin or pin != _pin(server, offer):
                raise EverloopError(
                    f"{name} offers something else than was shown; look at it again. Nothing was written"
                )
            draft = await self._drafted(new)
            pins = pins_for(server, offer, who(), checked_effects(server, offer, effects))
            await self._write(new, draft, pins)
        await self._changed()
        if offer.definitions:
            await self._mcp.compare(server, offer)

    async def remove(self, name: str) -> list[str]:
        """Take it out of the settings, with what was allowed of it, its login, its folder and what of the vault is its
        own; returns the names of secrets that stay. Raises EverloopError."""
        async with self._alone:
            section = await self._section(name)
            named, shared = secrets_named([section]), await self._named_beside(name)
            kept = await kept_secrets(self._home.vault)
            own = sorted(each for each in kept if is_own(name, each) and each not in shared)
            draft = await asyncio.to_thread(self._book.draft_changes, _gone(name))
            check_alone(name, draft.edition.settings.tools.mcp_servers.get(name), None)
            await self._home.store.note(line_of("mcp.removed", name, {"secrets": own}))
            await write_noted(self._book, draft, self._home.store)
            await self._home.store.mcp.unpin_mcp(name)
            for each in own:
                await forget_secret(self._home.vault, each)
            if section.url:
                await self._logins().log_out(name)
            await self._packages.remove(name)
        await self._changed()
        return sorted(named - set(own))

    async def _named_beside(self, name: str) -> frozenset[str]:
        """What of the vault other servers refer to."""
        sections = (await self._settings()).tools.mcp_servers
        return secrets_named(each for other, each in sections.items() if other != name)

    async def _install(self, new: NewServer) -> tuple[tuple[str, ...], str]:
        return await self._packages.install(new.name, new.command, sandbox=new.section.sandbox)

    def _asks(self, new: NewServer) -> str:
        section = new.section
        return self._packages.question(new.name, new.command, sandbox=section.sandbox) if section.command else ""

    async def _settings(self) -> Settings:
        return await asyncio.to_thread(self._home.settings_now)

    async def _section(self, name: str) -> McpServerSection:
        section = (await self._settings()).tools.mcp_servers.get(name)
        if section is None:
            raise EverloopError(f"there is no MCP server {name[:50]!r}: everloop mcp list has those that there are")
        return section

    async def _tried(self, new: NewServer) -> tuple[McpServer, McpOffer]:
        """What it offers, of a server that is not set up. Raises EverloopError."""
        kept = await take_out(self._home.vault, secrets_named([new.section]) - set(new.secrets))
        server = server_of(new.name, new.section, {**os.environ, **kept, **new.known})
        try:
            return server, await self._mcp.client.look(server)
        except McpLogin:
            if server.transport == "stdio":
                raise
            return server, McpOffer()  # it is set up first, and asked when somebody has logged in
        except McpDown as error:
            why = without_secrets_of(server, str(error)).rstrip(".")
            raise type(error)(f"{why}. Nothing was written") from error

    async def _drafted(self, new: NewServer) -> SettingsDraft:
        path = ("tools", "mcp_servers", new.name)
        written = [SettingChange((*path, key), value) for key, value in new.table.items()]
        draft = await asyncio.to_thread(self._book.draft_changes, [*_gone(new.name), *written])
        check_alone(new.name, draft.edition.settings.tools.mcp_servers.get(new.name), new.section)
        return draft

    async def _write(self, new: NewServer, draft: SettingsDraft, pins: Sequence[McpPin]) -> None:
        """The settings last: a server that nobody has looked at would else be allowed by itself elsewhere."""
        store = self._home.store
        for name, secret in new.secrets.items():
            await keep_secret(self._home.vault, name, secret)
        await store.note(line_of("mcp.added", new.name, {"keys": sorted(new.table)}))
        await store.mcp.unpin_mcp(new.name)
        if pins:
            await store.mcp.pin_mcp(pins)
        try:
            await write_noted(self._book, draft, store)
        except EverloopError:
            await store.mcp.unpin_mcp(new.name)
            raise


def who() -> str:
    """For whom something is allowed now."""
    return acting.get().person or OWNER


def _gone(name: str) -> list[SettingChange]:
    """Out of both places in which it may stand."""
    return [SettingChange(("tools", "mcp_servers", name), None), SettingChange(("mcp_servers", name), None)]


def _pin(server: McpServer, offer: McpOffer) -> str:
    """A name of exactly this server, offering exactly this."""
    bodies = sorted(f"{tool}\0{each.body}" for tool, each in allowable(offer).items())
    return sha256("\0".join((server.setup, *bodies)).encode()).hexdigest()


def checked_effects(server: McpServer, offer: McpOffer, words: Mapping[str, Effect]) -> dict[str, Effect]:
    """Raises EverloopError where the settings say otherwise, which would count."""
    for tool, effect in words.items():
        if tool not in allowable(offer):
            raise EverloopError(f"{server.name} has no tool {tool[:100]!r}")
        if effect_of(tool, server, effect) is not effect:
            raise EverloopError(
                f"tools.mcp_servers.{server.name}.effects says otherwise of {tool[:100]}; change that instead"
            )
    return dict(words)
