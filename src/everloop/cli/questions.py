"""Putting the agent's questions to whoever sits at the terminal."""

import asyncio
from collections.abc import Sequence
from types import TracebackType

from ..app.agent import Agent, Approval
from ..app.user import inbound_of
from ..core.people import OWNER
from ..errors import MailRefused
from ..readings.commands import command_in
from ..readings.grants import described, extent
from ..readings.questions import answers_to, asked_of, chosen, offered_of
from .chat.front import Display, TypedLines
from .times import clock

YES, NO = ("y", "yes"), ("", "n", "no", "/deny")  # without a name it is this call
HOW = "y allows it once, n (or nothing) does not."


class Questions:
    """`async with` one for each turn: what is left open when the turn ends is not asked any more."""

    def __init__(self, agent: Agent, session: str, lines: TypedLines, terminal: Display) -> None:
        self._agent = agent
        self._session = session
        self._lines = lines
        self._terminal = terminal
        self._asking: list[asyncio.Task[None]] = []
        self._put: set[str] = set()
        self._passed: set[str] = set()  # what someone has gone on without

    async def settle(self, approvals: Sequence[Approval]) -> bool:
        """Ask what was not asked yet, and come back when all is answered or someone has gone on without it. Whether
        there was anything to ask."""
        self.ask(approvals)
        asking = [each for each in self._asking if not each.done()]
        if asking:
            await asyncio.wait(asking)
        return bool(asking)

    def ask(self, approvals: Sequence[Approval]) -> None:
        """Begin to ask, beside whatever else happens: the turn may be stopped meanwhile. Each is put once."""
        fresh = self.unput(approvals)
        if fresh:
            self._put.update(each.id for each in fresh)
            self._asking.append(asyncio.ensure_future(self._ask_after(fresh, tuple(self._asking))))

    def unput(self, approvals: Sequence[Approval]) -> list[Approval]:
        """Those of them that have not been put here."""
        return [each for each in approvals if each.id not in self._put]

    async def __aenter__(self) -> "Questions":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for asking in self._asking:
            asking.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)

    async def ask_about_files(self, approvals: Sequence[Approval]) -> str:
        """Ask about changes of prompt files, now that the turn is over. Returns what someone says instead."""
        for approval in approvals:
            self._terminal.ask(asked_of(approval))
            line = await self._lines.ask("Let it stay? [y/N] ", ("y", "n"))
            answer = (line or "").strip()
            if line is None or answer.lower() not in YES + NO:
                return answer  # it goes on waiting
            try:
                await self._agent.decide(approval.id, answer.lower() in YES)
                self._terminal.note(f"{approval.tool} {'stays as it is' if answer.lower() in YES else 'is put back'}.")
            except MailRefused as error:
                self._terminal.note(f"everloop: {error}")
        return ""

    async def _ask_after(self, approvals: Sequence[Approval], before: Sequence[asyncio.Task[None]]) -> None:
        if before:
            await asyncio.wait(before)
        await self._ask(approvals)

    async def _ask(self, approvals: Sequence[Approval]) -> None:
        for approval in approvals:
            # A command, or somebody elsewhere, may have answered it.
            if approval.id in self._passed or not await self._waits(approval):
                continue
            words = "\n".join((asked_of(approval), HOW, *offered_of(approval)))
            self._terminal.ask_permission(approval, words)
            while not await self._answer(approval):
                pass

    async def _tell_what_is_granted(self, approval: Approval) -> None:
        for grant in await self._agent.grants():
            if grant.id == approval.id:
                ahead = f"{extent(grant, self._agent.clock.now())}, until {clock(grant.until)}"
                self._terminal.note(
                    f"{grant.tool} is allowed. So is, {ahead}: {described(grant, grant.thread)}.\n"
                    f"Take it back with: everloop approvals revoke {grant.id}"
                )

    async def _waits(self, approval: Approval) -> bool:
        return approval.id in {each.id for each in await self._agent.approvals(self._session)}

    async def _answer(self, approval: Approval) -> bool:
        """Whether one line was an answer, or something else that ends the asking; else it is asked again."""
        answer = (await self._lines.ask("Allow it? [y/N] ", answers_to(approval)) or "").strip()
        word, *rest = answer.split() or [""]
        try:
            if command_in(answer) and answer not in NO:  # which is understood whatever else goes on
                self._terminal.tell((await self._agent.ask(answer, self._session, author=OWNER)).content)
                return not await self._waits(approval)
            if answer.lower() in YES + NO:
                await self._agent.decide(approval.id, answer.lower() in YES)
            elif word.lower() == "y" or (word.lower() == "yes" and rest[0].lower() in approval.choices):
                await self._agent.decide(approval.id, True, allowance=chosen(approval, rest))
                await self._tell_what_is_granted(approval)
            else:  # whoever says something else goes on without it
                self._passed |= self._put
                instead = tuple(sorted(self._put))
                await self._agent.tell(inbound_of(answer, self._session, author=OWNER, instead=instead))
        except MailRefused as error:
            self._terminal.note(f"everloop: {error}")
            return not await self._waits(approval)
        return True
