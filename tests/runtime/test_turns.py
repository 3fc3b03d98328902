"""Whole turns through the public door, with a scripted model and a real SQLite home."""

import asyncio
from contextlib import aclosing

import pytest

import everloop
from everloop.app.user import spoken
from everloop.core import log
from everloop.core.log import Stopped
from everloop.core.mail import Address, Inbound, Stop
from everloop.core.tool import Effect
from everloop.errors import HostFailed, KeyRefused, MailRefused, TurnFailed
from everloop.ports.events import AnswerPiece, LetterTaken
from everloop.testing import Call, Calls, Empty, Fail, RecordingChannel, Say, ScriptedModel, Spend, Wait
from everloop.tools.decorator import tool
from tests.runtime.conftest import letter


async def entries(agent, session="api:default"):
    row = await agent.store.session(session)
    return await agent.store.read(row.id)


def kinds(found):
    return [type(entry).__name__ for entry in found]


async def test_a_question_gets_an_answer(house):
    model = ScriptedModel([[Say("hello"), Spend(everloop.Usage(input=9, output=3))]], name="scripted")
    async with house(model) as agent:
        answer = await agent.ask("hi")
        assert (answer.content, answer.session, answer.steps, answer.tools_used) == ("hello", "api:default", 1, ())
        assert answer.usage == everloop.Usage(input=9, output=3)
        assert kinds(await entries(agent)) == ["UserSaid", "ModelCalled", "ModelSaid"]


async def test_a_conversation_goes_on_and_is_still_there_after_a_restart(house):
    async with house(ScriptedModel([Say("one"), Say("two")])) as agent:
        await agent.ask("first")
        await agent.ask("second")
    model = ScriptedModel([Say("three")])
    async with house(model) as agent:
        await agent.ask("third")
    assert [text for _, text in model.prompts[0].said] == ["first", "one", "second", "two", "third"]


async def test_sessions_are_apart(house):
    model = ScriptedModel([Say("one"), Say("two")])
    async with house(model) as agent:
        await agent.ask("first", "api:a")
        await agent.ask("second", "api:b")
    assert [text for _, text in model.prompts[1].said] == ["second"]


async def test_the_same_event_twice_is_one_turn_with_one_answer(house):
    model = ScriptedModel([Say("once")])
    async with house(model) as agent:
        first = await agent.ask("hi", event="e1")
        second = await agent.ask("hi", event="e1")
        assert first == second
        assert model.calls == 1


async def test_reads_of_one_answer_run_side_by_side_and_return_in_order(house):
    met = asyncio.Barrier(3)

    @tool(Effect.READ)
    async def meet(name: str) -> str:
        """Waits until all three are here."""
        await met.wait()
        return f"{name} was here"

    lines = [Calls(Call("meet", {"name": "a"}), Call("meet", {"name": "b"}), Call("meet", {"name": "c"})), Say("all")]
    model = ScriptedModel(lines)
    async with house(model, tools=[meet]) as agent:
        answer = await agent.ask("hi")
    assert answer.tools_used == ("meet", "meet", "meet")
    assert [text for role, text in model.prompts[1].said if role == "tool"] == [
        "a was here",
        "b was here",
        "c was here",
    ]


async def test_a_tool_that_fails_is_told_to_the_model(house):
    @tool(Effect.READ)
    async def trip() -> str:
        """Fails."""
        raise everloop.ToolError("there is a hole in the floor")

    @tool(Effect.READ)
    async def fall() -> str:
        """Fails worse."""
        return {}["nothing"]

    model = ScriptedModel([Calls(Call("trip"), Call("fall")), Say("ouch")])
    async with house(model, tools=[trip, fall]) as agent:
        assert (await agent.ask("walk")).content == "ouch"
    results = [text for role, text in model.prompts[1].said if role == "tool"]
    assert results == ["Error: there is a hole in the floor", "Error: KeyError: 'nothing'"]


async def test_a_tool_that_takes_too_long_is_ended(house):
    @tool(Effect.READ, seconds=0.01)
    async def sleep() -> str:
        """Sleeps."""
        await asyncio.Event().wait()
        return "never"

    model = ScriptedModel([Call("sleep"), Say("tired")])
    async with house(model, tools=[sleep]) as agent:
        await agent.ask("go to bed")
    assert model.prompts[1].said[-1] == ("tool", "Error: sleep did not finish within 0.01 s")


