"""Who answers what a server asks in the middle of a call: people, and models. Where there is nobody, it is declined."""

from typing import Any, Protocol

from ...ports.tools import CallContext


class AnswersModels(Protocol):
    """Half of McpQuestions: the half that a model answers."""

    async def ask_model(self, context: CallContext, server: str, request: dict[str, Any]) -> dict[str, Any] | None: ...


class AnswersPeople(Protocol):
    """The half that a person answers."""

    async def ask_person(
        self, context: CallContext, server: str, message: str, schema: dict[str, Any]
    ) -> dict[str, Any] | None: ...


class AnsweredBy:
    """McpQuestions of two halves. That nobody was asked is told with the result of the call."""

    def __init__(self, people: AnswersPeople | None = None, models: AnswersModels | None = None) -> None:
        self._people = people
        self._models = models

    async def ask_person(
        self, context: CallContext, server: str, message: str, schema: dict[str, Any]
    ) -> dict[str, Any] | None:
        return await self._people.ask_person(context, server, message, schema) if self._people else None

    async def ask_model(self, context: CallContext, server: str, request: dict[str, Any]) -> dict[str, Any] | None:
        return await self._models.ask_model(context, server, request) if self._models else None
