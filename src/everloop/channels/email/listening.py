"""Hearing of new mails, and taking each in: read, committed, then marked as read.

`resume` is how far it has come: the folder's UIDVALIDITY, the last mail's UID, when that came, and whether it has to be
marked. After a crash the marking is made up for. When the numbers of a folder are worth nothing any more, mails that
came since then are looked through once more: those that were taken in before are known by their Message-ID.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from msgspec import Struct

from ...errors import ChannelDown, StoreError
from ...ports import Deliver
from .codec import Ours, ParsedMail, UnreadableMail, read_mail
from .imap import Imap, ImapError, MailSize, Selected, day_of
from .loops import LoopGuard
from .manifest import MailAccount

_log = logging.getLogger("everloop.channels.email")

IDLING = 540.0  # seconds; servers hang up after 30 minutes, whoever stands in between earlier
# Of a folder that was numbered anew: seconds by which a mail may have come before the last one that was taken, as its
# server says, and as the mail says itself.
BEFORE_LAST = 60.0
DATED_BEFORE = 86_400.0
AT_ONCE = 100  # mails that are asked for together


class MailProgress(Struct, frozen=True):
    """As `resume` writes it."""

    validity: int
    uid: int
    came: int
    taken: bool = False

    def __str__(self) -> str:
        return f"{self.validity}/{self.uid}/{self.came}/{'taken' if self.taken else 'passed'}"

    @classmethod
    def parse(cls, resume: str) -> "MailProgress | None":
        validity, _, rest = resume.partition("/")
        uid, _, rest = rest.partition("/")
        came, _, state = rest.partition("/")
        if not all(each.isascii() and each.isdigit() for each in (validity, uid, came)):
            return None
        return cls(int(validity), int(uid), int(came), state == "taken")


class MailListener:
    """`hold` is told of a mail whose files may be asked for while it is delivered."""

    def __init__(
        self,
        chosen: MailAccount,
        ours: Ours,
        hold: Callable[[ParsedMail | None], None],
        guard: LoopGuard,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._chosen = chosen
        self._ours = ours
        self._hold = hold
        self._guard = guard
        self._clock = clock
        self._told: set[str] = set()

    async def run(self, imap: Imap, deliver: Deliver, resume: str) -> None:
        """Until the connection ends. Raises ChannelDown and StoreError."""
        try:
            selected = await imap.select(self._chosen.folder)
            progress = await self._begin(imap, selected, deliver, resume)
            while True:
                news = imap.news
                progress = await self._take_new(imap, deliver, progress)
                if imap.news == news:
                    await self._wait(imap)
        except ImapError as error:
            raise ChannelDown(f"{self._chosen.imap_host} says {error}") from error

    async def _wait(self, imap: Imap) -> None:
        if "IDLE" in imap.capabilities:
            await imap.wait_for_news(IDLING)
        else:
            await asyncio.sleep(self._chosen.poll_seconds)
            await imap.noop()

    async def _begin(self, imap: Imap, selected: Selected, deliver: Deliver, resume: str) -> MailProgress:
        before = MailProgress.parse(resume)
        if before and before.validity == selected.validity:
            if before.taken:
                await self._mark(imap, before.uid)  # a crash may have come in between
            return before
        if before:
            found = await self._since(imap, before)
        elif self._chosen.unseen_days:
            day = day_of(self._clock() - self._chosen.unseen_days * 86_400)
            found = await imap.search(f"UNSEEN SINCE {day}")
        else:
            found = []  # nobody wants a mailbox of old mails to be answered
        oldest = before.came - DATED_BEFORE if before else 0.0
        for uid in (uid for uid in found if uid < selected.next):
            for size in await imap.sizes([uid]):
                await self._take(imap, deliver, selected.validity, size, resume="", oldest=oldest)
        progress = MailProgress(selected.validity, selected.next - 1, int(self._clock()))
        try:
            await deliver.skip_to(str(progress))
        except StoreError as error:  # it is written with the first mail
            _log.warning("email: where to go on cannot be written: %s", error)
        return progress

    async def _since(self, imap: Imap, before: MailProgress) -> list[int]:
        _log.warning("email: the folder %s was numbered anew; mails since then are compared", self._chosen.folder)
        found = await imap.search(f"SINCE {day_of(before.came - 86_400)}")
        sizes = [each for at in range(0, len(found), AT_ONCE) for each in await imap.sizes(found[at : at + AT_ONCE])]
        return [each.uid for each in sizes if each.came >= before.came - BEFORE_LAST]

    async def _take_new(self, imap: Imap, deliver: Deliver, progress: MailProgress) -> MailProgress:
        # a range that ends with * always has the last mail in it
        found = [uid for uid in await imap.search(f"UID {progress.uid + 1}:*") if uid > progress.uid]
        for at in range(0, len(found), AT_ONCE):
            for size in await imap.sizes(found[at : at + AT_ONCE]):
                came = max(progress.came, int(size.came))
                after = MailProgress(progress.validity, size.uid, came)
                await self._take(imap, deliver, progress.validity, size, resume=str(after))
                progress = after
        return progress

    async def _take(
        self, imap: Imap, deliver: Deliver, validity: int, size: MailSize, resume: str, oldest: float = 0.0
    ) -> None:
        """One mail. `resume` is where to go on after it; one that says itself that it is older than `oldest` is passed
        by."""
        mail = await self._read(imap, validity, size)
        if mail is None or (oldest and mail.date is not None and mail.date < oldest) or self._passes_by(mail, size.uid):
            if resume:
                await deliver.skip_to(resume)
            return
        self._tell_unverified(mail)
        self._hold(mail)
        try:
            delivered = await deliver(mail.incoming, resume.removesuffix("passed") + "taken" if resume else "")
        finally:
            self._hold(None)
        if delivered.refused:
            _log.info("email: mail %d of %s is not taken: %s", size.uid, mail.incoming.account, delivered.refused)
        await self._mark(imap, size.uid)

    async def _read(self, imap: Imap, validity: int, size: MailSize) -> ParsedMail | None:
        oversized = size.size if size.size > self._chosen.largest_mail else 0
        if oversized:
            _log.warning("email: mail %d has %d bytes, which is too large to be read", size.uid, oversized)
            raw = await imap.fetch_headers(size.uid)
        else:
            raw = await imap.fetch(size.uid, self._chosen.largest_mail)
        if raw is None:
            return None  # somebody has deleted it
        try:
            # in a thread: a large mail takes a while, and a broken one may
            return await asyncio.to_thread(read_mail, raw, f"{validity}/{size.uid}", self._ours, oversized)
        except UnreadableMail as error:
            _log.warning("email: mail %d is passed by: %s", size.uid, error)
            return None

    def _passes_by(self, mail: ParsedMail, uid: int) -> bool:
        incoming = mail.incoming
        if mail.ignored:
            _log.info("email: mail %d of %s is not answered: %s", uid, incoming.account, mail.ignored)
            return True
        if self._guard.stops(incoming.chat, incoming.thread):
            _log.warning(
                "email: mail %d of %s is not answered: so many of them look like two machines that talk",
                uid,
                incoming.account,
            )
            return True
        return False

    def _tell_unverified(self, mail: ParsedMail) -> None:
        account = mail.incoming.account
        if mail.verified or account in self._told or len(self._told) > 1000:
            return
        self._told.add(account)
        said = f"the topmost result is of {mail.servers[0]}" if any(mail.servers) else "it has no result at all"
        _log.warning(
            "email: who sent a mail as %s is not verified by %s (%s), so it is a stranger's; see senders and "
            "authserv_id in docs/channels-email.md",
            account,
            " or ".join(self._ours.servers) or "any server, for authserv_id is not set",
            said,
        )

    async def _mark(self, imap: Imap, uid: int) -> None:
        try:
            await imap.mark_read(uid)
            if self._chosen.done_folder:
                await imap.move(uid, self._chosen.done_folder)
        except ImapError as error:
            _log.warning("email: mail %d cannot be marked or moved: %s", uid, error)
