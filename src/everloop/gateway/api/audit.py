"""The audit: who did what, by which authority, and whether it is still as it was written."""

from ...core.audit import DEEDS
from ...readings.audited import described
from .audit_shapes import AuditChecked, AuditLineShown, AuditPage
from .route import ApiAnswer, ApiCall


async def list_lines(call: ApiCall) -> ApiAnswer:
    q = call.query
    found = await call.agent.store.audit(since=q.since, who=q.who, what=q.what, before=q.before, limit=q.limit + 1)
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
        )
        for row in found[: q.limit]
    ]
    return AuditPage(lines, len(found) > q.limit, list(DEEDS))


async def check(call: ApiCall) -> ApiAnswer:
    checked = await call.agent.store.check_audit()
    return AuditChecked(checked.lines, checked.head, checked.broken)