async def test_a_long_result_is_shortened_and_the_whole_can_be_read(house):
    @tool(Effect.READ)
    async def recite() -> str:
        """Says a lot."""
        return "start " + "x" * 20_000 + " end"

    def second(shown):
        ref = shown.said[-1][1].split('path="')[1].split('"')[0]
        return Call("read_file", {"path": ref, "column": 20_000})

    script = [Call("recite"), second, Say("read")]
    model = ScriptedModel(
        lambda shown: script[shown.step](shown) if callable(script[shown.step]) else script[shown.step]
    )
    async with house(model, tools=[recite]) as agent:
        await agent.ask("recite")
        stored = [entry for entry in await entries(agent) if isinstance(entry, log.CallReturned)]
    short, whole = stored
    assert len(short.text) <= 8000
    assert short.text.startswith("start xxx")
    assert short.text.endswith("xxx end")
    assert short.file.startswith("file:")
    assert whole.text.startswith("xxxxxxx end")


async def test_at_the_step_cap_the_model_writes_up(house):
    model = ScriptedModel([Call("list_dir"), Call("list_dir"), Say("did two things")])
    settings = {"agents": {"defaults": {"max_tool_iterations": 2}}}
    async with house(model, settings=settings) as agent:
        assert (await agent.ask("go")).content == "did two things"
    assert [bool(shown.tools) for shown in model.prompts] == [True, True, False]
    assert "used all the steps" in model.prompts[2].tail


async def test_a_failed_model_call_is_a_plain_sentence_with_an_error_id(house):
    model = ScriptedModel([Fail(KeyRefused("The key was refused.")), Say("now it works")])
    async with house(model) as agent:
        with pytest.raises(TurnFailed, match=r"The key was refused\. \(error \w+-\d+\)") as failed:
            await agent.ask("hi")
        assert failed.value.reason == "key"
        assert (await agent.ask("again")).content == "now it works"


async def test_an_empty_answer_is_asked_for_once_more(house):
    model = ScriptedModel([Empty(), Say("here")])
    async with house(model) as agent:
        assert (await agent.ask("hi")).content == "here"


async def test_what_was_said_before_a_fault_of_the_model_stays_in_the_conversation(house):
    model = ScriptedModel([[Say("half"), Fail(HostFailed("broke"))], Say("whole")])
    async with house(model) as agent:
        with pytest.raises(TurnFailed, match="broke"):
            await agent.ask("hi")
        assert (await agent.ask("hi")).content == "whole"
    assert model.prompts[1].said[1][1].startswith("half\n\n[broke (error ")


async def test_a_message_during_tool_calls_steers_the_turn(house, gated):
    model = ScriptedModel([Call("hold"), Say("as you wish")])
    async with house(model, tools=[gated.make("hold", Effect.UNSAFE)]) as agent:
        first = asyncio.create_task(agent.ask("do it", attended=True))
        await gated.begun.wait()
        await agent.tell(letter("but gently", "e2"))
        second = asyncio.create_task(agent.ask("but gently", event="e2"))
        gated.gate.set()
        answers = [await first, await second]
    assert [answer.content for answer in answers] == ["as you wish", "as you wish"]
    assert model.prompts[1].said[-2:] == [("tool", "hold done"), ("user", "but gently")]


async def test_someone_elses_message_waits_for_its_own_turn(house, gated):
    model = ScriptedModel([Call("hold"), Say("done for the owner"), Say("done for bob")])
    async with house(model, tools=[gated.make("hold", Effect.UNSAFE)]) as agent:
        first = asyncio.create_task(agent.ask("do it"))
        await gated.begun.wait()
        await agent.tell(spoken("me too", "api:default", "e2", "bob", attended=False, commands=True))
        second = asyncio.create_task(agent.ask("me too", event="e2", author="bob"))
        gated.gate.set()
        assert ((await first).content, (await second).content) == ("done for the owner", "done for bob")
    assert "me too" not in str(model.prompts[1].said)


