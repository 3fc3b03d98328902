"""What a server asks of us in the middle of a call: a person's answer, a model's, which folders are its own.

The answer is always that of the call on whose behalf it asks. Where several people's calls run at once and it does not
say which one it means, nobody is asked.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

from mcp.client import ClientRequestContext
from mcp_types import (
    INVALID_REQUEST,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ListRootsResult,
    Root,
)
from pydantic import FileUrl, ValidationError

from ...ports.mcp import McpQuestions, McpServer
from .running import CURRENT, RunningCall
from .schema import cleaned, cleaned_schema

_log = logging.getLogger("everloop.mcp")

_LONGEST_QUESTION = 2000  # characters
_LONGEST_SAMPLED = 200_000  # characters of what it wants a model to be asked
_NOT_HERE = ErrorData(code=INVALID_REQUEST, message="nobody can be asked that here")

Roots = Callable[[McpServer], Sequence[str]]


class ServersQuestions:
    """The SDK's callbacks for one server. `calls` are those that run there now."""

    def __init__(
        self, server: McpServer, questions: McpQuestions, roots: Roots, calls: Callable[[], Sequence[RunningCall]]
    ) -> None:
        self._server = server
        self._questions = questions
        self._roots = roots
        self._calls = calls

    async def elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        message = cleaned(params.message, _LONGEST_QUESTION)
        call = self._call()
        if call is None or call.context is None:
            return ElicitResult(action="decline")
        if not isinstance(params, ElicitRequestFormParams):
            call.tell(f"(It wanted a person to open {cleaned(params.url, 300)!r}, which was not done: {message!r})")
            return ElicitResult(action="decline")
        answer = await self._asked(call, message, params.requested_schema)
        if answer is None:
            call.tell(f"(It wanted to ask a person, who did not answer: {message!r})")
            return ElicitResult(action="decline")
        try:
            return ElicitResult(action="accept", content=answer)
        except ValidationError:
            return ElicitResult(action="decline")

    async def sample(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        call = self._call()
        if not self._server.sampling or call is None or call.context is None:
            return _NOT_HERE
        request = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        if len(str(request)) > _LONGEST_SAMPLED:
            return ErrorData(code=INVALID_REQUEST, message="that is more than a model is asked here")
        asked_for = call.context
        answer = await call.asked(self._questions.ask_model(asked_for, self._server.name, request))
        try:
            return CreateMessageResult.model_validate(answer) if answer else _NOT_HERE
        except ValidationError:
            _log.warning("what a model was to answer to %s is none that it could read", self._server.name)
            return _NOT_HERE

    async def roots(self, context: ClientRequestContext) -> ListRootsResult | ErrorData:
        return ListRootsResult(roots=[_root(folder) for folder in self._roots(self._server)])

    async def _asked(self, call: RunningCall, message: str, schema: Any) -> dict[str, Any] | None:
        if call.context is None:
            return None
        asked_for, form = call.context, cleaned_schema(schema)
        return await call.asked(self._questions.ask_person(asked_for, self._server.name, message, form))

    def _call(self) -> RunningCall | None:
        """The one on whose behalf it asks; None where that cannot be told."""
        if call := CURRENT.get():
            return call
        calls = self._calls()
        return calls[0] if len(calls) == 1 else None


def _root(folder: str) -> Root:
    path = PurePosixPath(folder)
    return Root(uri=FileUrl(path.as_uri()), name=path.name)
