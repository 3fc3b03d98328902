"""Where channels hand in what they hear: admission decides who speaks, then the inbox commits it.

Admission is a seam. What stands here admits everyone who gets as far as the channel, as what they are: whom nobody has
introduced is a guest. Allow-lists, mentions and rates are other admissions.
"""

import asyncio
import logging
from collections.abc import Sequence

from ..core.channel import Admitted, Declined, Delivered, Hook, Incoming, Manifest
from ..core.errors import MailRefused
from ..core.keys import author_of, escaped
from ..core.mail import Address, Inbound, Said
from ..core.message import said
from ..core.ports import Admission, Channel, Hooked, Store
from .inbox import Inbox
from .strangers import contained

_log = logging.getLogger("everloop.channels")

FIRST, LONGEST = 0.5, 60.0  # seconds before a channel that broke off is begun again
LONGEST_EVENT = 500  # characters; what is longer is no platform's id


class AdmitAll:
    """A conversation of two belongs to the person; that of a group to the chat, whoever speaks in it."""

    async def admit(self, manifest: Manifest, incoming: Incoming) -> Admitted | Declined:
        author = author_of(manifest.name, incoming.account)
        return Admitted(author, author if incoming.direct else f"chat:{manifest.name}/{escaped(incoming.chat)}")


class Reception:
    """Takes what comes in through one channel."""

    def __init__(self, channel: Channel, inbox: Inbox, store: Store, admission: Admission) -> None:
        self._channel = channel
        self._manifest = channel.manifest
        self._inbox = inbox
        self._store = store
        self._admission = admission

    @property
    def name(self) -> str:
        return self._manifest.name

    def hooks(self) -> Sequence[Hook]:
        """What its platform calls, if it does."""
        return self._channel.hooks(self.deliver) if isinstance(self._channel, Hooked) else ()

    async def deliver(self, incoming: Incoming, resume: str = "") -> Delivered:
        """The `Deliver` of this channel. Raises StoreError."""
        if sentence := _wrong_in(incoming):
            return Delivered(refused=sentence)
        decided = await self._admission.admit(self._manifest, incoming)
        if isinstance(decided, Declined):
            return Delivered(refused=decided.why)
        address = Address(self._manifest.name, escaped(incoming.chat), escaped(incoming.thread))
        letter = Said(said(incoming.text), decided.author, str(address), reply_to=incoming.reply_to)
        inbound = Inbound(address, incoming.event, letter, decided.owner, resume)
        try:
            receipt = await self._inbox.take(inbound)
        except MailRefused as error:
            return Delivered(refused=str(error))
        self._inbox.wake(receipt, inbound)
        return Delivered(receipt.fresh)

    async def run(self) -> None:
        """Listen as long as there is something to listen to; what breaks off is begun again, after a while."""
        wait = FIRST
        while True:
            began = asyncio.get_running_loop().time()
            try:
                with contained():
                    await self._channel.run(self.deliver, await self._store.resume(self._manifest.name))
                return
            except Exception:  # the border to a channel's own code
                _log.warning("the channel %s broke off", self._manifest.name, exc_info=True)
            lasted = asyncio.get_running_loop().time() - began
            wait = FIRST if lasted > LONGEST else min(LONGEST, wait * 2)
            await asyncio.sleep(wait)


def _wrong_in(incoming: Incoming) -> str:
    if not incoming.event or len(incoming.event) > LONGEST_EVENT:
        return f"a message has an id of 1 to {LONGEST_EVENT} characters"
    if not incoming.chat or not incoming.account:
        return "a message says in which chat it was written, and by whom"
    try:
        "".join((incoming.event, incoming.chat, incoming.account, incoming.thread, incoming.reply_to)).encode()
    except UnicodeEncodeError:
        return "the message is not valid UTF-8 text"
    return ""
