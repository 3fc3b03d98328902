"""What one person may see of the store: their sessions, the threads of these, what they sent and what came of it.

Whatever belongs to someone else is refused, or is as if it were not there.
"""

from collections.abc import Sequence

from ...core.log import MANY
from ...core.message import Part
from ...errors import NoFile
from ...ports.rows import ThreadRow
from ..access.principal import Principal
from ..http.errors import Refused
from ..ports import GatewayAgent
from .frames import File
from .hub import Hub

PAGE = 200  # entries that are read at once


class UserView:
    def __init__(self, agent: GatewayAgent, hub: Hub, principal: Principal) -> None:
        self._agent = agent
        self._hub = hub
        self._principal = principal

    def prefix(self, session: str) -> str:
        """What the event of a letter begins with: an id is its client's own, in one session. A name holds no line
        break, so that no two of them make the same event."""
        return f"ws:{self._principal.user}\n{session}\n"

    async def row(self, session: str) -> ThreadRow | None:
        """Where the session is; None if there is none. Raises Refused when it is another's."""
        row = await self._agent.store.session(session)
        if row is not None and not self._principal.owns(row.owner):
            raise Refused(403, "forbidden", "this session is not yours")
        if row is not None:
            self._hub.note(row.id, session, row.owner)
        return row

    async def thread(self, session: str, thread: str) -> ThreadRow:
        """A thread of this session. One of another, or of someone else, is as if it were not there."""
        found = await self._agent.store.named(thread)
        row = (await self._agent.store.open(thread, MANY)).row if thread in found else None
        if row is None or row.session != session or not self._principal.owns(row.owner):
            raise Refused(404, "no_thread", "this session has no such thread")
        return row

    async def own(self, mails: Sequence[int], session: str) -> dict[int, str]:
        """Those of the letters that were sent through a WebSocket by this user, and what their client calls them."""
        prefix = self.prefix(session)
        origins = await self._agent.store.origins(mails)
        return {mail: event.removeprefix(prefix) for mail, event in origins.items() if event.startswith(prefix)}

    async def part(self, file: File) -> Part:
        """The part of a message that stands for a file: one whose bytes came with it, or one of their own."""
        user = self._principal.user
        if file.data:
            return await self._agent.enclose(file.name or "file", file.data, user)
        try:
            return await self._agent.enclose_kept(file.name, file.file, user)
        except NoFile as error:
            raise Refused(404, "no_file", str(error)) from None