async def test_a_message_while_the_model_answers_gets_its_own_answer(house):
    gate = asyncio.Event()
    model = ScriptedModel([[Say("to "), Wait(gate), Say("one")], Say("to two")])
    async with house(model) as agent:
        first = asyncio.create_task(agent.ask("one"))
        await model.called(1)
        await agent.tell(letter("two", "e2"))
        second = asyncio.create_task(agent.ask("two", event="e2"))
        gate.set()
        assert ((await first).content, (await second).content) == ("to one", "to two")
    assert [text for _, text in model.prompts[1].said] == ["one", "to one", "two"]


async def test_stop_ends_a_model_call_and_what_was_said_by_then_stays(house):
    gate = asyncio.Event()
    model = ScriptedModel([[Say("half"), Wait(gate)], Say("next")])
    async with house(model) as agent:
        asking = asyncio.create_task(agent.ask("long story"))
        await model.called(1)
        assert (await agent.ask("/stop")).content == "⏹ Stopped 1 task(s)."
        with pytest.raises(TurnFailed, match="stopped; what was said and done so far stays"):
            await asking
        assert (await agent.ask("go on")).content == "next"
        assert (await entries(agent))[2] == Stopped("owner", "half")


async def test_stop_gives_every_open_call_a_result(house, gated):
    model = ScriptedModel([Calls(Call("hold"), Call("list_dir")), Say("fine")])
    async with house(model, tools=[gated.make("hold", Effect.UNSAFE)]) as agent:
        asking = asyncio.create_task(agent.ask("do it"))
        await gated.begun.wait()
        await agent.ask("/stop")
        with pytest.raises(TurnFailed):
            await asking
        await agent.ask("what happened?")
    results = [text for role, text in model.prompts[1].said if role == "tool"]
    assert results == [
        "operation cancelled by user; it had already started and may have taken effect",
        "operation cancelled by user",
    ]


async def test_with_nothing_running_stop_says_so_and_the_next_turn_is_not_stopped(house):
    async with house(ScriptedModel([Say("hello")])) as agent:
        assert (await agent.ask("/stop")).content == "No active task to stop."
        assert (await agent.ask("hi")).content == "hello"


async def test_nothing_starts_after_a_stop_has_been_committed(house):
    """The stop is there before the driver has seen it: the start of the call is refused by the store."""
    ran = []

    @tool(Effect.UNSAFE)
    async def act() -> str:
        """Acts."""
        ran.append(1)
        return "acted"

    gate = asyncio.Event()
    model = ScriptedModel([[Call("act"), Wait(gate)]])
    async with house(model, tools=[act]) as agent:
        asking = asyncio.create_task(agent.ask("act"))
        await model.called(1)
        row = await agent.store.session("api:default")
        await agent.store.receive(Inbound(Address("api", "default"), "s1", Stop("owner")))  # no hint on the bus
        gate.set()
        with pytest.raises(TurnFailed, match="stopped"):
            await asking
        assert ran == []
        assert "CallStarted" not in kinds(await agent.store.read(row.id))


async def test_new_begins_a_new_thread_and_the_old_one_stays(house):
    model = ScriptedModel([Say("one"), Say("two")])
    async with house(model) as agent:
        await agent.ask("first")
        before = await agent.store.session("api:default")
        assert (await agent.ask("/new")).content == "New session started."
        await agent.ask("second")
        assert [text for _, text in model.prompts[1].said] == ["second"]
        assert kinds(await agent.store.read(before.id)) == ["UserSaid", "ModelCalled", "ModelSaid"]


