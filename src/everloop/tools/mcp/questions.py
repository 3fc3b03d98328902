"""No person is asked: for a house in which servers have nobody to turn to in the middle of a call."""

from typing import Any, Protocol

from ...ports.tools import CallContext


class AnswersModels(Protocol):
    """Half of McpQuestions: the half that a model answers."""

    async def ask_model(self, context: CallContext, server: str, request: dict[str, Any]) -> dict[str, Any] | None: ...


class Declining:
    """Declines what a server asks a person: that it wanted to is told with the result of the call. What it asks a model
    is answered by `models`, where there are any."""

    def __init__(self, models: AnswersModels | None = None) -> None:
        self._models = models

    async def ask_person(
        self, context: CallContext, server: str, message: str, schema: dict[str, Any]
    ) -> dict[str, Any] | None:
        return None

    async def ask_model(self, context: CallContext, server: str, request: dict[str, Any]) -> dict[str, Any] | None:
        return await self._models.ask_model(context, server, request) if self._models else None
