"""Web hooks of schedules: whoever knows the secret of one has it run, at /hooks/schedules?id=ID.

They are signed as those of the webhook channel are. A secret is derived from the house's own key, so that none is kept;
what is sent along is not read, for a stranger may have written it.
"""

import base64
import hmac
from collections.abc import Callable
from hashlib import sha256

import msgspec

from ..ports import Bus, Clock, Store, Vault
from ..ports.channel import Hook, HookAnswer, HookRequest
from ..ports.schedules import FiredSchedule, ScheduleRow
from ..runtime.schedule_desk import ScheduleRules
from ..runtime.scheduler import tell_of
from .outgoing_links import link_key

NAME = "schedules"
_UNAUTHORIZED = HookAnswer(401, b'{"error":"unauthorized"}')
_COPY = HookAnswer(503, b'{"error":"this is a restored copy that nobody has adopted"}')
LONGEST = 80  # characters of an id


class ScheduleHooks:
    """`links` is where the house's key lies."""

    def __init__(self, store: Store, bus: Bus, clock: Clock, links: Vault, rules: Callable[[], ScheduleRules]) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._links = links
        self._rules = rules
        self.hooks = (Hook("POST", "", self.answer, largest=100_000),)

    async def answer(self, request: HookRequest) -> HookAnswer:
        """The same webhook twice is one run."""
        from ..channels.webhook.codec import Unsigned, check, secret_of  # loads the channel, which few have

        row = await self._store.schedule(request.query.get("id", "")[:LONGEST])
        secret = await secret_for(self._links, row.schedule.id) if row and row.schedule.hook else ""
        try:
            event = check(request.headers, request.body, [secret_of(secret)] if secret else [], self._clock.now())
        except Unsigned:
            return _UNAUTHORIZED
        if row is None:
            return _UNAUTHORIZED
        if await self._store.restored():  # a copy begins nothing: docs/backup.md
            return _COPY
        fired = await self._store.run_schedule(row.schedule.id, event, self._least(row))
        if fired is not None:
            tell_of(fired, self._bus)
        return _told(fired)

    def _least(self, row: ScheduleRow) -> float:
        rules = self._rules()
        return rules.least_between_turns if row.schedule.does == "turn" else rules.least


def path_of(id: str) -> str:
    return f"/hooks/{NAME}?id={id}"


async def secret_for(links: Vault, id: str) -> str:
    """As the webhook channel's is written; "" where the vault is locked."""
    key = await link_key(links)
    return f"whsec_{base64.b64encode(hmac.digest(key, f'schedule {id}'.encode(), sha256)).decode()}" if key else ""


def _told(fired: FiredSchedule | None) -> HookAnswer:
    if fired is None:
        return HookAnswer(200, b'{"state":"known"}')
    status = 202 if fired.state in ("running", "done") else 409
    return HookAnswer(status, msgspec.json.encode({"state": fired.state, "result": fired.result}))
