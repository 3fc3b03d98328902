"""A program with several users: each is who they are said to be, and nobody becomes the owner by saying nothing."""

import json

import pytest

import everloop
from everloop import Effect, EverloopError, MailRefused, Role, tool
from everloop.app.user import spoken
from everloop.core.log import UserSaid
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.testing import Call, Say, ScriptedModel

SECRET = "my pin is 4711"

NOT_THERE = "Error: there is no tool 'stock'. The tools are: read_file, web_fetch, message, web_search."


@tool(Effect.READ, permission=Role.USER)
async def stock(item: str) -> str:
    """How many there are."""
    return "12"


@tool(Effect.UNSAFE, permission=Role.USER, guarded=True)
async def order(item: str) -> str:
    """Order something."""
    return "ordered"


def echoing() -> ScriptedModel:
    return ScriptedModel(lambda shown: Say(f"you said {shown.asked}"))


async def test_in_a_session_that_is_not_the_owners_it_has_to_be_said_who_speaks(house):
    async with house(echoing()) as agent:
        with pytest.raises(MailRefused, match=r"nobody says who speaks in web:anna: use agent.user\('web:anna'\)"):
            await agent.ask("hi", "web:anna")
        with pytest.raises(MailRefused, match="nobody says who speaks"):
            async for _ in agent.stream("hi", session="web:anna"):
                pass
        for session in ("api:default", "cli:direct", "page:home"):
            assert (await agent.ask("hi", session)).content == "you said hi"
        assert (await agent.ask("hi", "work:taxes", author="owner")).content == "you said hi"
        assert await agent.store.session("web:anna") is None


async def test_what_one_user_has_said_no_other_comes_to_see(house):
    model = echoing()
    async with house(model) as agent:
        anna, eve = agent.user("web:anna"), agent.user("web:eve")
        await anna.ask(SECRET)
        thread = (await agent.store.session("web:anna")).id
        for words in (
            "/session list",
            "/session search 4711",
            f"/session resume {thread[:8]}",
            f"/session show {thread}",
        ):
            assert SECRET not in (await eve.ask(words)).content
        with pytest.raises(MailRefused):
            await eve.ask("what did she say?", "web:anna")
        with pytest.raises(MailRefused):
            await agent.ask("what did she say?", "web:anna", author="web:eve")
        with pytest.raises(MailRefused):
            await agent.ask("what did she say?", "web:anna", author="owner")
        await eve.ask("hi")
        assert SECRET not in str(model.prompts[-1].messages)
        assert SECRET in (await anna.ask("/session search 4711")).content


async def test_a_users_words_are_kept_under_their_name_and_each_may_have_several_sessions(house):
    async with house(echoing()) as agent:
        anna = agent.user("web:anna")
        await anna.ask("hi")
        await anna.ask("hi there", "web:anna:trip")
        found = {row.session: row for row in await agent.store.conversations("web:anna")}
        [entry] = [e for e in await agent.store.read(found["web:anna"].id) if isinstance(e, UserSaid)]
        assert (entry.author, {*found}) == ("web:anna", {"web:anna", "web:anna:trip"})
        assert await agent.store.conversations("owner") == []


@pytest.mark.parametrize(
    "name", ["owner", "", "anna", ":anna", "web:", "web:a\nb", "api:anna", "cli:x", "page:x", "w:" + "x" * 300]
)
async def test_a_name_that_could_be_somebody_elses_is_refused(house, name: str):
    async with house(echoing()) as agent:
        with pytest.raises(MailRefused):
            agent.user(name)


@pytest.mark.parametrize(
    "session", ["api:default", "cli:direct", "page:home", "openai:x", "nokey", "web:eve", "web:annax"]
)
async def test_a_user_does_not_speak_in_the_owners_sessions_or_in_anothers(house, session: str):
    async with house(echoing()) as agent:
        with pytest.raises(EverloopError):
            await agent.user("web:anna").ask("hi", session)