async def test_help_lists_the_commands(house):
    async with house(ScriptedModel([])) as agent:
        assert (await agent.ask("/help")).content == (
            "everloop commands:\n/new — Start a new conversation\n/stop — Stop the current task\n"
            "/model [NAME] — Show the model that answers here, or choose another\n"
            "/persona [NAME] — Show who the agent is here, or choose another for this conversation\n"
            "/skill [NAME …] — Show what the agent knows how to do; with a name, have it do so: /skill NAME and "
            "what is to be done\n"
            "/mcp [list | show SERVER | prompt SERVER [NAME KEY=VALUE …] | answer [ID ANSWER]] — Show the MCP servers "
            "that you may use, and their tools; begin with a prompt of one; answer what one asks\n"
            "/compact — Let a summary stand for what was said before\n"
            "/approve [NAME [no | for TIME | here | host | argv PATTERN | …]] — Show what waits for permission; "
            "allow it, or with `no` deny it. Further words allow the like too: `for 1h`, `runs 5`, "
            "`here` (this conversation), `host [HOST]`, `folder [PATH]`, `any` (of the tool), `argv PATTERN` (last)\n"
            "/deny [NAME] — Deny what waits for permission, as /approve NAME no does; alone, show what waits\n"
            "/pair [CODE [ROLE]] — Show who waits to be let in; let them in by their code, as user or guest\n"
            "/link [CODE] — Be known by another account too: a code, to be said from there as /link CODE\n"
            "/undo — Take the last turn back: what was said, and what it did to files\n"
            "/session [WORD …] — Show where you are; /session help tells what else there is\n"
            "/resume [ID] — Show your conversations; with an id, go on with that one\n"
            "/fork [SEQ] — Go on in a copy of this conversation, from its end or after an entry\n"
            "/tree [ID] — Show what this conversation has branched from, and its branches; with an id, go on with that "
            "one\n"
            "/memory [WORD …] — Show what is remembered here; /memory help tells what else there is\n"
            "/keys […] — Show which keys and credentials of your own are kept; they are given in the page, never in a "
            "chat\n"
            "/budget — Show what you may spend, and have spent\n"
            "/usage [BY] — Show what this conversation has used and cost; with a word, what you have used in 30 days, "
            "by `day`, `model`, `channel`, `job` or `tool` (for administrators: what all have, also by `person`)\n"
            "/bg [TEXT] — Let what runs here go on in the background, and go on talking; with a text, begin with that "
            "there\n"
            "/fg [N] — Go on here with a turn from the background, by its number in /tasks; alone: with the latest\n"
            "/tasks [show N | stop N] — Show what is worked at in the background and by sub-agents; what one has done; "
            "end one\n"
            "/kill N — End the work at a task, by its number in /tasks\n"
            "/status — Show who answers here, how full the conversation is, what it cost; tasks, schedules, channels\n"
            "/cron [WORD …] — Show your schedules; `/cron help` tells how one is made\n"
            "/help — Show available commands"
        )


@pytest.mark.parametrize(
    ("text", "why"),
    [("   ", "empty"), ("x" * 200_001, "at most 200,000 are taken"), ("a\ud800b", "not valid UTF-8")],
)
async def test_a_message_that_cannot_be_taken_is_refused_with_a_sentence(house, text, why):
    async with house(ScriptedModel([])) as agent:
        with pytest.raises(MailRefused, match=why):
            await agent.ask(text)


async def test_a_thread_that_is_too_long_for_the_model_is_a_plain_sentence(house):
    settings = {"agents": {"defaults": {"context_window": 1000}}}
    async with house(ScriptedModel([]), settings=settings) as agent:
        with pytest.raises(TurnFailed, match="too long") as failed:
            await agent.ask("x" * 10_000)
        assert failed.value.reason == "context"


async def test_an_approval_is_asked_answered_and_the_call_runs_once(house, gated):
    gated.gate.set()
    channel = RecordingChannel("api")
    model = ScriptedModel([Call("act"), Say("done")])
    async with house(model, tools=[gated.make("act", Effect.UNSAFE, guarded=True)], channels=[channel]) as agent:
        asking = asyncio.create_task(agent.ask("act", attended=True))
        await channel.sent(1)
        name = channel.sends[0].approval
        assert (channel.sends[0].kind, channel.sends[0].text) == (
            "question",
            f"May I run act\n(risk: medium, changes something)\nAnswer with /approve {name} or /approve {name} no.\n"
            "To allow the like too, add: for 8h (how long; else an hour); here (only in this conversation); "
            "any (anything of act). Without any it is the same call again.",
        )
        row = await agent.store.session("api:default")
        assert (row.state, row.holder, gated.runs) == ("waiting", "", 0)
        await agent.decide(name, True)
        assert (await asking).content == "done"
        assert gated.runs == 1


async def test_going_on_withdraws_an_approval(house, gated):
    channel = RecordingChannel("api")
    model = ScriptedModel([Call("act"), Say("never mind then")])
    async with house(model, tools=[gated.make("act", Effect.UNSAFE, guarded=True)], channels=[channel]) as agent:
        asking = asyncio.create_task(agent.ask("act", attended=True))
        await channel.sent(1)
        going_on = await agent.ask("leave it", attended=True)
        assert going_on.content == (await asking).content == "never mind then"
    assert model.prompts[1].said[-2:] == [("tool", "not approved; the user went on"), ("user", "leave it")]
    assert gated.runs == 0


