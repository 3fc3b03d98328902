"""Routes of the API: sub-agents."""

from .. import shapes, subagent_shapes, subagents
from ..route import ApiRoute

ROUTES = (
    ApiRoute(
        "GET",
        "/api/subagents",
        "What sub-agents work at for you, and have worked at",
        handle=subagents.list_subagents,
        answers=subagent_shapes.SubagentList,
        query=subagent_shapes.SubagentListing,
    ),
    ApiRoute(
        "POST",
        "/api/subagents/{id}/stop",
        "End the work at a task, and all that works for it",
        handle=subagents.stop,
        answers=subagent_shapes.SubagentsStopped,
        at=subagent_shapes.OfSubagent,
        body=shapes.Nothing,
    ),
)
