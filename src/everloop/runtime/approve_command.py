"""`/approve` and `/deny`: a person's answer to a question. It is theirs alone: what a model or a tool says is never a
command."""

from msgspec import structs

from ..core.mail import Inbound, Said
from ..errors import MailRefused
from ..ports import Clock
from ..readings.grants import described, extent
from ..readings.questions import chosen as chosen_in
from ..readings.questions import question_of
from .approvals import Approvals
from .session_commands import sentence
from .typed_command import CommandEffect, TypedCommand

ANSWERED = "Somebody else has answered this already."


class ApproveCommand:
    def __init__(self, approvals: Approvals, clock: Clock) -> None:
        self._approvals = approvals
        self._clock = clock

    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        words = typed.rest.split()
        if typed.name == "/deny" and words:
            words = [words[0], "no"]
        return await self._approve(words, typed.inbound, typed.letter)

    async def _approve(self, words: list[str], inbound: Inbound, letter: Said) -> CommandEffect:
        session, author = str(inbound.address), letter.author
        if not words:
            open_here = await self._approvals.waiting(session)
            if not letter.principal:  # what is theirs alone is not told in a group
                own = await self._approvals.private(author)
                open_here += [each for each in own if each.session != session]
            waiting = [each for each in open_here if await self._approvals.may_answer(each, author)]
            return CommandEffect(
                inbound,
                "none",
                "\n\n".join(question_of(each) for each in waiting) or "Nothing waits for permission here.",
            )
        name, *rest = words
        allow = [word.lower() for word in rest] != ["no"]
        more = rest[1:] if rest and rest[0].lower() == "yes" else rest
        try:
            approval = await self._approvals.find_anywhere(name, session)
            chosen = chosen_in(approval, more) if allow else None
            if approval.held:
                return CommandEffect(
                    inbound, "none", await self._approvals.decide_on_file(approval, allow, author, chosen)
                )
            answer, grant = await self._approvals.decide(approval, allow, author, chosen, inbound.event)
        except MailRefused as error:
            return CommandEffect(inbound, "none", sentence(error))
        ahead = f" So is, {extent(grant, self._clock.now())}: {described(grant, grant.thread)}." if grant else ""
        reply = f"{approval.subject} is {'allowed' if allow else 'not allowed'}.{ahead}"
        if approval.address != session:
            decided = structs.replace(answer, event=f"decision:{approval.id}")
            return CommandEffect(inbound, "none", reply, ANSWERED, decided, grant)
        return CommandEffect(structs.replace(inbound, letter=answer.letter), "tell", reply, grant=grant)
