"""Rate limits, as Discord tells them: by route and what it is about, in buckets that it names, and for all together.

https://discord.com/developers/docs/topics/rate-limits
"""

from collections.abc import Callable, Mapping

REMEMBERED = 2_000  # buckets that are empty
LONGEST = 86_400.0  # seconds that are believed


def seconds_of(text: object) -> float:
    """What a header or a body says, 0 if that is no time."""
    try:
        seconds = float(str(text))
    except ValueError:
        return 0.0
    return min(seconds, LONGEST) if seconds > 0 else 0.0


class RateLimits:
    """Says how long a call has to wait. `clock` is any that only goes forward."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._all = 0.0  # until when nothing may be called
        self._bucket_of: dict[str, str] = {}  # by route
        self._until: dict[tuple[str, str], float] = {}  # by bucket and what it is about

    def wait(self, route: str, about: str) -> float:
        """Seconds until this route may be called about this channel, server or nothing."""
        until = max(self._all, self._until.get(self._key(route, about), 0.0))
        return max(0.0, until - self._clock())

    def heed(self, route: str, about: str, headers: Mapping[str, str]) -> None:
        """What an answer says of the calls that are left. The names of headers are in lower case."""
        if bucket := headers.get("x-ratelimit-bucket"):
            self._bucket_of[route] = bucket
        if headers.get("x-ratelimit-remaining") == "0":
            self._close(self._key(route, about), seconds_of(headers.get("x-ratelimit-reset-after")))

    def refuse(self, route: str, about: str, seconds: float, *, everywhere: bool) -> None:
        """A call was refused for so long."""
        if everywhere:
            self._all = max(self._all, self._clock() + seconds)
        else:
            self._close(self._key(route, about), seconds)

    def _key(self, route: str, about: str) -> tuple[str, str]:
        return self._bucket_of.get(route, route), about

    def _close(self, key: tuple[str, str], seconds: float) -> None:
        now = self._clock()
        if len(self._until) >= REMEMBERED:
            self._until = {each: until for each, until in self._until.items() if until > now}
        self._until[key] = max(self._until.get(key, 0.0), now + seconds)
