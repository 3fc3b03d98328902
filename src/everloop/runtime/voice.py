"""Voice messages, read for the model by a provider before their letter is committed, at the expense of who speaks.

A crash in between has the platform hand in the message again, and it is read again: that may be paid twice, and no
letter is lost. What is not read is told, and the file is attached in any case.
"""

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Protocol

from ..core.people import OWNER, Role
from ..core.prompt import Usage
from ..errors import EverloopError, MailRefused, ModelMissing, ProviderError
from ..ports import People
from ..ports.rows import Spent, ThreadRow
from ..ports.voice import Speech, Transcriber
from .budgets import AllowedCall, BudgetControl, Denied, Payer, charge_for, charge_for_failure

_log = logging.getLogger("everloop.voice")

SECONDS = 90.0  # for one message
LARGEST = 25_000_000  # bytes; hosts take no more
TOKENS = 10  # a second of speech, where the host does not count
BYTES = 4000  # a second of speech, where nothing tells how long it is
LONGEST = 50_000  # characters
PURPOSE = "voice"
REMEMBERED = 200  # that were read last


class NotRead(EverloopError):
    """A voice message was not transcribed; the sentence says why."""


class VoiceStore(Protocol):
    """Raises StoreError."""

    async def session(self, key: str) -> ThreadRow | None: ...

    async def add_spent(self, owner: str, thread: str, spent: Spent, purpose: str) -> None: ...


class VoiceMessages:
    """`transcriber` is whoever transcribes at the moment; None: nobody. It raises ModelMissing."""

    def __init__(
        self,
        transcriber: Callable[[], Awaitable[Transcriber | None]],
        budgets: BudgetControl,
        people: People,
        store: VoiceStore,
    ) -> None:
        self._transcriber = transcriber
        self._budgets = budgets
        self._people = people
        self._store = store
        self._known: OrderedDict[tuple[str, bytes], str] = OrderedDict()  # by author and what was spoken

    async def read(self, data: bytes, name: str, *, author: str, session: str, key: str, in_group: bool) -> str:
        """What was said, marked as such, or why nobody knows. `key` names this message and no other."""
        try:
            async with asyncio.timeout(SECONDS):
                payer = await self._payer(author, session, in_group=in_group)
                text = await self._read_once(data, name, payer, f"{PURPOSE}:{key}")
        except (NotRead, ModelMissing, ProviderError, TimeoutError) as error:
            why = str(error) or f"it took more than {SECONDS:.0f} seconds"
            _log.info("a voice message in %s was not transcribed: %s", session, why)
            return f"[a voice message came that could not be read ({why}); it is attached]"
        return f"[voice message, transcribed: {text}]"

    async def longest(self) -> float:
        """Seconds of speech that are transcribed at the moment; 0: nobody is there who would."""
        try:
            transcriber = await self._transcriber()
        except ModelMissing as error:
            _log.info("nobody transcribes: %s", error)
            return 0.0
        return transcriber.longest if transcriber else 0.0

    async def hear(self, data: bytes, author: str) -> str:
        """What somebody has just spoken, as text for them to look at; nothing of it is kept. Raises MailRefused."""
        try:
            async with asyncio.timeout(SECONDS):
                payer = await self._payer(author, "", in_group=False)
                return await self._read_once(data, "", payer, f"{PURPOSE}:{secrets.token_hex(8)}")
        except (NotRead, ModelMissing, ProviderError, TimeoutError) as error:
            why = str(error) or f"it took more than {SECONDS:.0f} seconds"
            raise MailRefused(f"what was spoken could not be transcribed: {why}") from error

    async def _payer(self, author: str, session: str, *, in_group: bool) -> Payer:
        row = await self._store.session(session) if session else None
        role = Role.OWNER if author == OWNER else await self._people.role(author)
        return Payer(author, role, row.id if row else "", in_group=in_group)

    async def _read_once(self, data: bytes, name: str, payer: Payer, key: str) -> str:
        """What the same person has said before in the same sounds is not paid again: a caption that is changed brings
        its voice message along, as often as somebody likes."""
        spoken = payer.id, sha256(data).digest()
        if spoken not in self._known:
            self._known[spoken] = await self._read(data, name, payer, key)
        self._known.move_to_end(spoken)
        text = self._known[spoken]
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return text

    async def _read(self, data: bytes, name: str, payer: Payer, key: str) -> str:
        transcriber = await self._transcriber()
        if transcriber is None:
            raise NotRead("nothing is set to transcribe it: voice.model")
        seconds = opus_seconds(data) or len(data) / BYTES
        if len(data) > LARGEST or seconds > transcriber.longest:
            raise NotRead(f"it is longer than {transcriber.longest:,.0f} seconds or {LARGEST:,} bytes")
        price = _price_of(transcriber, seconds)
        most = Usage(_tokens(seconds), _tokens(seconds))
        allowed = await self._budgets.reserve(payer, key, transcriber.name, price, most)
        if isinstance(allowed, Denied):
            raise NotRead(allowed.text)
        speech = await self._transcribed(transcriber, data, name, allowed, seconds)
        usage = speech.usage if speech.usage.input or speech.usage.output else Usage(_tokens(seconds))
        cost = transcriber.price(speech.usage, speech.seconds or seconds)
        if allowed:
            await self._budgets.charge(charge_for(allowed, price, usage, cost, speech.text))
        spent = Spent(0, transcriber.name, usage, cost, requester=payer.id)
        await self._store.add_spent(payer.id, payer.thread, spent, PURPOSE)
        if not speech.text:
            raise NotRead("nothing is said in it")
        return speech.text[:LONGEST]

    async def _transcribed(
        self, transcriber: Transcriber, data: bytes, name: str, allowed: AllowedCall | None, seconds: float
    ) -> Speech:
        try:
            return await transcriber.transcribe(data, name)
        except (ProviderError, asyncio.CancelledError) as error:
            if allowed:
                kind = error.kind if isinstance(error, ProviderError) else "timeout"
                charge = charge_for_failure(allowed, _price_of(transcriber, seconds), kind, "")
                await self._budgets.charge(charge)
            raise


def _price_of(transcriber: Transcriber, seconds: float) -> Callable[[Usage], float | None]:
    return lambda usage: transcriber.price(usage, seconds)


def _tokens(seconds: float) -> int:
    return int(seconds * TOKENS) + 1


def opus_seconds(data: bytes) -> float:
    """How long an Ogg file with Opus is, which voice messages mostly are: its last page tells (RFC 7845). 0: nobody
    knows."""
    last = data.rfind(b"OggS")
    if not data.startswith(b"OggS") or b"OpusHead" not in data[:100] or len(data) < last + 14:
        return 0.0
    samples = int.from_bytes(data[last + 6 : last + 14], "little", signed=True)
    return max(0, samples) / 48_000
