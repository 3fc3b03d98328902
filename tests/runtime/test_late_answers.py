"""Two people answer one question at once: the first answer counts, and a yes that came too late allows nothing."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everloop.core.log import Answered
from everloop.core.mail import Decision, Said, Stop
from everloop.core.message import said
from everloop.core.people import Role
from everloop.core.tool import Effect
from everloop.ports.permission import Allowance
from everloop.readings.verdicts import is_answered_by
from everloop.testing import Call, Say, ScriptedModel, counting_tool
from tests.runtime.conftest import letter
from tests.runtime.test_approvals import first_question

ADMIN = "web:admin"
YES = Decision("t", 3, 0, "allowed", ADMIN, "d")
NO = Decision("t", 3, 0, "denied", "owner", "d")
ALLOWED, DENIED = Answered(3, 0, "allowed", ADMIN), Answered(3, 0, "denied", "owner")


async def verdict_in(agent: Any) -> str:
    """Once the turn is over."""
    await agent.finish("api:default")
    row = await agent.store.session("api:default")
    (answered,) = [each for each in await agent.store.read(row.id) if isinstance(each, Answered)]
    return str(answered.verdict)


@pytest.mark.parametrize("order", [(True, False), (False, True)])
@pytest.mark.parametrize("by_command", [False, True])
async def test_what_a_yes_allows_ahead_holds_only_where_that_yes_counts(
    house: Any, tmp_path: Path, order: tuple[bool, bool], by_command: bool
):
    act = counting_tool(tmp_path / "runs", "act", Effect.UNSAFE, guarded=True)
    model = ScriptedModel([Call("act", {"to": "bob", "text": "hi"}), Say("done")])
    async with house(model, tools=[act], roles={ADMIN: Role.ADMIN}) as agent:
        await agent.tell(letter("act", "e1"))
        asked = await first_question(agent)

        async def answer(allow: bool) -> None:
            if allow and by_command:
                await agent.ask(f"/approve {asked.id} for 8h", "api:default", author=ADMIN)
            else:
                by, ahead = (ADMIN, Allowance(seconds=3600)) if allow else ("owner", None)
                await agent.decide(asked.id, allow, by, ahead)

        await asyncio.gather(*map(answer, order), return_exceptions=True)  # the second may be told that it is late
        verdict = await verdict_in(agent)
        granted = [grant.id for grant in await agent.grants()]
    assert granted == ([asked.id] if verdict == "allowed" else [])


def test_the_first_answer_counts_wherever_it_lies():
    others = Answered(9, 0, "denied", "owner")
    assert is_answered_by(YES, (), (YES, NO))
    assert is_answered_by(YES, (others,), (YES,))
    assert is_answered_by(YES, (ALLOWED,), (NO,))
    assert not is_answered_by(YES, (), (NO, YES))
    assert not is_answered_by(YES, (DENIED,), (YES,))
    assert not is_answered_by(YES, (Answered(3, 0, "expired"),), (YES,))
    assert not is_answered_by(YES, (Answered(3, 0, "withdrawn", "owner"),), (YES,))
    assert not is_answered_by(YES, (), ())


@pytest.mark.parametrize("before", [Stop("owner"), Said(said("something else"), "owner")])
def test_a_yes_behind_what_may_withdraw_the_question_allows_nothing_ahead(before: Any):
    assert not is_answered_by(YES, (), (before, YES))
    assert is_answered_by(YES, (), (YES, before))  # the control
