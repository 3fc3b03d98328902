"""What MCP servers ask somebody just now, and their answers: from any process, whichever makes the call."""

from ..errors import MailRefused
from ..ports.mcp_questions import McpFilledIn, McpOpenQuestions, McpQuestion
from ..readings.forms import ANSWER, DECLINE, asked_text, filled_in

NOTHING_ASKED = "No MCP server asks you anything here."
NOT_OPEN = "No MCP server waits for an answer to {!r} here (any more); {} shows what is asked."


class McpAnswers:
    def __init__(self, questions: McpOpenQuestions, command: str = ANSWER) -> None:
        """`command` is what people answer with, where they are."""
        self._questions = questions
        self._command = command

    async def waiting(self, person: str, session: str = "") -> list[McpQuestion]:
        """What is asked of somebody, in one chat or in all of theirs."""
        return [each for each in await self._questions.waiting(person) if session in ("", each.session)]

    async def listed(self, person: str, session: str = "") -> str:
        asked = [asked_text(each, self._command) for each in await self.waiting(person, session)]
        return "\n\n".join(asked) or NOTHING_ASKED

    async def answer(self, id: str, line: str, person: str) -> str:
        """Take somebody's answer, and say what came of it. Raises MailRefused: it is none, or nobody waits for it."""
        asked = next((each for each in await self.waiting(person) if each.id == id.lower()), None)
        declines = line.strip().lower() == DECLINE
        if asked is None:
            raise MailRefused(NOT_OPEN.format(id[:20], self._command))
        try:
            given = McpFilledIn(None if declines else filled_in(asked.form, line))
        except ValueError as error:
            raise MailRefused(f"That is no answer to it: {error}.") from error
        if not await self._questions.take(asked.id, person, given):
            raise MailRefused(NOT_OPEN.format(id[:20], self._command))
        return f"{asked.server} is told{' that you do not answer' if declines else ''}."