async def test_what_a_user_may_do_is_what_the_program_says_at_the_time(house):
    roles = {"web:anna": Role.USER}
    model = ScriptedModel([Call("stock", {"item": "lamp"}), Say("12")] * 4)
    async with house(model, tools=[stock], roles=roles) as agent:
        for name in ("web:anna", "web:eve"):
            await agent.user(name).ask("how many lamps?")
        roles["web:eve"] = Role.USER
        await agent.user("web:eve").ask("and now?")
        await agent.ask("and I?")
    results = [prompt.messages[-1].text for prompt in model.prompts[1::2]]
    assert results == ["12", NOT_THERE, "12", "12"]


async def test_nobody_can_be_introduced_as_less_than_the_owner_in_the_owners_name(house):
    model = ScriptedModel([Call("stock", {"item": "lamp"}), Say("12")])
    async with house(model, tools=[stock], roles={"owner": Role.GUEST}) as agent:
        await agent.ask("how many?")
    assert model.prompts[1].messages[-1].text == "12"


async def test_a_question_of_a_users_is_answered_by_whom_it_is_for(house):
    roles = {"web:anna": Role.USER, "web:boss": Role.ADMIN}
    async with house(
        ScriptedModel([Call("order", {"item": "lamp"}), Say("done")]), tools=[order], roles=roles
    ) as agent:
        anna = agent.user("web:anna")
        async for event in anna.stream("order a lamp", attended=True):
            if event.name == "approval_asked":
                [asked] = await anna.approvals()
                assert await agent.user("web:eve").approvals() == []
                with pytest.raises(MailRefused):
                    await anna.decide(asked.id, True)
                await agent.user("web:boss").decide(asked.id, True)
    assert event.data["answer"].content == "done"


@pytest.mark.parametrize("door", ["ask", "stream"])
async def test_without_anyone_there_what_needs_permission_is_not_run_by_either_door(house, door: str):
    model = ScriptedModel([Call("order", {"item": "lamp"}), Say("done")])
    async with house(model, tools=[order]) as agent:
        if door == "ask":
            await agent.ask("order a lamp")
        else:
            assert "approval_asked" not in [event.name async for event in agent.stream("order a lamp")]
    assert "nobody is there to be asked" in model.prompts[1].messages[-1].text


async def test_slashes_in_what_users_say_can_be_text(house):
    async with house(echoing()) as agent:
        plain, able = agent.user("web:anna", commands=False), agent.user("web:anna")
        assert (await plain.ask("/help")).content == "you said /help"
        assert (await agent.ask("/help", commands=False)).content == "you said /help"
        told = await able.ask("/help")
    assert (told.content.partition("\n")[0], told.turn, told.model) == ("everloop commands:", "", "")


async def test_a_session_that_was_the_owners_before_it_had_to_be_said_who_speaks_goes_on(house):
    async with house(echoing()) as agent:
        session = Address("web", "anna")
        await agent.answer(Inbound(session, "e", Said(said("hi"), "owner", "web:anna")))
        assert (await agent.user("web:anna").ask("and now?")).content == "you said and now?"
        with pytest.raises(MailRefused):
            await agent.ask("me too", "web:anna", author="web:eve")


async def test_a_key_that_is_none_is_an_error_of_ours_and_a_value_error(house):
    async with house(echoing()) as agent:
        for wrong in (EverloopError, ValueError):
            with pytest.raises(wrong, match="a session key looks like channel:chat, not 'nokey'"):
                await agent.ask("hi", session="nokey")


async def test_every_event_can_be_passed_on_as_json(house):
    seen = {}
    model = ScriptedModel([Call("order", {"item": "lamp"}), Say(["do", "ne"])])
    async with house(model, tools=[order]) as agent:
        async for event in agent.stream("order a lamp", attended=True):
            seen[event.name] = json.loads(event.json())
            if event.name == "approval_asked":
                await agent.decide(event.data["approvals"][0].id, True)
        answer = event.data["answer"]
        with agent.events() as events:
            await agent.ask("/help")
            command = await anext(events)
    seen["command"] = json.loads(command.json())
    names = {"thinking_started", "stream_start", "stream_chunk", "stream_end", "metrics", "tool_call", "tool_result"}
    assert names | {"approval_asked", "thinking_finished", "answer", "command"} <= {*seen}
    assert all({"name", "thread", "seq", "n", "data"} == {*each} for each in seen.values())
    assert (seen["answer"]["data"]["answer"]["content"], answer.content) == ("done", "done")
    assert seen["approval_asked"]["data"]["approvals"][0]["tool"] == "order"
    assert set(seen["metrics"]["data"]["usage"]) <= set(everloop.Usage.__struct_fields__)


