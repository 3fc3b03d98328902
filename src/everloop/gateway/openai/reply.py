"""What both dialects do with a letter: errors in OpenAI's shape, and the ids of calls."""

import time
from collections.abc import Callable
from typing import Any

from aiohttp import web

from ...core.prompt import Usage
from ...core.tool import ToolCall
from ...ports.events import Answer
from ..http.errors import Refused, refused_at_http_door, type_of
from ..http.handler import Handler
from ..http.repeats import Attempt
from ..http.whole_answer import give
from ..ports import TurnAgent
from ..signed_links import signing

# OpenAI's clients try again by themselves after 409, 429 and 5xx; that would be another turn.
NO_RETRY = {"x-should-retry": "false"}


def in_their_shape(handler: Handler) -> Handler:
    """Whatever fails is told as OpenAI would tell it."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except ConnectionError:
            raise  # nobody is there any more
        except Exception as error:  # the border to a stranger's request
            refused = refused_at_http_door(error)
            return web.json_response({"error": error_of(refused)}, status=refused.status, headers=NO_RETRY)

    return answer


Attached = dict[str, Any]
"""`attachments`, a field of ours: the files that came of a turn, as signed links. Nothing where there are none."""


async def attached_to(agent: TurnAgent, answer: Answer) -> Attached:
    links = await signing(agent)(answer.turn.partition(":")[0], answer.files) if answer.files else []
    return {"attachments": links} if links else {}


async def answered(
    agent: TurnAgent, request: web.Request, attempt: Attempt, shape: Callable[[Answer, Attached], object]
) -> web.StreamResponse:
    """The answer to a request, sent."""

    async def make(answer: Answer) -> web.Response:
        return web.json_response(shape(answer, await attached_to(agent, answer)), headers=NO_RETRY)

    return await give(agent, request, attempt, make)


def error_of(refused: Refused) -> dict[str, Any]:
    kind = type_of(refused.status)
    return {"message": str(refused), "type": kind, "param": refused.param, "code": refused.code, **refused.told}


def named(calls: tuple[ToolCall, ...]) -> list[ToolCall]:
    """Calls whose ids a client can tell apart: a host's may be missing, or repeat."""
    seen: set[str] = set()
    found = []
    for place, call in enumerate(calls):
        id = call.id if call.id and call.id not in seen else f"call_{place}_{len(seen)}"
        seen.add(id)
        found.append(ToolCall(id, call.name, call.args or "{}"))
    return found


def chat_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def responses_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def now() -> int:
    return int(time.time())
