"""An open everloop as the gateway uses it: what a program does with one, and more."""

import asyncio
from collections import ChainMap
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from ..core.mail import Inbound
from ..core.people import OWNER
from ..core.turn import Finished
from ..errors import EverloopError, MailRefused
from ..ports import WorkspaceFiles
from ..ports.channel import Hook, HookAnswer, HookRequest
from ..ports.directory import Person
from ..ports.events import Answer
from ..ports.house_status import HouseStatus
from ..ports.rows import Receipt
from ..runtime.deletions import Deletions
from ..runtime.membership import Membership
from ..runtime.sessions import Sessions
from ..settings import without_secrets
from .agent import Agent
from .answering import Admit, Again
from .build import Built
from .house import House
from .log_tail import LogFollower
from .reconfigure import LiveSettings

if TYPE_CHECKING:
    from ..runtime.erasures import Erasures
    from ..runtime.mcp_answers import McpAnswers
    from ..runtime.polling import PolledOutbox
    from .backup_desk import BackupDesk
    from .channel_desk import ChannelDesk
    from .connecting import ModelConnector
    from .direct_tools import HouseDirectTools
    from .doctor import HouseDoctor
    from .import_desk import ImportDesk
    from .mcp_desk import McpDesk
    from .offers import ModelOffers
    from .persona_desk import PersonaDesk

FETCH_SECONDS = 30.0


