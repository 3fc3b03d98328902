"""Routes of the API: the audit."""

from ....core.people import Role
from .. import audit, audit_shapes
from ..route import ApiRoute

ROUTES = (
    ApiRoute(
        "GET",
        "/api/audit",
        "Who did what, when, by which authority",
        handle=audit.list_lines,
        answers=audit_shapes.AuditPage,
        query=audit_shapes.AuditQuery,
        least=Role.OWNER,
        needs="admin",
    ),
    ApiRoute(
        "GET",
        "/api/audit/check",
        "Whether every line is as it was written",
        handle=audit.check,
        answers=audit_shapes.AuditChecked,
        least=Role.OWNER,
        needs="admin",
    ),
)