async def test_an_approval_survives_a_restart(house, gated):
    gated.gate.set()
    act = gated.make("act", Effect.UNSAFE, guarded=True)
    channel = RecordingChannel("api")
    async with house(ScriptedModel([Call("act")]), tools=[act], channels=[channel]) as agent:
        await agent.tell(letter("act", "e1"))
        await channel.sent(1)
    model = ScriptedModel([Say("done")])
    async with house(model, tools=[act], channels=[channel]) as agent:
        (waiting,) = await agent.approvals()
        await agent.decide(waiting.id, True)
        await channel.sent(2)
    assert gated.runs == 1
    assert channel.delivered[-1].text == "done"


async def test_a_clean_shutdown_in_the_middle_does_not_count_as_a_crash(house):
    gate = asyncio.Event()
    for _ in range(4):
        model = ScriptedModel([[Say("half"), Wait(gate)]])
        async with house(model, settings={"agents": {"shutdown_seconds": 0.0}}) as agent:
            await agent.tell(letter("hi", "e1"))
            await model.called(1)
    async with house(ScriptedModel([Say("at last")])) as agent:
        assert (await agent.ask("hi", event="e1")).content == "at last"
        assert "Resumed" not in kinds(await entries(agent))


async def test_a_shutdown_lets_the_running_step_finish(house, gated):
    model = ScriptedModel([Call("hold"), Say("never asked")])
    async with house(model, tools=[gated.make("hold", Effect.UNSAFE)]) as agent:
        await agent.tell(letter("do it", "e1"))
        await gated.begun.wait()
        asyncio.get_running_loop().call_soon(gated.gate.set)
    model = ScriptedModel([Say("done")])
    async with house(model, tools=[gated.make("hold", Effect.UNSAFE)]) as agent:
        assert (await agent.ask("do it", event="e1")).content == "done"
    assert model.prompts[0].said[-1] == ("tool", "hold done")
    assert gated.runs == 1


