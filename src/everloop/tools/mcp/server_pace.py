"""How fast a server is followed in what it may do without end and without a message: comments among its events, lines
on stderr, streams that end at once. Each costs us, who have others to serve; what is not read yet waits at the server.
"""

import asyncio


class ServerPace:
    """So much at once, and then so much in a second."""

    def __init__(self, most: float = 50_000, a_second: float = 2000) -> None:
        """Unless said otherwise, in lines."""
        self._now = asyncio.get_running_loop().time
        self._most = self._left = float(most)
        self._a_second = a_second
        self._at = self._now()

    async def keep(self, count: int) -> None:
        """Wait where with these it is too much by now."""
        now = self._now()
        self._left = min(self._most, self._left + (now - self._at) * self._a_second) - count
        self._at = now
        if self._left < 0:
            await asyncio.sleep(-self._left / self._a_second)


def lines_in(piece: bytes) -> int:
    return piece.count(b"\n") + piece.count(b"\r")
