"""Where listening goes on: the gateway's session, and what has to be asked for when it is forgotten there.

Ids of Discord's grow with time over all of it, so one of them, the last that was seen, says for each channel from
where on something may have been missed. Channels are remembered because a bot's private ones cannot be listed.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Struct, structs

PRIVATE, SHARED = 500, 200  # channels that are remembered, the latest ones
SKEW = 60_000 << 22  # a minute, in ids: what came from two channels at once may have come in any order


class ResumePoint(Struct, frozen=True, omit_defaults=True):
    session: str = ""
    seq: int = 0
    url: str = ""
    last: str = ""
    private: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "ResumePoint":
        """What it cannot read is nowhere: then listening begins anew."""
        try:
            return msgspec.json.decode(text, type=cls) if text else cls()
        except msgspec.DecodeError:
            return cls()

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()

    @property
    def missed_since(self) -> str:
        """The id after which something may have been missed; "" when nothing was ever heard."""
        return str(max(0, int(self.last) - SKEW)) if self.last.isdigit() else ""

    def without_session(self) -> "ResumePoint":
        return structs.replace(self, session="", seq=0, url="")


class ResumeProgress:
    """What has been heard since, to be made a ResumePoint when it is committed."""

    def __init__(self, point: ResumePoint) -> None:
        self.point = point  # as it is committed, or may be
        self._last = int(point.last) if point.last.isdigit() else 0
        self._channels: Mapping[bool, dict[str, None]] = {
            True: dict.fromkeys(point.private),
            False: dict.fromkeys(point.shared),
        }

    def see(self, channel: str, message: str, *, direct: bool) -> None:
        known = self._channels[direct]
        known.pop(channel, None)
        known[channel] = None
        if len(known) > (PRIVATE if direct else SHARED):
            del known[next(iter(known))]
        if message.isdigit():
            self._last = max(self._last, int(message))

    def forget(self, channel: str) -> None:
        """We are not there any more."""
        for known in self._channels.values():
            known.pop(channel, None)

    def at(self, session: str, seq: int, url: str) -> ResumePoint:
        private, shared = tuple(self._channels[True]), tuple(self._channels[False])
        return ResumePoint(session, seq, url, str(self._last) if self._last else "", private, shared)
