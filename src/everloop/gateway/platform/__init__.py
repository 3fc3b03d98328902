"""The platform door, for bots that live elsewhere: one request a message, one answer, whole or as it comes.

A platform's place becomes a session of its own, `platform:<platform>/<server>/<channel>[:<thread>]`, and whoever wrote
the message speaks there as `<platform>:<user>`: someone whom nobody has introduced is a guest, whatever the bot may do.
What the agent says by itself, and answers that came when nobody waited for them any more, the bot fetches (outbox.py).
"""

from collections.abc import Awaitable

from aiohttp import web

from ...ports.events import Answer
from ..access.permissions import BOT, Route
from ..http.errors import Refused
from ..http.repeats import Attempt, Repeats
from ..http.streaming import stream
from ..http.whole_answer import give
from ..ports import TurnAgent
from ..signed_links import signing
from .outbox import outbox_routes
from .reply import ASKED, PlatformStream, body_of, in_our_shape, is_asked
from .to_inbound import write


def routes(agent: TurnAgent) -> list[Route]:
    repeats, links = Repeats(agent.clock), signing(agent)

    async def tell(answer: Answer) -> web.Response:
        return web.json_response(await body_of(agent.store, answer, links))

    async def message(request: web.Request) -> web.StreamResponse:
        with repeats.attempt(agent.store, request, await write(agent, request)) as attempt:
            return await _unless_asked(attempt, give(agent, request, attempt, tell))

    async def streamed(request: web.Request) -> web.StreamResponse:
        with repeats.attempt(agent.store, request, await write(agent, request)) as attempt:
            teller = PlatformStream(agent.store, links, attempt)
            return await _unless_asked(attempt, stream(agent, request, attempt, teller))

    return [
        Route("POST", "/message", in_our_shape(message), BOT),
        Route("POST", "/message/stream", in_our_shape(streamed), BOT),
        *outbox_routes(agent, links),
    ]


async def _unless_asked(attempt: Attempt, answering: Awaitable[web.StreamResponse]) -> web.StreamResponse:
    """The answer, or that somebody is asked first: the question and then the answer are fetched from the outbox."""
    try:
        return await answering
    except Refused as refused:
        if not is_asked(refused, attempt.inbound):
            raise
        return web.json_response(ASKED, status=202)
