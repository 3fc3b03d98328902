"""Discord as the conformance suite wants a platform: our server of it, and Anna, who writes to the bot in private."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from everloop.channels.discord.manifest import check_settings
from everloop.channels.discord.wire import DiscordChannel
from everloop.net.trusted import TrustedHttp
from everloop.testing import Trouble
from everloop.testing.conformance import Platform
from everloop.testing.discord_server import DiscordServer

TOKEN = "canary-token-of-a-bot"
PATIENCE = 0.01


class DiscordPlatform(Platform):
    """A heartbeat says up to where all is committed: that is Discord's acknowledgement."""

    resumes = True

    def __init__(self, server: DiscordServer, http: TrustedHttp, *, drafts: bool = False) -> None:
        """Without `drafts` those are refused: what is counted are answers, which have nonces."""
        super().__init__()
        self._drafts = drafts
        self.server, self._http = server, http
        self.anna = server.world.user("anna")
        self.dm = server.world.dm(self.anna)
        self._ids: dict[str, str] = {}
        server.judge = self._judge

    def channel(self) -> DiscordChannel:
        return channel_to(self.server, self._http)

    async def say(self, event: str, text: str) -> None:
        await self._say(event, text)

    async def say_with_file(self, event: str, text: str, name: str, data: bytes) -> bool:
        await self._say(event, text, attachments=[self.server.attach(name, data)])
        return True

    async def _say(self, event: str, text: str, **more: object) -> None:
        gateway = self.server.gateway
        await gateway.until_listening()
        (session,) = [each for each in gateway.sessions.values() if each.wire]
        id = self._ids.setdefault(event, self.server.world.new_id())
        await self.server.say(self.dm, self.anna, text, id=id, **more)
        await gateway.until_acknowledged(session, len(session.events))
        self.acknowledged.append(event)

    def visible(self) -> Sequence[str]:
        return self.server.seen(self.dm)

    def files(self) -> Sequence[tuple[str, bytes]]:
        return [file for call in self.server.calls for file in call.files]

    def reactions(self) -> Sequence[str]:
        return [emoji for _, emoji in self.server.reactions]

    def trouble(self, *troubles: Trouble | None, retry_after: float = 0.0) -> None:
        super().trouble(*troubles, retry_after=retry_after)
        self.server.retry_after = retry_after

    def _judge(self, nonce: str, content: str) -> Trouble | None:
        """Discord has forgotten each nonce, as it has after some minutes: what is sent again is seen."""
        if not nonce:
            return None if self._drafts else Trouble.DOWN
        return self.receive("", content)


def channel_to(server: DiscordServer, http: TrustedHttp, **more: object) -> DiscordChannel:
    values = {"token": TOKEN, "api_url": server.api, "cdn_url": server.cdn, **more}
    return DiscordChannel(check_settings(values), http, PATIENCE)


@asynccontextmanager
async def discord(heartbeat: float = 0.03) -> AsyncIterator[tuple[DiscordServer, TrustedHttp]]:
    http = TrustedHttp()
    try:
        async with asyncio.timeout(60), DiscordServer(TOKEN, heartbeat) as server:
            yield server, http
    finally:
        await http.close()
