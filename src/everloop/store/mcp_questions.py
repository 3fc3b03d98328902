"""What MCP servers ask people, written once for both databases."""

from collections.abc import Callable

from msgspec import json

from ..ports.mcp_questions import MOST_OPEN, McpFilledIn, McpQuestion
from .database import Ask, Does

LASTS = 30.0  # seconds for which a question is open without a word of whoever asks

_read, _read_answer = json.Decoder(McpQuestion).decode, json.Decoder(McpFilledIn).decode
_OPEN = "until > {elapsed} AND answer = ''"
_ASK = (
    "INSERT INTO mcp_questions(id, owner, holder, until, at, body) "
    f"VALUES($1, $2, $3, {{elapsed}} + {LASTS}, {{now}}, $4) ON CONFLICT DO NOTHING RETURNING id"
)
_KEEP = f"UPDATE mcp_questions SET until = {{elapsed}} + {LASTS} WHERE id = $1 RETURNING id"
_HELD = f"SELECT body, holder FROM mcp_questions WHERE owner = $1 AND {_OPEN} ORDER BY at, id"
_ANSWER = f"UPDATE mcp_questions SET answer = $3 WHERE id = $1 AND owner = $2 AND {_OPEN} RETURNING id"


class McpQuestionRows:
    """McpOpenQuestions, over the ways in which a database can be asked; `holder` is this process."""

    def __init__(self, ask: Ask, change: Ask, do: Does, holder: str, alive: Callable[[str], bool]) -> None:
        self._ask = ask
        self._change = change
        self._do = do
        self._holder = holder
        self._alive = alive

    async def ask(self, question: McpQuestion) -> bool:
        async def work(ask: Ask) -> bool:
            await ask("DELETE FROM mcp_questions WHERE until <= {elapsed}")  # of processes that are gone
            if len(await ask(_HELD, question.person)) >= MOST_OPEN:
                return False
            body = json.encode(question).decode()
            return bool(await ask(_ASK, question.id, question.person, self._holder, body))

        return await self._do(work)

    async def keep_asking(self, id: str) -> bool:
        return bool(await self._change(_KEEP, id))

    async def waiting(self, person: str) -> list[McpQuestion]:
        return [_read(body) for body, holder in await self._ask(_HELD, person) if self._alive(holder)]

    async def take(self, id: str, person: str, answer: McpFilledIn) -> bool:
        return bool(await self._change(_ANSWER, id, person, json.encode(answer).decode()))

    async def answer_to(self, id: str) -> McpFilledIn | None:
        rows = await self._ask("SELECT answer FROM mcp_questions WHERE id = $1 AND answer <> ''", id)
        return _read_answer(rows[0][0]) if rows else None

    async def end(self, id: str) -> None:
        await self._change("DELETE FROM mcp_questions WHERE id = $1", id)
