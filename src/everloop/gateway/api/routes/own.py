"""Routes of the API: who asks, slash commands, permissions, what was used."""

from ....core.people import Role
from .. import rest, shapes, usage
from ..route import ApiRoute

ROUTES = (
    ApiRoute("GET", "/api/me", "Who you are, and which model answers", rest.me, shapes.Me, least=Role.GUEST),
    ApiRoute("GET", "/api/commands", "Slash commands", rest.commands, shapes.CommandList, least=Role.GUEST),
    ApiRoute(
        "GET",
        "/api/approvals",
        "What waits for permission, or for your answer to an MCP server",
        rest.approvals,
        shapes.ApprovalList,
    ),
    ApiRoute(
        "POST",
        "/api/approvals/{id}",
        "Allow it, or the like of it too, or deny it",
        handle=rest.decide,
        answers=shapes.Decided,
        at=shapes.OfApproval,
        body=shapes.Deciding,
        needs="approve",
    ),
    ApiRoute(
        "POST",
        "/api/mcp-questions/{id}",
        "Answer what an MCP server asks you in the middle of a call, or decline",
        handle=rest.answer_mcp,
        answers=shapes.McpToldAnswer,
        at=shapes.OfMcpQuestion,
        body=shapes.AnsweringMcp,
        needs="chat",
    ),
    ApiRoute("GET", "/api/grants", "What is allowed ahead", rest.grants, shapes.GrantList),
    ApiRoute(
        "DELETE",
        "/api/grants/{id}",
        "Take back what was allowed ahead",
        handle=rest.revoke_grant,
        answers=shapes.Revoked,
        at=shapes.OfGrant,
        needs="approve",
        least=Role.ADMIN,
    ),
    ApiRoute(
        "GET",
        "/api/usage",
        "What you used, or for administrators anybody, by day and model, person, channel, job or tool",
        handle=usage.usage,
        answers=shapes.UsageRows,
        query=shapes.UsageQuery,
    ),
)
