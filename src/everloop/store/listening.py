"""How channels stand, written once for both databases."""

from ..ports.listening import ChannelStanding, ListeningState, Traffic
from .database import Database

LONGEST = 2000  # characters of a reason
_KEEP = (
    "INSERT INTO listening(lease, holder, state, why, since) VALUES($1, $2, $3, $4, {now}) "
    "ON CONFLICT(lease) DO UPDATE SET holder = excluded.holder, state = excluded.state, why = excluded.why, "
    "since = excluded.since"
)
_HELD = (
    "SELECT leases.name, leases.holder, listening.holder, listening.state, listening.why, listening.since "
    "FROM leases LEFT JOIN listening ON listening.lease = leases.name "
    "WHERE leases.until > {elapsed} AND (leases.name LIKE 'channel:%' OR leases.name LIKE 'unopened:%')"
)
_CAME = "SELECT at FROM inbox WHERE channel = $1 ORDER BY id DESC LIMIT 1"
_SENT = "SELECT due FROM outbox WHERE channel = $1 AND state = 'sent' ORDER BY id DESC LIMIT 1"
_LEFT = (
    "SELECT state, count(*) FROM outbox WHERE channel = $1 AND state IN ('pending', 'sending', 'failed') GROUP BY state"
)


class ListeningRows(Database):
    async def keep_listening(self, lease: str, state: ListeningState, why: str = "") -> None:
        await self._change(_KEEP, lease, self.holder, state, why[:LONGEST])

    async def listening(self) -> dict[str, ChannelStanding]:
        rows = await self._ask(_HELD)
        return {
            lease: ChannelStanding(state, why, since) if said_by == holder else ChannelStanding("starting", "", 0.0)
            for lease, holder, said_by, state, why, since in rows
            if self._alive(holder)
        }

    async def traffic(self, channel: str) -> Traffic:
        came, sent = await self._ask(_CAME, channel), await self._ask(_SENT, channel)
        left = {state: int(count) for state, count in await self._ask(_LEFT, channel)}
        waiting = left.get("pending", 0) + left.get("sending", 0)
        return Traffic(came[0][0] if came else 0.0, sent[0][0] if sent else 0.0, waiting, left.get("failed", 0))
