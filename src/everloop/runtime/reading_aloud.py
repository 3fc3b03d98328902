"""Answers, spoken by a provider for who listens, at their expense, part by part: who stops listening does not pay for
the rest, and what was spoken to somebody a while ago is not paid for again."""

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from ..core.people import OWNER, Role
from ..core.prompt import Usage
from ..errors import MailRefused, ModelMissing, ProviderError
from ..ports import People
from ..ports.rows import Spent
from ..ports.voice import PartAloud, Sound, SpeechMaker
from ..readings.speakable import cut_to_parts, speakable
from .budgets import AllowedCall, BudgetControl, Denied, Payer, charge_for, charge_for_failure
from .voice import VoiceStore

_log = logging.getLogger("everloop.voice")

SECONDS = 90.0  # for one part
FIRST = 300  # characters of the first part, so that it is soon to be heard
LONGEST = 1500  # of any other; hosts take about 4,000
KEPT = 20_000_000  # bytes of what was spoken last
PURPOSE = "speech"
Heard = tuple[str, str, str, str]  # by whom, from which model, in which voice, what


class AnswersAloud:
    """`maker` is whoever speaks at the moment; None: nobody. It raises ModelMissing."""

    def __init__(
        self,
        maker: Callable[[], Awaitable[SpeechMaker | None]],
        budgets: BudgetControl,
        people: People,
        store: VoiceStore,
    ) -> None:
        self._maker = maker
        self._budgets = budgets
        self._people = people
        self._store = store
        self._kept: OrderedDict[Heard, Sound] = OrderedDict()
        self._making: WeakValueDictionary[Heard, asyncio.Lock] = WeakValueDictionary()

    async def longest(self) -> int:
        """Characters of an answer that are read at the moment; 0: nobody is there who would."""
        try:
            maker = await self._maker()
        except ModelMissing as error:
            _log.info("nobody reads aloud: %s", error)
            return 0
        return maker.longest if maker else 0

    async def read(self, markdown: str, part: int, *, listener: str, thread: str) -> PartAloud | None:
        """This part of the answer, from 0 on; None: it has fewer. Raises MailRefused."""
        try:
            async with asyncio.timeout(SECONDS):
                return await self._read(markdown, part, listener, thread)
        except (ModelMissing, ProviderError, TimeoutError) as error:
            why = str(error) or f"it took more than {SECONDS:.0f} seconds"
            raise MailRefused(f"the answer could not be read aloud: {why}") from error

    async def _read(self, markdown: str, part: int, listener: str, thread: str) -> PartAloud | None:
        maker = await self._maker()
        if maker is None:
            raise MailRefused("nothing is set to read answers aloud: speech.model")
        parts = await asyncio.to_thread(parts_of, markdown, maker.longest)  # an answer may be very long
        if part >= len(parts):
            return None
        heard = (listener, maker.name, maker.voice, parts[part])
        async with self._making.setdefault(heard, asyncio.Lock()):  # a second window waits, and pays nothing
            if heard not in self._kept:
                role = Role.OWNER if listener == OWNER else await self._people.role(listener)
                self._keep(heard, await self._spoken(maker, parts[part], Payer(listener, role, thread)))
            self._kept.move_to_end(heard)
            return PartAloud(self._kept[heard], len(parts))

    def _keep(self, heard: Heard, sound: Sound) -> None:
        self._kept[heard] = sound
        while len(self._kept) > 1 and sum(len(each.data) for each in self._kept.values()) > KEPT:
            self._kept.popitem(last=False)

    async def _spoken(self, maker: SpeechMaker, text: str, payer: Payer) -> Sound:
        def price(usage: Usage) -> float | None:
            return maker.price(usage, len(text))

        usage = counted(text)
        key = f"{PURPOSE}:{secrets.token_hex(8)}"
        allowed = await self._budgets.reserve(payer, key, maker.name, price, usage)
        if isinstance(allowed, Denied):
            raise MailRefused(allowed.text)
        sound = await self._made(maker, text, allowed, price)
        if allowed:
            await self._budgets.charge(charge_for(allowed, price, usage, None, ""))
        spent = Spent(0, maker.name, usage, price(usage), requester=payer.id)
        await self._store.add_spent(payer.id, payer.thread, spent, PURPOSE)
        return sound

    async def _made(
        self, maker: SpeechMaker, text: str, allowed: AllowedCall | None, price: Callable[[Usage], float | None]
    ) -> Sound:
        try:
            return await maker.speak(text)
        except (ProviderError, asyncio.CancelledError) as error:
            if allowed:
                kind = error.kind if isinstance(error, ProviderError) else "timeout"
                await self._budgets.charge(charge_for_failure(allowed, price, kind, ""))
            raise


def parts_of(markdown: str, most: int) -> list[str]:
    """The first is short. The same of the same answer, so that they can be asked for one by one."""
    text = speakable(markdown)
    if len(text) > most:
        text = f"{cut_to_parts(text, most)[0]}\nThe rest is not read aloud."
    first = cut_to_parts(text, FIRST)[:1]
    return first + cut_to_parts(text[len(first[0]) :], LONGEST) if first else []


def counted(text: str) -> Usage:
    """Tokens, for hosts do not count them: four characters are about one, and their sound about six."""
    return Usage(len(text) // 4 + 1, len(text) * 3 // 2 + 1)
