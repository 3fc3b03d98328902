"""An answer handed to whoever asked, and known to be: only then is the same request another one."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from ...ports.events import Answer
from ..ports import TurnAgent
from .repeats import Attempt
from .turn_errors import explain_turn, is_there, note_told


async def give(
    agent: TurnAgent, request: web.Request, attempt: Attempt, make: Callable[[Answer], Awaitable[web.Response]]
) -> web.StreamResponse:
    """Raises Refused, or ConnectionError when nobody is there any more."""
    try:
        async with agent.answering(attempt.inbound, attempt.again, attempt.admit) as answer:
            response = await make(answer)
            await response.prepare(request)
            await response.write_eof()
            if not is_there(request):
                raise ConnectionResetError("whoever asked has gone")
            return response
    except ConnectionError:
        raise
    except Exception as error:  # whatever it was, a turn may have done something by then
        refused = await explain_turn(agent.store, attempt.inbound, error)
        note_told(agent, request, error)
        raise refused from error
