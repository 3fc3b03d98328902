"""Who is blocked while something of theirs is under way has nothing more done, whatever waits for them."""

import pytest

from everloop.core.people import Role
from everloop.core.tool import Effect
from everloop.errors import TurnFailed
from everloop.ports.directory import Person
from everloop.testing import Call, Say, ScriptedModel
from everloop.tools.decorator import tool

ANN = "web:ann"
BLOCKED = "This was not done: whoever asked for it may not speak with me any more."


async def test_a_turn_of_somebody_who_is_blocked_meanwhile_ends_and_nothing_more_runs(house):
    ran: list[str] = []

    @tool(Effect.UNSAFE, permission=Role.GUEST)
    async def block_me() -> str:
        """Block whoever asks."""
        await opened.store.change_person(ANN, blocked=True)
        return "done"

    @tool(Effect.UNSAFE, permission=Role.GUEST)
    async def after() -> str:
        """Do something."""
        ran.append("after")
        return "done"

    model = ScriptedModel([[Call("block_me", {}), Call("after", {})], Say("all done")])
    async with house(model, tools=[block_me, after]) as opened:
        await opened.store.introduce(Person(ANN, "Ann", Role.ADMIN))
        with pytest.raises(TurnFailed) as refused:
            await opened.user(ANN).ask("go")
    assert (refused.value.reason, str(refused.value).partition(" (")[0]) == ("blocked", BLOCKED)
    assert (ran, len(model.prompts)) == ([], 1)


async def test_what_was_said_before_is_not_answered_and_no_model_is_asked(house):
    model = ScriptedModel(lambda shown: Say("hello"))
    async with house(model) as agent:
        await agent.store.introduce(Person(ANN, "Ann", Role.USER))
        before = (await agent.user(ANN).ask("hi")).content
        await agent.store.change_person(ANN, blocked=True)
        with pytest.raises(TurnFailed) as refused:
            await agent.user(ANN).ask("and now?")
        said = [(await agent.user(ANN).ask(text)).content for text in ("/help", "/new", "/undo", "/session list")]
        await agent.store.change_person(ANN, blocked=False)
        after = (await agent.user(ANN).ask("hi")).content
    assert (before, refused.value.reason, after) == ("hello", "blocked", "hello")
    assert set(said) == {"You are blocked here: nothing that you say is heard."}
    assert len(model.prompts) == 2
