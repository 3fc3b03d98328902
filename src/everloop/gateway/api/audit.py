"""The audit: who did what, by which authority, and whether it is still as it was written."""

from contextlib import suppress

from ...errors import MailRefused
from ...ports.audit import DEEDS
from ...readings.audited import described
from .audit_shapes import AuditChecked, AuditLineShown, AuditPage
from .route import ApiAnswer, ApiCall


async def list_lines(call: ApiCall) -> ApiAnswer:
    q, who = call.query, await _id_of(call)
    found = await call.agent.store.audit(since=q.since, who=who, what=q.what, before=q.before, limit=q.limit + 1)
    lines = [
        AuditLineShown(
            id=row.id,
            at=row.at,
            actor=row.actor,
            authority=row.authority,
            deed=row.deed,
            subject=row.subject,
            detail=described(row.detail),
            hash=row.hash,
            meaning=DEEDS.get(row.deed, ""),
        )
        for row in found[: q.limit]
    ]
    ids = {id for line in lines for id in (line.actor, line.subject)}
    names = {each.id: each.name for each in await call.agent.members.everybody() if each.id in ids}
    return AuditPage(lines, len(found) > q.limit, list(DEEDS), names)


async def _id_of(call: ApiCall) -> str:
    """Of whoever is meant, by id, account or name; as it was written where that is nobody."""
    who: str = call.query.who
    with suppress(MailRefused):  # someone who is not there any more, or the number of a thing
        return (await call.agent.members.find(who)).id if who else ""
    return who


async def check(call: ApiCall) -> ApiAnswer:
    checked = await call.agent.store.check_audit()
    return AuditChecked(checked.lines, checked.head, checked.broken)