async def test_an_answer_that_was_cut_off_comes_back_to_the_program_by_its_event_and_among_the_unshown(house):
    async with house(ScriptedModel([Say("half of it")])) as agent:
        await agent.tell(spoken("hi", "web:anna", "m1", "web:anna", attended=False, commands=True))
        anna = agent.user("web:anna")
        await anna.finish()
        [unshown] = await anna.unshown()
        again = await anna.ask("hi", event="m1")
        assert (unshown.text, again.content) == ("half of it", "half of it")
        assert await anna.unshown() == []


async def test_two_users_may_give_their_messages_the_same_name(house):
    model = ScriptedModel(lambda shown: Say(f"you said {shown.asked}"))
    async with house(model) as agent:
        owner = await agent.ask("mine", event="m1")
        anna = await agent.user("web:anna").ask("my pin is 4711", event="m1")
        eve = await agent.user("web:eve").ask("hello", event="m1")
        again = await agent.user("web:anna").ask("my pin is 4711", event="m1")
        room = await agent.ask("hi", "api:room", author="web:eve", event="m1")
    assert [each.content for each in (owner, anna, eve, again, room)] == [
        *("you said mine", "you said my pin is 4711", "you said hello"),
        *("you said my pin is 4711", "you said hi"),
    ]
    assert (again.turn, model.calls) == (anna.turn, 4)


@tool(Effect.READ, permission=Role.ADMIN)
async def ledger() -> str:
    """What was paid."""
    return "9 EUR"


async def introduce(agent: everloop.Agent, person: str, role: str) -> None:
    """As the command for it will do, from whichever process."""

    async def work(ask):
        await ask("DELETE FROM users WHERE id = $1", person)
        await ask("INSERT INTO users(id, name, role, created) VALUES($1, $1, $2, {now})", person, role)

    await agent.store._do(work)


async def test_an_admin_among_the_users_is_one_to_tools_commands_and_approvals_from_the_moment_on(house):
    def plays(shown):
        return Say(shown.messages[-1].text) if shown.step else Call("ledger")

    async with house(ScriptedModel(plays), tools=[ledger, order]) as agent:
        ada = agent.user("web:ada")
        for role, told in (("guest", NOT_THERE.replace("stock", "ledger")), ("admin", "9 EUR"), ("unheard of", None)):
            await introduce(agent, "web:ada", role)
            answer = (await ada.ask("how much?", f"web:ada:{role.replace(' ', '-')}")).content
            assert answer == (told or NOT_THERE.replace("stock", "ledger"))


async def test_an_admin_among_the_users_commands_and_decides_and_a_guest_does_neither(house):
    async with house(ScriptedModel([Call("order", {"item": "lamp"}), Say("done")]), tools=[order]) as agent:
        assert "not for guests" in (await agent.user("web:ada").ask("/usage")).content
        async for event in agent.stream("order a lamp", attended=True):
            if event.name == "approval_asked":
                (asked,) = event.approvals
                with pytest.raises(MailRefused, match="not for web:ada to decide"):
                    await agent.decide(asked.id, True, by="web:ada")
                await introduce(agent, "web:ada", "admin")
                await agent.decide(asked.id, True, by="web:ada")
        assert event.answer.content == "done"
        assert "not for guests" not in (await agent.user("web:ada").ask("/usage")).content


async def test_a_word_that_says_nothing_about_how_it_is_said_is_refused(house):
    async with house(echoing()) as agent:
        for say in (agent.ask, agent.user("web:anna").ask):
            with pytest.raises(TypeError, match="nothing is said attends: there is attended, commands"):
                await say("hi", attends=True)
