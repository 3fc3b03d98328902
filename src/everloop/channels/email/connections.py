"""The two servers of a mailbox: dialled, with TLS, greeted and logged in to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from ...errors import ChannelDown, HostUnreachable
from ...ports import ByteStream, Dials
from .imap import Imap, ImapError
from .manifest import MailAccount
from .smtp import Smtp

DIALING = 20.0  # seconds
FAREWELL = 2.0


class MailServers:
    def __init__(self, chosen: MailAccount, http: Dials) -> None:
        self._chosen = chosen
        self._http = http

    @asynccontextmanager
    async def imap(self) -> AsyncIterator[Imap]:
        """Raises ChannelDown and ChannelRefused."""
        chosen = self._chosen
        async with self._dialled(chosen.imap_host, chosen.imap_port, tls=chosen.imap_security == "tls") as stream:
            imap = Imap(stream, chosen.imap_host)
            try:
                await imap.greet()
                if chosen.imap_security == "starttls":
                    await imap.start_tls()
                await imap.login(chosen.username, chosen.password)
            except ImapError as error:
                raise ChannelDown(f"{chosen.imap_host} says {error}") from error
            yield imap
            with suppress(ChannelDown, ImapError, TimeoutError):
                async with asyncio.timeout(FAREWELL):
                    await imap.logout()

    @asynccontextmanager
    async def smtp(self) -> AsyncIterator[Smtp]:
        """Raises ChannelDown and ChannelRefused."""
        chosen, name = self._chosen, self._chosen.address.rpartition("@")[2]
        async with self._dialled(chosen.smtp_host, chosen.smtp_port, tls=chosen.smtp_security == "tls") as stream:
            smtp = Smtp(stream, chosen.smtp_host)
            await smtp.greet(name)
            if chosen.smtp_security == "starttls":
                await smtp.start_tls(name)
            await smtp.login(chosen.username, chosen.password)
            yield smtp
            with suppress(ChannelDown):
                await smtp.quit()

    @asynccontextmanager
    async def _dialled(self, host: str, port: int, *, tls: bool) -> AsyncIterator[ByteStream]:
        opening = self._http.dial(host, port, tls=tls, seconds=DIALING)
        try:
            stream = await opening.__aenter__()
        except HostUnreachable as error:
            raise ChannelDown(str(error)) from error
        try:
            yield stream
        finally:
            await opening.__aexit__(None, None, None)
