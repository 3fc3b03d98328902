"""What was used: by day and by person, model, channel, job or tool. Whoever is no administrator sees their own."""

from collections.abc import Mapping
from datetime import date, timedelta

from msgspec import structs

from ...core.people import Role
from ...ports.rows import SpentRow, UsedRow
from .route import ApiAnswer, ApiCall
from .shapes import UsageRow, UsageRows

DAY = 86_400


async def usage(call: ApiCall) -> ApiAnswer:
    query, store = call.query, call.agent.store
    first = int(call.agent.clock.now() + query.offset) // DAY - (query.days - 1)
    since = first * DAY - query.offset
    who = query.who if call.principal.role >= Role.ADMIN else call.principal.user
    if query.by == "model":
        rows = [_by_model(row) for row in await store.spent(since, offset=query.offset, who=who)]
    else:
        names = await _names(call) if query.by == "person" else {}
        rows = [_row(row, names) for row in await store.used(query.by, since, query.offset, who)]
    return UsageRows(_date(first), query.days, rows)


async def _names(call: ApiCall) -> Mapping[str, str]:
    people = await call.agent.members.everybody()
    return {each.id: each.name for each in people if call.principal.role >= Role.ADMIN or call.principal.owns(each.id)}


def _by_model(row: SpentRow) -> UsageRow:
    own = (row.own_calls, row.own_cost)
    shown = _row(UsedRow(row.day, row.model, row.calls, row.usage, row.cost, row.unpriced, *own))
    return structs.replace(shown, model=row.model, purpose=row.purpose)


def _row(row: UsedRow, names: Mapping[str, str] = {}) -> UsageRow:
    used = row.usage
    return UsageRow(
        day=_date(row.day),
        name=row.name,
        model="",
        calls=row.calls,
        input=used.input,
        output=used.output,
        cache_read=used.cache_read,
        cache_write=used.cache_write,
        reasoning=used.reasoning,
        cost=row.cost,
        unpriced=row.unpriced,
        own_calls=row.own_calls,
        own_cost=row.own_cost,
        label=names.get(row.name, ""),
    )


def _date(day: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()