@pytest.mark.parametrize("cap", [1, 2, 4])
async def test_threads_run_side_by_side_up_to_the_cap(house, cap):
    running, most, full = 0, 0, asyncio.Event()

    @tool(Effect.UNSAFE)
    async def hold() -> str:
        """Wait until as many as may have come."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == cap:
            full.set()
        async with asyncio.timeout(60):
            await full.wait()
        running -= 1
        return "held"

    model = ScriptedModel(lambda shown: Call("hold") if shown.step == 0 else Say(shown.said[-1][1]))
    async with house(model, tools=[hold], settings={"agents": {"max_concurrent_turns": cap}}) as agent:
        answers = await asyncio.gather(*(agent.ask("go", f"api:{n}") for n in range(5)))
    assert ([answer.content for answer in answers], most) == (["held"] * 5, cap)


async def test_a_turn_is_streamed_and_ends_with_its_answer(house):
    model = ScriptedModel([Call("list_dir"), [Say(["Hel", "lo"])]])
    async with house(model) as agent:
        seen = [event async for event in agent.stream("hi")]
    names = [event.name for event in seen if event.name not in ("stream_chunk", "metrics")]
    assert names == [
        *("thinking_started", "stream_start", "stream_end", "tool_call", "tool_result"),
        *("stream_start", "stream_end", "thinking_finished", "answer"),
    ]
    assert "".join(event.data["text"] for event in seen if event.name == "stream_chunk") == "Hello"
    assert seen[-1].data["answer"].content == "Hello"


async def test_whoever_waits_behind_another_turn_sees_their_own_as_it_comes(house):
    """The turn before ends in the same thread, and is not theirs."""
    gates = {"one": asyncio.Event(), "two": asyncio.Event()}
    model = ScriptedModel(lambda shown: [Say(f"{shown.asked}: half "), Wait(gates[shown.asked]), Say("whole")])
    pieces = list[str]()
    async with asyncio.timeout(60), house(model, settings={"agents": {"defaults": {"steering": "queue"}}}) as agent:
        first = asyncio.ensure_future(agent.ask("one"))
        await model.called(1)
        async with aclosing(agent.watch(spoken("two", "api:default", "two", ""))) as watched:
            async for event in (event async for events in watched for event in events):
                if isinstance(event, LetterTaken):
                    gates["one"].set()
                elif isinstance(event, AnswerPiece):
                    pieces.append(event.text)
                    gates["two"].set() if event.text == "two: half " else None
        assert (await first).content == "one: half whole"
    assert pieces[-2:] == ["two: half ", "whole"]


async def test_an_answer_that_nobody_waited_for_is_there_at_the_next_opening(house):
    model = ScriptedModel([Say("hello")])
    async with house(model) as agent:
        receipt = await agent.tell(letter("hi", "e1"))
        await agent.finish("api:default")
        assert [outbound.text for outbound in await agent.unshown("api:default")] == ["hello"]
    async with house(ScriptedModel([])) as agent:
        (outbound,) = await agent.unshown("api:default")
        assert (outbound.text, outbound.mails) == ("hello", (receipt.id,))
        await agent.acknowledge([outbound.key])
        assert await agent.unshown("api:default") == []


async def test_a_known_thread_takes_a_letter_in_one_commit_and_still_only_once(house):
    model = ScriptedModel(lambda shown: Say(f"answer to {shown.asked}"))
    async with house(model) as agent:
        await agent.ask("one")
        answers = [await agent.ask("two", event="e2"), await agent.ask("two", event="e2")]
        assert answers[0] == answers[1]
        found = await entries(agent)
        assert [entry.mail for entry in found if isinstance(entry, log.UserSaid)] == [1, 2]
        assert kinds(found) == ["UserSaid", "ModelCalled", "ModelSaid"] * 2


async def test_a_known_thread_that_was_left_by_new_takes_no_letter(house):
    model = ScriptedModel(lambda shown: Say("fine"))
    async with house(model) as agent:
        await agent.ask("one")
        await agent.store.command(letter("/new", "n1"), "new", "New session started.")  # as another process would
        await agent.ask("two")
        assert model.prompts[1].said == [("user", "two")]


async def test_a_known_thread_with_waiting_mail_takes_letters_in_order(house):
    model = ScriptedModel(lambda shown: Say(f"answer to {shown.asked}"))
    async with house(model) as agent:
        await agent.ask("one")
        await agent.store.receive(letter("two", "e2"))  # as another process would
        answer = await agent.ask("three")
        assert answer.content == "answer to three"
        assert [text for role, text in model.prompts[-1].said if role == "user"] == ["one", "two", "three"]


async def test_a_known_thread_that_another_process_has_moved_on_is_read_again(tmp_path, house):
    def answer(shown):
        return Say(f"answer to {shown.asked}")

    model = ScriptedModel(answer)  # of both: what goes through the inbox may be taken by either
    async with house(model) as here, everloop.open(home=tmp_path / "home", provider=model) as there:
        await here.ask("one")
        await there.ask("two")
        await here.ask("three")
    assert [text for _, text in model.prompts[-1].said] == ["one", "answer to one", "two", "answer to two", "three"]


async def test_an_overlong_letter_to_a_known_thread_ends_its_turn_with_a_sentence(house):
    settings = {"agents": {"defaults": {"context_window": 1000}}}
    async with house(ScriptedModel([Say("short")]), settings=settings) as agent:
        await agent.ask("one")
        with pytest.raises(TurnFailed, match="too long"):
            await agent.ask("x" * 10_000)


async def test_how_a_call_leads_out_is_noted_with_it(house):
    @tool(Effect.READ, exit="address")
    async def peek(url: str) -> str:
        """Look at it."""
        return "seen"

    @tool(Effect.READ)
    async def look(url: str) -> str:
        """Look at it."""
        return "seen"

    calls = Calls(Call("peek", {"url": "https://a.example"}), Call("look", {"url": "https://a.example"}))
    async with house(ScriptedModel([calls, Say("done")]), tools=[peek, look]) as agent:
        await agent.ask("go")
        [said] = [entry for entry in await entries(agent) if isinstance(entry, log.ModelSaid) and entry.calls]
    assert [(call.name, call.exit) for call in said.calls] == [("peek", "address"), ("look", "")]
