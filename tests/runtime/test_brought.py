"""What a client brings along with what it says: a conversation of its own, tools that it runs itself, instructions."""

import msgspec
import pytest

import everloop
from everloop.core.decide import HANDED
from everloop.core.log import CallReturned, UserSaid
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import Message, Text, said
from everloop.core.prompt import Brought, Offered
from everloop.core.tool import Effect, ToolCall
from everloop.errors import MailRefused
from everloop.testing import Call, Calls, Say, ScriptedModel
from everloop.tools.decorator import tool
from tests.runtime.test_turns import entries, kinds

WEATHER = Offered("weather", "Tell the weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
ASKED = ToolCall("c1", "weather", '{"city":"Bern"}')


def letter(text: str, event: str = "e1", session: str = "api:default", **more) -> Inbound:
    return Inbound(Address.parse(session), event, Said(said(text) if text else (), "owner", session, **more))


@tool(Effect.READ)
async def look() -> str:
    """Look."""
    return "seen"


async def test_a_call_of_a_tool_that_the_client_brought_ends_the_turn_with_that_call(house):
    model = ScriptedModel([[Say("I ask."), Call("weather", {"city": "Bern"}, "c1")]])
    async with house(model) as agent:
        answer = await agent.answer(letter("weather?", brought=Brought(tools=(WEATHER,))))
        assert (answer.content, answer.calls, answer.finish) == ("I ask.", (ASKED,), "calls")
        written = await entries(agent)
        assert kinds(written) == ["UserSaid", "ModelCalled", "ModelSaid", "CallReturned"]
        assert written[-1] == CallReturned(3, 0, HANDED, "handed")
        assert await agent.answer(letter("weather?", brought=Brought(tools=(WEATHER,)))) == answer
    assert model.calls == 1
    assert "weather" in model.prompts[0].tools


async def test_the_next_message_of_the_session_goes_on_from_there_without_the_tools(house):
    model = ScriptedModel([Call("weather", {"city": "Bern"}, "c1"), Say("It rains.")])
    async with house(model) as agent:
        await agent.answer(letter("weather?", brought=Brought(tools=(WEATHER,))))
        answer = await agent.answer(letter("Result of weather (c1): rain", "e2"))
    assert (answer.content, answer.calls) == ("It rains.", ())
    assert model.prompts[1].said[1:] == [("assistant", ""), ("tool", HANDED), ("user", "Result of weather (c1): rain")]
    assert "weather" not in model.prompts[1].tools


async def test_our_own_calls_of_the_same_answer_run_before_the_turn_ends(house):
    model = ScriptedModel([Calls(Call("weather", {}, "c1"), Call("look", {}, "c2"))])
    async with house(model, tools=[look]) as agent:
        answer = await agent.answer(letter("weather?", brought=Brought(tools=(WEATHER,))))
        results = [entry for entry in await entries(agent) if isinstance(entry, CallReturned)]
    assert answer.calls == (ToolCall("c1", "weather", "{}"),)
    assert results == [CallReturned(3, 0, HANDED, "handed"), CallReturned(3, 1, "seen")]


async def test_a_tool_that_the_client_calls_as_we_call_ours_is_the_clients(house):
    model = ScriptedModel([Call("look", {}, "c1")])
    async with house(model, tools=[look]) as agent:
        answer = await agent.answer(letter("look", brought=Brought(tools=(Offered("look"),))))
    assert answer.calls == (ToolCall("c1", "look", "{}"),)
    assert model.prompts[0].tools.count("look") == 1


async def test_a_conversation_that_was_held_elsewhere_is_shown_to_the_model_as_it_was(house):
    before = (
        Message("user", said("weather?")),
        Message("assistant", said(""), (ASKED,)),
        Message("tool", said("rain"), answers="c1"),
    )
    model = ScriptedModel([Say("It rains.")])
    async with house(model) as agent:
        answer = await agent.answer(letter("", before=before))
        (first, *_) = await entries(agent)
    assert answer.content == "It rains."
    result = Message("tool", said("rain", "a client's tools"), answers="c1")
    assert model.prompts[0].messages == (*before[:2], result)
    assert first == UserSaid((), "owner", "api:default", 1, before=before)


async def test_instructions_and_wishes_hold_for_their_turn_alone(house):
    model = ScriptedModel([Say("Arr."), Say("Yes.")])
    async with house(model) as agent:
        await agent.answer(letter("hi", brought=Brought(instructions="Talk like a pirate.", temperature=0.0)))
        await agent.ask("really?")
    assert [shown.system.endswith("\n\nTalk like a pirate.") for shown in model.prompts] == [True, False]


async def test_nothing_at_all_is_still_refused(house):
    async with house(ScriptedModel([])) as agent:
        with pytest.raises(MailRefused, match="the message is empty"):
            await agent.answer(letter("", brought=Brought(tools=(WEATHER,))))


async def test_a_file_without_a_name_on_the_disk_is_a_part(house):
    async with house(ScriptedModel([])) as agent:
        told = Text("[notes.txt, kept as file:dba36bffa5ca]\nwords", "notes.txt", True)
        assert await agent.enclose("notes.txt", b"words", "owner") == told
        part = await agent.enclose("x.bin", b"\x00\xff", "owner")
        what = "application/octet-stream, 2 bytes; load_file brings it into the workspace"
        assert part == Text(f"[x.bin, kept as file:06eb7d6a69ee: {what}]", "x.bin")


def test_what_is_brought_survives_the_log():
    entry = UserSaid(said("hi"), "owner", brought=Brought("a", "b", (WEATHER,), 5, 0.5, 0.9, "low", True, "d", "i"))
    assert everloop.core.log.decode(everloop.core.log.encode(entry)) == entry
    assert b"brought" not in msgspec.json.encode(UserSaid(said("hi"), "owner"))


async def test_a_client_without_wishes_is_told_as_if_it_brought_nothing_and_one_with_wishes_is_not(house):
    model = ScriptedModel([Say("yes")] * 3)
    async with house(model) as agent:
        for n, brought in enumerate((None, Brought(id="t"), Brought(instructions="Be brief."))):
            await agent.answer(letter("hi", f"e{n}", f"api:{n}", brought=brought))
        plain, without, wishing = ((each.system, each.tools) for each in model.prompts)
        assert without == plain
        assert wishing == (f"{plain[0]}\n\n---\n\nBe brief.", plain[1])
