"""Whether a host at the other end of a WebSocket still lives: it is asked when it is silent (ping), and found dead when
it stays so, or does not read what it is sent."""

import asyncio
from collections.abc import Callable

from ..ports import SocketTerms

_SLOWEST = 2**16  # bytes in a second of a large message


class Liveness:
    """One timer, which looks when something could be due: to set one for each message would cost more than to read it.

    `find_dead` is told how, as the end of a sentence. Nobody is silent while we do not listen (`hold`).
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        terms: SocketTerms,
        ping: Callable[[], None],
        find_dead: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._silence = terms.silence
        self._slowest_message = terms.max_bytes / _SLOWEST
        self._ping = ping
        self._find_dead = find_dead
        self._heard = self._met = loop.time()  # something; a whole frame
        self._asked = 0.0  # for a sign of life that has not come yet
        self._blocked = 0.0  # since when the host has read nothing
        self._unsent = 0
        self._is_held = False
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport

    def start(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._look()

    def stop(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self._silence = 0.0

    def hear(self) -> None:
        self._heard = self._loop.time()

    def meet(self) -> None:
        self._met, self._asked = self._heard, 0.0

    def hold(self, is_held: bool) -> None:
        self._is_held = is_held
        self._heard = self._met = self._loop.time()
        self._asked = 0.0

    def block(self) -> None:
        self._blocked, self._unsent = self._loop.time(), self._transport.get_write_buffer_size()
        self._look()

    def unblock(self) -> None:
        self._blocked = 0.0

    def _look(self) -> None:
        if not self._silence:
            return
        if self._timer:
            self._timer.cancel()
        now = self._loop.time()
        self._note_progress(now)
        if self._blocked and now >= self._blocked + self._silence:
            self._find_dead(f"has read nothing from its WebSocket for {self._silence:g} s.")
        elif not self._is_held and self._asked and now >= self._last_moment():
            self._find_dead(f"has fallen silent: no sign of life from its WebSocket within {self._silence:g} s.")
        else:
            if not (self._asked or self._is_held or self._blocked) and now >= self._met + self._silence / 2:
                self._asked = now
                self._ping()
            self._timer = self._loop.call_at(self._next_look(now), self._look)

    def _note_progress(self, now: float) -> None:
        """A host that reads slowly reads."""
        if self._blocked and (unsent := self._transport.get_write_buffer_size()) < self._unsent:
            self._blocked, self._unsent = now, unsent

    def _last_moment(self) -> float:
        """Until which a sign of life may come. Bytes are one as long as they can be a large message, in the middle of
        which no pong can stand."""
        half = self._silence / 2
        return min(max(self._heard, self._asked) + half, self._asked + half + self._slowest_message)

    def _next_look(self, now: float) -> float:
        half = self._silence / 2
        if self._is_held or (self._blocked and not self._asked):
            due = now + half
        else:
            due = self._last_moment() if self._asked else self._met + half
        return min(due, self._blocked + self._silence) if self._blocked else due
