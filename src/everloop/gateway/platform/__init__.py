"""The platform door, for bots that live elsewhere: one request a message, one answer, whole or as it comes.

A platform's place becomes a session of its own, `platform:<platform>/<server>/<channel>[:<thread>]`, and whoever wrote
the message speaks there as `<platform>:<user>`: someone whom nobody has introduced is a guest, whatever the bot may do.
"""

from aiohttp import web

from ...core.events import Answer
from ..access.permissions import CHAT, Route
from ..http.repeats import Repeats
from ..http.streaming import stream
from ..http.whole_answer import give
from ..ports import TurnAgent
from ..signed_links import signing
from .reply import PlatformStream, body_of, in_our_shape
from .to_inbound import write


def routes(agent: TurnAgent) -> list[Route]:
    repeats, links = Repeats(agent.clock), signing(agent)

    async def tell(answer: Answer) -> web.Response:
        return web.json_response(await body_of(agent.store, answer, links))

    async def message(request: web.Request) -> web.StreamResponse:
        with repeats.attempt(agent.store, request, await write(agent, request)).waits() as attempt:
            return await give(agent, request, attempt, tell)

    async def streamed(request: web.Request) -> web.StreamResponse:
        with repeats.attempt(agent.store, request, await write(agent, request)).waits() as attempt:
            return await stream(agent, request, attempt, PlatformStream(agent.store, links))

    return [
        Route("POST", "/message", in_our_shape(message), CHAT),
        Route("POST", "/message/stream", in_our_shape(streamed), CHAT),
    ]