class GatewayDesk(Agent):
    """The gateway's `House` and `Desk`."""

    def __init__(self, house: House, live_settings: LiveSettings) -> None:
        super().__init__(house)
        self.live_settings = live_settings
        self._storage = house.storage
        self._opened = house.opened
        self._link_key: bytes | None = None

    @property
    def sessions(self) -> Sessions:
        return self._house.sessions

    @property
    def deletions(self) -> Deletions:
        return self._house.deletions

    @property
    def erasures(self) -> "Erasures":
        return self._house.erasures

    @cached_property
    def connector(self) -> "ModelConnector":
        from .connecting import ModelConnector

        return ModelConnector(self._live, self.live_settings)

    @cached_property
    def offers(self) -> "ModelOffers":
        from .offers import ModelOffers

        return ModelOffers(self._live)

    @cached_property
    def members(self) -> Membership:
        return Membership(self.store)

    @cached_property
    def polled(self) -> "PolledOutbox":
        from ..runtime.polling import PolledOutbox

        return PolledOutbox(self.store, self._shown, self._answering.askers, self._house.approvals, clock=self.clock)

    @cached_property
    def personas(self) -> "PersonaDesk":
        from .persona_desk import PersonaDesk

        changed, channels = self.live_settings.change, self._house.builder.channels
        return PersonaDesk(self._opened.home, self.store, self._caught_up, changed, channels)

    @cached_property
    def direct_tools(self) -> "HouseDirectTools":
        from .direct_tools import HouseDirectTools

        live, credentials = self._live, self._house.credentials
        return HouseDirectTools(self.store, lambda: live.now.kits, self._house.settings, self.clock, credentials)

    @cached_property
    def mcp(self) -> "McpDesk":
        return self._house.mcp.desk(self.live_settings)

    @property
    def mcp_answers(self) -> "McpAnswers":
        return self._house.mcp_answers

    @cached_property
    def hooks(self) -> Mapping[str, Sequence[Hook]]:
        """With where a browser comes back to that has logged in to an MCP server."""
        own: dict[str, Sequence[Hook]] = {"mcp": (Hook("GET", "/login", self._finish_mcp_login),)}
        return ChainMap(own, cast(dict[str, Sequence[Hook]], self._house.hooks))  # which come and go

    async def _finish_mcp_login(self, request: HookRequest) -> HookAnswer:
        from .mcp_login_hook import McpLoginHook

        return await McpLoginHook(self.mcp.finish_login).answer(request)

    @cached_property
    def doctor(self) -> "HouseDoctor":
        from .doctor import HouseDoctor

        return HouseDoctor(self._opened.home, self.tasks)

    @cached_property
    def log(self) -> LogFollower:
        return LogFollower(self._opened.home)

    @cached_property
    def backups(self) -> "BackupDesk":
        from .backup_desk import BackupDesk

        return BackupDesk(self._house)

    @cached_property
    def imports(self) -> "ImportDesk":
        from .import_desk import ImportDesk

        return ImportDesk(self._house, self.live_settings.book, self._house.mcp.follow_settings)

    @cached_property
    def channels(self) -> "ChannelDesk":
        from .channel_desk import ChannelDesk

        return ChannelDesk(self._opened, self.live_settings.book, self._house.network, self._channels_changed)

    async def _caught_up(self) -> Built:
        """What the settings have come to by now."""
        await self._live.catch_up()
        return self._live.now

    async def _channels_changed(self) -> None:
        if self._house.configured:
            await self._house.configured.follow(surely=True)

    async def house_status(self) -> HouseStatus:
        """Raises SettingsError, StoreError."""
        from .house_status import read_status

        now, opened = self._live.now, self._opened
        settings = await asyncio.to_thread(opened.settings_now)
        return await read_status(opened.home, settings, opened.store, opened.vault, now.library, self.budgets)

    @property
    def listening(self) -> list[str]:
        """The names of the channels that are open."""
        return self._house.configured.names if self._house.configured else []

    @property
    def unused(self) -> tuple[str, ...]:
        """With the channels that are set and do not listen."""
        unopened = self._house.configured.unopened.values() if self._house.configured else ()
        return (*(each.sentence for each in unopened), *super().unused)

    @property
    def missing(self) -> str:
        """Why nobody can answer yet, if that is so."""
        return self._live.now.missing

    @property
    def settings(self) -> Mapping[str, Any]:
        """What is set, without secrets."""
        return without_secrets(self._live.now.settings)

    def workspace(self, person: str) -> WorkspaceFiles:
        """Somebody's own, and nobody else's."""
        folder = self._live.now.kits.workspace(person)
        if person != OWNER:  # as when they first speak
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        from ..tools.browse import WorkspaceBrowser
        from ..tools.workspace import Workspace

        return WorkspaceBrowser(
            Workspace(folder, hidden=self._house.builder.own),
            self.files,
            person,
            quota_of=self._storage.bounded.quota_of,
        )

    def export(self, person: Person) -> AsyncGenerator[bytes]:
        """All that is theirs, as a zip file that is made while it is read."""
        from ..files.packing import zipped
        from ..runtime.person_export import PersonExport

        house, now = self._house, self.clock.now()
        export = PersonExport(house.store, house.sessions, house.folders, house.storage.files)
        return zipped(export.files(person, now), now)

    def answering(
        self, inbound: Inbound, again: Again | None = None, admit: Admit | None = None
    ) -> AbstractAsyncContextManager[Answer]:
        """As `answer`, for someone who may have gone when it comes: it counts as given when the block ends well.

        `again` is asked when this letter has come before: for another letter in its place, or to go on with that one.
        `admit` is asked before it is posted, but not where it begins a turn of a session that is there and its owner's.
        """
        return self._answering.answering(inbound, again, admit)

    async def post(self, inbound: Inbound) -> Receipt:
        """Commit a letter and wake nobody yet: whoever wants to say first that it is there calls `wake` afterwards."""
        return await self._inbox.take(inbound, express=False)

    async def begin(self, inbound: Inbound) -> tuple[Receipt, asyncio.Future[Finished]] | None:
        """Commit a letter whose thread rests, in a session that is there and its owner's: its turn begins with the same
        commit, and the future is done when that is over. None, and nothing is committed, where it has to be posted.
        Whoever calls this sees to it that nothing of the turn is told before the letter is known to be taken."""
        begun = self._inbox.begin(inbound, asked=False)
        receipt = await begun.receipt() if begun else None
        return (receipt, begun.finished) if begun and receipt else None

    def wake(self, receipt: Receipt, inbound: Inbound) -> None:
        self._inbox.wake(receipt, inbound)

    def models(self) -> list[str]:
        """The names of the presets, which a conversation may be answered by beside any provider/model."""
        return self._live.names()

    async def find_model(self, name: str) -> str:
        """What a model is found by again, "" being the one of the settings. Raises ModelMissing."""
        if not name:
            return ""
        return (await self._live.look(name)).key

    async def fetch(self, url: str, limit: int) -> bytes:
        """What lies at an address that someone else has named. Raises MailRefused with a sentence."""
        try:
            async with self._live.now.toolset.web.request("GET", url, seconds=FETCH_SECONDS) as answer:
                data = await answer.read(limit + 1) if answer.status == 200 else b""
        except (EverloopError, ValueError) as error:
            raise MailRefused(f"{url[:200]} cannot be fetched: {error}") from error
        if answer.status != 200 or len(data) > limit:
            why = f"has more than {limit:,} bytes" if data else f"was answered with {answer.status}"
            raise MailRefused(f"{url[:200]} {why}")
        return data

    @property
    def largest_file(self) -> int:
        return self._attachments.largest

    async def file_quota(self, owner: str) -> int:
        """0: no limit."""
        return await self._storage.bounded.quota_of(owner)

    async def remove_file(self, owner: str, ref: str) -> bool:
        """Whether the owner had it."""
        return await self._storage.shelves.remove_own(owner, ref)

    @property
    def link_seconds(self) -> int:
        """For how long a signed link to a file holds."""
        return self._live.now.settings.files.link_seconds

    async def link_key(self) -> bytes | None:
        """By which links to files are signed. None where the vault is locked."""
        if self._link_key is None:
            from .outgoing_links import link_key

            self._link_key = await link_key(self._opened.links)
        return self._link_key

    async def put_down(self) -> None:
        """End what runs, now: it goes on at the next start, and whoever waits for it is told."""
        await self._lanes.stop(0)
