"""Routes of the API: sub-agents, and turns in the background."""

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
        "GET",
        "/api/background",
        "What is in the background of your chats, and what sub-agents work at for you",
        handle=subagents.list_background,
        answers=subagent_shapes.BackgroundList,
        query=subagent_shapes.BackgroundListing,
    ),
    ApiRoute(
        "POST",
        "/api/background/{id}/stop",
        "End a task, and all that works for it",
        handle=subagents.stop_task,
        answers=subagent_shapes.SubagentsStopped,
        at=subagent_shapes.OfSubagent,
        body=shapes.Nothing,
    ),
    ApiRoute(
        "POST",
        "/api/background/{id}/front",
        "Let its chat go on with a turn from the background",
        handle=subagents.bring_to_front,
        answers=shapes.Moved,
        at=subagent_shapes.OfSubagent,
        body=shapes.Nothing,
        tells=True,
    ),
    ApiRoute(
        "POST",
        "/api/subagents/{id}/stop",
        "End the work at a task, and all that works for it",
        handle=subagents.stop_subagent,
        answers=subagent_shapes.SubagentsStopped,
        at=subagent_shapes.OfSubagent,
        body=shapes.Nothing,
    ),
)
