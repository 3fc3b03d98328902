"""OpenAI's two dialects, spoken to clients: any program that knows OpenAI knows everloop."""

from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web

from ..access.permissions import CHAT, READ, Route
from ..http.errors import Refused
from ..http.handler import Handler
from ..http.repeats import Repeats
from ..ports import TurnAgent
from .chat import complete
from .models import list_models, show_model
from .reply import in_their_shape
from .responses import respond

Door = Callable[[TurnAgent, web.Request], Awaitable[web.StreamResponse]]


def routes(agent: TurnAgent) -> list[Route]:
    """Every request has been authenticated: `request["principal"]` is who sends it."""
    repeats = Repeats(agent.clock)

    def door(handle: Door) -> Handler:
        return in_their_shape(partial(handle, agent))

    return [
        Route("POST", "/v1/chat/completions", in_their_shape(partial(complete, agent, repeats)), CHAT),
        Route("POST", "/v1/responses", in_their_shape(partial(respond, agent, repeats)), CHAT),
        Route("GET", "/v1/models", door(list_models), READ),
        Route("GET", "/v1/models/{name:.+}", door(show_model), READ),
        Route("GET", "/v1/{rest:.*}", door(_refuse), READ),
        Route("POST", "/v1/{rest:.*}", door(_refuse), CHAT),
    ]


async def _refuse(agent: TurnAgent, request: web.Request) -> web.StreamResponse:
    raise Refused(
        404,
        "not_found",
        f"There is no {request.method} {request.path[:200]} here; see docs/openai.md for what there is.",
    )
