"""How mails travel: in from a folder of a mailbox (IMAP), out through a mail server (SMTP)."""

import asyncio
import logging
import time
from collections.abc import Callable

from ...errors import ChannelDown, ChannelRefused, Undeliverable
from ...ports import Deliver, Dials
from ...ports.channel import FileRef, OutgoingPart, Probed
from .addresses import UNVERIFIED, BadAddress, account_of
from .authentication import read_results
from .bodies import EnclosedFile
from .codec import Ours, ParsedMail, UnreadableMail, read_mail
from .connections import MailServers
from .imap import Imap, ImapError
from .listening import MailListener
from .loops import LoopGuard
from .manifest import MANIFEST, MailAccount
from .writing import write_mail

_log = logging.getLogger("everloop.channels.email")

OFFERING = 40.0  # seconds for all that comes before the end of a mail; the outbox has 60 for a send
LARGEST_SENT = 25_000_000  # bytes of a mail, where the server does not say
LOOKED_AT = 10  # of the last mails, for the name of the server that vouches for senders


class Email:
    """The Channel."""

    manifest = MANIFEST

    def __init__(self, chosen: MailAccount, http: Dials, clock: Callable[[], float] = time.time) -> None:
        self._chosen = chosen
        self._servers = MailServers(chosen, http)
        self._ours = Ours(account_of(chosen.address), chosen.servers, trusts_anyone=chosen.senders == "any")
        self._clock = clock
        self._guard = LoopGuard(clock)
        self._held: dict[FileRef, EnclosedFile] = {}

    async def run(self, deliver: Deliver, resume: str) -> None:
        if self._ours.trusts_anyone:
            _log.warning(
                "email: senders = any: whoever writes somebody's address into a mail is taken for them; set "
                "authserv_id and senders = verified if your mail server says who wrote a mail"
            )
        listening = MailListener(self._chosen, self._ours, self._hold, self._guard, self._clock)
        async with self._servers.imap() as imap:
            await listening.run(imap, deliver, resume)

    def _hold(self, mail: ParsedMail | None) -> None:
        self._held = mail.files if mail else {}

    async def send(self, part: OutgoingPart) -> str:
        try:
            async with asyncio.timeout(OFFERING) as limit, self._servers.smtp() as smtp:
                largest = min(smtp.largest or LARGEST_SENT, LARGEST_SENT)
                mail = write_mail(part, self._chosen.address, self._chosen.name, self._clock(), largest)
                await smtp.offer(mail)
                limit.reschedule(None)  # from here on it may arrive, and how long that takes is `finish`'s
                await smtp.finish()
        except TimeoutError as error:
            raise ChannelDown(f"{self._chosen.smtp_host} took longer than {OFFERING:g} s") from error
        except ChannelRefused as error:  # nothing is lost while the owner changes the password
            raise ChannelDown(str(error)) from error
        return mail.id

    async def fetch(self, ref: FileRef, limit: int) -> tuple[str, bytes]:
        file = self._held.get(ref) or await self._fetch_again(ref)
        if len(file.data) > limit:
            raise Undeliverable(f"{file.name} has {len(file.data)} bytes, more than {limit}")
        return file.name, file.data

    async def _fetch_again(self, ref: FileRef) -> EnclosedFile:
        """Of a mail that was read before."""
        validity, uid, _ = ref.split("/")
        async with self._servers.imap() as imap:
            try:
                selected = await imap.select(self._chosen.folder)
                raw = await imap.fetch(int(uid), self._chosen.largest_mail)
            except ImapError as error:
                raise ChannelDown(f"{self._chosen.imap_host} says {error}") from error
        if str(selected.validity) != validity or raw is None:
            raise Undeliverable("the mail that it came with is gone")
        try:
            return read_mail(raw, f"{validity}/{uid}", self._ours).files[ref]
        except (KeyError, UnreadableMail) as error:
            raise Undeliverable("the mail that it came with is gone") from error

    async def chat_with(self, account: str) -> str:
        try:
            unverified = UNVERIFIED if account.startswith(UNVERIFIED) else ""
            return unverified + account_of(account.removeprefix(UNVERIFIED))
        except BadAddress as error:
            raise Undeliverable(f"{account[:100]} is no e-mail address: {error}") from error

    async def probe(self) -> Probed:
        try:
            async with self._servers.imap() as imap:
                missing = await self._missing_in(imap)
        except ImapError as error:
            raise ChannelDown(f"{self._chosen.imap_host} says {error}") from error
        async with self._servers.smtp():
            pass
        return Probed(account=self._ours.account, missing=tuple(missing), link=f"mailto:{self._ours.account}")

    async def _missing_in(self, imap: Imap) -> list[str]:
        missing, chosen = list[str](), self._chosen
        if "IDLE" not in imap.capabilities:
            missing.append(
                f"The server cannot tell of new mails by itself (IDLE): it is asked every {chosen.poll_seconds} s."
            )
        for folder in filter(None, (chosen.done_folder, chosen.folder)):
            try:
                await imap.select(folder)
            except ImapError as error:
                missing.append(f"There is no folder {folder!r} ({error}); make it, or name another.")
                return missing
        return missing + await self._doubts(imap)

    async def _doubts(self, imap: Imap) -> list[str]:
        """Whether senders can be verified, as far as the last mails tell."""
        if self._ours.trusts_anyone:
            return ["Anyone is believed to be who they write they are (senders = any)."]
        seen = await self._servers_seen(imap)
        if any(each in self._ours.servers for each in seen):
            return []
        told = "The last mails name none: send one from elsewhere, and try again. If there is still none, see senders."
        if seen:
            ours = "set channels.email.authserv_id to the one that is your own server's"
            told = f"The last mails name {', '.join(seen)}: {ours}."
        if self._ours.servers:
            return [f"No mail has a result of {' or '.join(self._ours.servers)} (authserv_id). {told}"]
        return [f"Every sender is a stranger until authserv_id names your mail server. {told}"]

    async def _servers_seen(self, imap: Imap) -> list[str]:
        seen: dict[str, None] = {}
        for uid in (await imap.search("ALL"))[-LOOKED_AT:]:
            for header in _results_in(await imap.fetch_headers(uid) or b"")[:1]:
                if server := read_results(header).server:
                    seen[server] = None
        return [*seen]


def _results_in(headers: bytes) -> list[str]:
    from email.parser import BytesHeaderParser

    return [str(each) for each in BytesHeaderParser().parsebytes(headers).get_all("Authentication-Results", [])]
