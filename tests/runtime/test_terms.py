"""What a conversation may do at most is never widened again, whatever is said or taken back in it."""

import pytest

from everloop.core.log import ModelCalled, ModelSaid, UserSaid
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.prompt import Terms
from everloop.core.thread import Thread
from everloop.testing import Say, ScriptedModel

ONE = Terms(steps=3, tools=("list_dir", "read_file"))


@pytest.mark.parametrize(
    ("later", "left"),
    [
        (None, ONE),
        (Terms(), ONE),
        (Terms(steps=9), ONE),
        (Terms(tools=("exec", "read_file")), Terms(3, ("read_file",))),
        (Terms(steps=2, tools=()), Terms(2, ())),
    ],
)
def test_later_terms_only_narrow(later: Terms | None, left: Terms):
    first, second = UserSaid(said("go"), "owner", terms=ONE), UserSaid(said("on"), "owner", terms=later)
    thread = Thread.of(first, ModelCalled("m"), ModelSaid("done"), second)
    assert thread.turn.terms == left


def test_terms_hold_where_there_were_none_before():
    first, second = UserSaid(said("go"), "owner"), UserSaid(said("on"), "owner", terms=ONE)
    assert Thread.of(first, ModelCalled("m"), ModelSaid("done"), second).turn.terms == ONE


@pytest.mark.parametrize("before", [(), ("on",)])
@pytest.mark.parametrize("deed", ["/undo", "/session edit go there", "/session regenerate", "/session fork", "on"])
async def test_terms_outlast_whatever_is_taken_back(house, deed: str, before: tuple[str, ...]):
    asked: list[tuple[str, ...]] = []
    model = ScriptedModel(lambda shown: asked.append(shown.tools) or Say("done"))
    async with house(model) as agent:
        letter = Said(said("go"), "owner", "api:child", terms=Terms(tools=("list_dir",)))
        await agent.answer(Inbound(Address.parse("api:child"), "1", letter))
        for text in (*before, deed, "and now?"):
            await agent.ask(text, "api:child")
    assert set(asked) == {("list_dir",)}
