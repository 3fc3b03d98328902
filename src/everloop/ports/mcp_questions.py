"""What MCP servers ask people in the middle of calls (elicitation), for every process: one asks, any takes answers."""

from typing import Any, Protocol

from msgspec import Struct

MOST_OPEN = 20  # questions of one person


class McpQuestion(Struct, frozen=True, kw_only=True):
    """`form` is the JSON schema of what is wanted; it and the message are the server's words."""

    id: str
    person: str  # for whom the call is made, and who alone can answer
    session: str
    server: str
    message: str
    form: dict[str, Any]


class McpFilledIn(Struct, frozen=True):
    """What somebody has answered; without `content`, that they do not."""

    content: dict[str, Any] | None = None


class McpOpenQuestions(Protocol):
    """A question is open as long as whoever asks says so, and is gone when it is not: with its call, and with the
    process that made the call. Raises StoreError."""

    async def ask(self, question: McpQuestion) -> bool:
        """False where one of that name is open, or too many are that this person is asked."""
        ...

    async def keep_asking(self, id: str) -> bool:
        """Whoever asks is still there. False where the question is not: whoever is asked was erased, or whoever asks
        was taken for gone."""
        ...

    async def waiting(self, person: str) -> list[McpQuestion]:
        """Those that wait for an answer of theirs, in the order in which they came."""
        ...

    async def take(self, id: str, person: str, answer: McpFilledIn) -> bool:
        """Whether it counts: it was open, was theirs, and nobody has answered it before."""
        ...

    async def answer_to(self, id: str) -> McpFilledIn | None:
        """None as long as there is none."""
        ...

    async def end(self, id: str) -> None:
        """With the answer, if there is one."""
        ...
