"""OpenAI's two dialects, spoken to clients: any program that knows OpenAI knows everloop."""

from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web

from ..desk import Desk
from ..refusals import Refused
from ..repeats import Repeats
from .chat import complete
from .models import list_models, show_model
from .reply import in_their_shape
from .responses import respond

Door = Callable[[Desk, web.Request], Awaitable[web.StreamResponse]]


def routes(house: Desk) -> list[web.RouteDef]:
    """Every request has been authenticated: `request["principal"]` is who sends it."""
    repeats = Repeats(house.clock)

    def door(handle: Door) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        return in_their_shape(partial(handle, house))

    return [
        web.post("/v1/chat/completions", in_their_shape(partial(complete, house, repeats))),
        web.post("/v1/responses", in_their_shape(partial(respond, house, repeats))),
        web.get("/v1/models", door(list_models)),
        web.get("/v1/models/{name:.+}", door(show_model)),
        web.get("/v1/{rest:.*}", door(_refuse)),
        web.post("/v1/{rest:.*}", door(_refuse)),
    ]


async def _refuse(house: Desk, request: web.Request) -> web.StreamResponse:
    raise Refused(
        f"There is no {request.method} {request.path[:200]} here; see docs/openai.md for what there is.",
        "not_found",
        status=404,
    )
