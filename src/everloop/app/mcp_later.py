"""The MCP servers of an open house, as long as there is none: nothing of MCP is loaded until the settings name one, or
somebody asks about them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from ..ports import Store, Vault
from ..ports.tools import Tool
from ..runtime.supervisor import Supervisor

if TYPE_CHECKING:
    from ..settings.mcp import McpServerSection
    from .mcp import Connects, HouseMcp


class McpLater:
    """A ToolSource. `servers` loads what there is of MCP."""

    def __init__(self, store: Store, vault: Vault, connect: "Connects") -> None:
        self._store = store
        self._vault = vault
        self._connect = connect
        self._servers: HouseMcp | None = None
        self._start: Callable[[HouseMcp], None] | None = None

    @property
    def servers(self) -> "HouseMcp":
        if self._servers is None:
            from .mcp import HouseMcp

            self._servers = HouseMcp(self._store, self._vault, self._connect)
            if self._start:
                self._start(self._servers)
        return self._servers

    @property
    def is_loaded(self) -> bool:
        return self._servers is not None

    @property
    def version(self) -> object:
        return self._servers.version if self._servers else 0

    def tools(self) -> Sequence[Tool]:
        return self._servers.tools() if self._servers else ()

    async def follow(self, sections: "Mapping[str, McpServerSection]", taken: Collection[str]) -> None:
        """Take over what the settings say; `taken` are the names of tools of the house. Raises StoreError."""
        if sections or self._servers:
            await self.servers.follow(sections, taken)

    async def look(self) -> None:
        """Whether another process has changed what is allowed, or a secret. Raises StoreError."""
        if self._servers:
            await self._servers.look()

    def start(self, supervisor: Supervisor, stack: AsyncExitStack) -> None:
        """From now on servers are spoken with here, also those that are set later."""
        self._start = lambda servers: servers.start(supervisor, stack)
        if self._servers:
            self._start(self._servers)
