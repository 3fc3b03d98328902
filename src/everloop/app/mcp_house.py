"""What an open house has of MCP beside its servers' tools, put together: loaded when somebody asks for it."""

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING

from ..ports.channel import traits_of
from ..ports.mcp import McpClient
from ..runtime.elicitation import Elicitations
from ..runtime.mcp_command import McpCommand
from .listening import lease_of
from .mcp_wiring import HouseLogins, connections

if TYPE_CHECKING:
    from ..runtime.sampling import SampledAnswers
    from .house import House
    from .mcp_desk import McpDesk
    from .reconfigure import LiveSettings


class McpOfHouse:
    def __init__(self, house: "House") -> None:
        self._house = house
        self._servers = house.builder.mcp.servers

    @cached_property
    def elicitations(self) -> Elicitations:
        """What servers ask people in the middle of a call."""
        questions = self._house.store.mcp_questions
        return Elicitations(questions, self._house.bus, self._house.inbox.answer, self._is_served)

    async def _is_served(self, channel: str) -> bool:
        """Whether what is said there is sent, here or by another process, or fetched."""
        builder = self._house.builder
        here = channel in builder.open_channels or traits_of(channel, builder.channels).polled
        return here or lease_of(channel) in await self._house.store.listening()

    @cached_property
    def command(self) -> McpCommand:
        return McpCommand(self._servers, self._house.mcp_answers)

    def connect(self) -> McpClient:
        house = self._house
        return connections(
            house.opened.home,
            lambda: house.builder.settings,
            house.opened.vault,
            house.made_later,
            clock=house.clock,
            bus=house.bus,
            keeper=house.storage.attachments,
            models=self._sampled(),
            people=self.elicitations,
        )

    def desk(self, live_settings: "LiveSettings") -> "McpDesk":
        """For the page: what is changed there is in force at once."""
        from .mcp_desk import McpDesk
        from .mcp_setup import McpSetup
        from .mcp_wiring import HousePackages

        opened, servers = self._house.opened, self._servers
        logins = HouseLogins(opened.vault, lambda: self._house.builder.settings, self._house.made_later)
        packages = HousePackages(opened.home)
        setup = McpSetup(opened, live_settings.book, servers, self.follow_settings, packages=packages, logins=logins)
        return McpDesk(opened, setup, servers, logins, logins.page)

    async def follow_settings(self) -> None:
        """What we have written into them ourselves, so that they are whole, is in force at once. Raises StoreError."""
        settings = await asyncio.to_thread(self._house.opened.settings_now)
        await self._servers.follow(settings.tools.mcp_servers)
        await self._house.live.catch_up()

    def _sampled(self) -> "SampledAnswers":
        """Who answers what a server may have a model asked: few have one that does."""
        from ..runtime.sampling import SampledAnswers

        house = self._house
        return SampledAnswers(
            house.live.small_or_usual, house.budget_control, house.store, house.people, house.own_keys
        )
