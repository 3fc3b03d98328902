"""A turn goes on in the background of its chat as it ran; what comes of it is told there once, and known from then."""

import asyncio
from itertools import count

import pytest

import everloop
from everloop import Role
from everloop.core.log import AgentTold, ModelSaid, UserSaid
from everloop.core.message import text_of
from everloop.ports.events import TurnMoved
from everloop.ports.tasks import TaskRow
from everloop.testing import Call, RecordingChannel, Say, ScriptedModel, Wait
from tests.runtime.conftest import letter
from tests.runtime.test_subagents import blast, log_of, spawn
from tests.runtime.test_subagents import tasks_in as tasks_at

pytestmark = pytest.mark.usefixtures("sent_as_well")
CHAT = "fake:home"
_EVENTS = count()


def by_last(**scripts: list) -> ScriptedModel:
    """One that answers by the first word of what a person has said last."""
    left = {word: iter(script) for word, script in scripts.items()}

    def answer(shown):
        words = [text.split()[0] for who, text in shown.said if who == "user" and text.split()[0] in left]
        return next(left[words[-1]])

    return ScriptedModel(answer)


async def told_in(agent: everloop.Agent, session: str = CHAT) -> list[str]:
    """What stands in the log of the chat, as far as somebody has said it."""
    found = []
    for entry in await log_of(agent, session):
        match entry:
            case UserSaid(parts=parts):
                found.append(f"user: {text_of(parts)}")
            case ModelSaid(text=text) | AgentTold(text=text):
                found.append(text)
    return found


async def tasks_in(agent: everloop.Agent, session: str = CHAT) -> list[TaskRow]:
    return await tasks_at(agent, session)


async def until_over(agent: everloop.Agent, session: str = CHAT) -> None:
    async with asyncio.timeout(60):
        while any(task.is_open for task in await tasks_in(agent, session)):  # noqa: ASYNC110  the store knows
            await asyncio.sleep(0.02)


async def until_told(channel: RecordingChannel, text: str) -> None:
    for times in range(1, 20):
        await channel.sent(times)
        if channel.sends[-1].text == text:
            return


def ask(agent: everloop.Agent, text: str, session: str = CHAT) -> "asyncio.Future[everloop.Answer]":
    return asyncio.ensure_future(agent.ask(text, session, author="owner"))


async def say(agent: everloop.Agent, text: str, session: str = CHAT, author: str = "owner") -> str:
    """As a channel brings it: nobody waits for the answer. What a command is answered with."""
    receipt = await agent.tell(letter(text, f"e{next(_EVENTS)}", author, session))
    return receipt.reply or ""


class TestSending:
    async def test_what_runs_goes_on_and_the_chat_is_free(self, house):
        gate, channel = asyncio.Event(), RecordingChannel("fake")
        model = by_last(
            hello=[Say("Hi.")], dig=[(Wait(gate), Say("gold"))], meanwhile=[Say("Sure.")], what=[Say("Gold!")]
        )
        async with house(model, channels=[channel]) as agent:
            await ask(agent, "hello")
            await say(agent, "dig deep")
            await model.called(2)
            sent = await say(agent, "/bg")
            meanwhile = await ask(agent, "meanwhile a question")
            gate.set()
            await channel.sent(4)
            later = await ask(agent, "what did you find?")
            log = await told_in(agent)
        assert sent.startswith("This goes on in the background as task 1; you are told here when it is done.")
        assert meanwhile.content == "Sure."
        assert later.content == "Gold!"
        assert "Task 1 is done:\n\ngold" in [each.text for each in channel.sends]
        assert log == [
            "user: hello",
            "Hi.",
            "user: meanwhile a question",
            "Sure.",
            "Task 1 is done:\n\ngold",
            "user: what did you find?",
            "Gold!",
        ]
        assert len(model.prompts) == 4  # nobody was asked to tell it
        assert "task 1 in the background, where it was asked: “dig deep”" in model.prompts[-1].said[-3][1]

    async def test_it_is_told_once_and_no_call_is_made_again(self, house):
        gate, channel = asyncio.Event(), RecordingChannel("fake")
        model = by_last(dig=[(Wait(gate), Say("gold"))])
        async with house(model, channels=[channel]) as agent:
            await say(agent, "dig deep")
            await model.called(1)
            await say(agent, "/bg")
            gate.set()
            await until_over(agent)
            await channel.sent(2)
        assert [each.text.partition(";")[0] for each in channel.sends] == [
            "This goes on in the background as task 1",
            "Task 1 is done:\n\ngold",
        ]
        assert len(model.prompts) == 1

    async def test_who_waits_for_the_answer_is_told_where_it_comes(self, house):
        gate, channel = asyncio.Event(), RecordingChannel("fake")
        model = by_last(hello=[Say("Hi.")], dig=[(Wait(gate), Say("gold"))])
        async with house(model, channels=[channel]) as agent:
            await ask(agent, "hello")
            asking = ask(agent, "dig deep")
            await model.called(2)
            await say(agent, "/bg")
            told = await asking
            gate.set()
            await until_told(channel, "Task 1 is done:\n\ngold")
        assert told.content == "This goes on in the background as task 1."

    async def test_a_turn_that_has_ended_is_not_sent(self, house):
        channel = RecordingChannel("fake")
        async with house(by_last(hello=[Say("Hi.")]), channels=[channel]) as agent:
            before = await say(agent, "/bg")
            await ask(agent, "hello")
            after = await say(agent, "/bg")
            tasks = await tasks_in(agent)
        assert (
            before
            == after
            == "Nothing runs here. /bg TEXT begins with something in the background; /tasks shows what there is."
        )
        assert tasks == []

    async def test_what_runs_and_what_waits_is_another_s(self, house):
        gate = asyncio.Event()
        model = by_last(dig=[(Wait(gate), Say("gold"))])
        async with house(model, roles={"web:una": Role.USER, "web:gus": Role.GUEST}) as agent:
            await say(agent, "dig deep", "api:default")
            await model.called(1)
            user = await say(agent, "/bg", "api:default", "web:una")
            guest = await say(agent, "/bg", "api:default", "web:gus")
            front = await say(agent, "/fg", "api:default", "web:gus")
            gate.set()
        assert user == "This is for owner to send to the background, who has asked for it."
        assert guest == "/bg is not for guests: it needs a user."
        assert front == "/fg is not for guests: it needs a user."

    async def test_two_at_once_are_one(self, house):
        gate, channel = asyncio.Event(), RecordingChannel("fake")
        model = by_last(dig=[(Wait(gate), Say("gold"))])
        async with house(model, channels=[channel]) as agent:
            await say(agent, "dig deep")
            await model.called(1)
            told = await asyncio.gather(say(agent, "/bg"), say(agent, "/bg"))
            gate.set()
            await channel.sent(3)
            tasks = await tasks_in(agent)
        assert ["as task 1;" in each for each in sorted(told)] == [False, True]
        assert min(told).startswith(("It has just ended", "Nothing runs here."))
        assert [(task.title, task.stage, task.number) for task in tasks] == [("dig deep", "done", 1)]

    async def test_the_numbers_are_one_row_with_those_of_sub_agents(self, house):
        gates = [asyncio.Event() for _ in range(3)]
        model = by_last(
            plan=[spawn("look around", wait=True), (Wait(gates[0]), Say("planned"))],
            look=[Say("seen")],
            dig=[(Wait(gates[1]), Say("gold"))],
        )
        async with house(model) as agent:
            await say(agent, "plan it", "api:default")
            await model.called(3)
            first = await say(agent, "/bg", "api:default")
            await say(agent, "dig deep", "api:default")
            await model.called(4)
            second = await say(agent, "/bg", "api:default")
            told = await say(agent, "/tasks", "api:default")
            status = await say(agent, "/status", "api:default")
            shown = await say(agent, "/tasks show 3", "api:default")
            for gate in gates:
                gate.set()
            await until_over(agent, "api:default")
        assert ("as task 2;" in first, "as task 3;" in second) == (True, True)
        assert [line.partition(",")[0] for line in told.splitlines()[:3]] == [
            "1. look around — done",
            "2. plan it — running",
            "3. dig deep — running",
        ]
        assert "Tasks: 2 open, 3 in all." in status
        assert shown.splitlines()[1] == "user: dig deep"

    async def test_what_a_turn_waits_for_comes_back_to_it(self, house):
        gate, channel = asyncio.Event(), RecordingChannel("fake")
        model = by_last(
            find=[spawn("dig deep", wait=True), Say("They found gold.")],
            dig=[(Wait(gate), Say("gold"))],
            hey=[Say("Yes?")],
        )
        async with house(model, channels=[channel]) as agent:
            await say(agent, "find gold")
            await model.called(2)
            await say(agent, "/bg")
            hey = await ask(agent, "hey")
            gate.set()
            await channel.sent(3)
            log = await told_in(agent)
        assert hey.content == "Yes?"
        assert log == ["user: hey", "Yes?", "Task 2 is done:\n\nThey found gold."]

    async def test_a_letter_that_no_turn_has_taken_yet_goes_with_it(self, house):
        gate, channel = asyncio.Event(), RecordingChannel("fake")
        model = by_last(a=[(Wait(gate), Say("A"))])
        async with house(model, channels=[channel]) as agent:
            await agent.store.receive(letter("a task", "early", "owner", CHAT))
            told = await say(agent, "/bg")
            gate.set()
            await channel.sent(2)
        assert "as task 1;" in told
        assert channel.sends[-1].text == "Task 1 is done:\n\nA"


class TestBeginning:
    async def test_a_text_begins_a_turn_there_and_the_chat_is_free(self, house):
        gate, channel = asyncio.Event(), RecordingChannel("fake")
        model = by_last(hello=[Say("Hi.")], dig=[(Wait(gate), Say("gold"))], hey=[Say("Yes?")])
        async with house(model, channels=[channel]) as agent:
            await ask(agent, "hello")
            told = await say(agent, "/bg dig deep\nand wide")
            hey = await ask(agent, "hey")
            gate.set()
            await channel.sent(4)
            log = await told_in(agent)
            (task,) = await tasks_in(agent)
        assert told.startswith("Task 1 has begun in the background")
        assert hey.content == "Yes?"
        assert log == ["user: hello", "Hi.", "user: hey", "Yes?", "Task 1 is done:\n\ngold"]
        (dug,) = [each.said for each in model.prompts if each.said[-1][1].startswith("dig")]
        assert dug == [("user", "hello"), ("assistant", "Hi."), ("user", "dig deep\nand wide")]
        assert (task.title, task.steps) == ("dig deep", 1)

    async def test_it_can_be_the_first_thing_that_is_said(self, house):
        channel = RecordingChannel("fake")
        async with house(by_last(dig=[Say("gold")]), channels=[channel]) as agent:
            await say(agent, "/bg dig deep")
            await channel.sent(2)
            log = await told_in(agent)
        assert log == ["Task 1 is done:\n\ngold"]

    async def test_beside_a_turn_it_knows_what_was_said_before_that(self, house):
        gate, channel = asyncio.Event(), RecordingChannel("fake")
        model = by_last(hello=[Say("Hi.")], slow=[(Wait(gate), Say("slow"))], dig=[Say("gold")])
        async with house(model, channels=[channel]) as agent:
            await ask(agent, "hello")
            await say(agent, "slow work")
            await model.called(2)
            await say(agent, "/bg dig deep")
            await model.called(3)
            gate.set()
            await channel.sent(4)
            log = await told_in(agent)
        assert model.prompts[-1].said == [("user", "hello"), ("assistant", "Hi."), ("user", "dig deep")]
        assert log == ["user: hello", "Hi.", "user: slow work", "slow", "Task 1 is done:\n\ngold"]

    async def test_one_more_than_may_be_open_is_refused(self, house):
        gate = asyncio.Event()
        model = by_last(dig=[(Wait(gate), Say("gold"))])
        async with house(model, settings={"agents": {"tasks": {"open": 1}}}) as agent:
            await say(agent, "/bg dig deep", "api:default")
            told = await say(agent, "/bg dig deeper", "api:default")
            gate.set()
        assert told == "1 tasks are open already, as many as may be. /tasks shows them, /kill N ends one."

    async def test_one_that_fails_says_so(self, house):
        channel = RecordingChannel("fake")
        model = ScriptedModel(lambda shown: Say(""))
        async with house(model, channels=[channel]) as agent:
            await say(agent, "/bg dig deep")
            await channel.sent(2)
        assert channel.sends[-1].text.startswith("Task 1 has failed:\n\n")


class TestStopping:
    async def test_a_stop_in_the_chat_ends_all_of_it_and_says_how_many(self, house):
        gate, channel = asyncio.Event(), RecordingChannel("fake")
        model = by_last(
            a=[(Wait(gate), Say("A"))],
            b=[spawn("c", wait=True), Say("B")],
            c=[(Wait(gate), Say("C"))],
            d=[(Wait(gate), Say("D"))],
        )
        async with house(model, channels=[channel]) as agent:
            await say(agent, "/bg a")
            await say(agent, "/bg b")
            await say(agent, "d")
            await model.called(4)
            told = await say(agent, "/stop")
            await until_over(agent)
            stages = [task.stage for task in await tasks_in(agent)]
            texts = [each.text for each in channel.sends]
        assert told == "⏹ Stopped 4 task(s)."
        assert stages == ["stopped"] * 3
        assert not [text for text in texts if text.startswith("Task") and "begun" not in text]

    async def test_one_is_ended_and_others_go_on(self, house):
        gate, channel = asyncio.Event(), RecordingChannel("fake")
        model = by_last(a=[(Wait(gate), Say("A"))], b=[(Wait(gate), Say("B"))])
        async with house(model, channels=[channel]) as agent:
            await say(agent, "/bg a")
            await say(agent, "/bg b")
            await model.called(2)
            told = await say(agent, "/kill 1")
            gate.set()
            await channel.sent(4)
            stages = [task.stage for task in await tasks_in(agent)]
        assert (told, stages) == ("⏹ Task 1 is stopped.", ["stopped", "done"])
        assert channel.sends[-1].text == "Task 2 is done:\n\nB"


class TestTakingBack:
    async def test_one_that_runs_goes_on_here(self, house):
        gate, channel = asyncio.Event(), RecordingChannel("fake")
        model = by_last(dig=[(Wait(gate), Say("gold"))], hey=[Say("Yes?")], more=[Say("More gold.")])
        async with house(model, channels=[channel]) as agent:
            await say(agent, "dig deep")
            await model.called(1)
            await say(agent, "/bg")
            await ask(agent, "hey")
            front = (await agent.store.session(CHAT)).id
            told = await say(agent, "/fg 1")
            gate.set()
            await channel.sent(4)
            await ask(agent, "more")
            log, tasks = await told_in(agent), await tasks_in(agent)
            back = await say(agent, f"/session resume {front[:8]}")
            there = await told_in(agent)
        how_back = f"Back to what was here: /session resume {front[:8]}"
        assert told == f"Here we go on with task 1, “dig deep”. It still runs. {how_back}"
        assert channel.sends[3].text == "gold"  # as any answer
        assert (log, tasks) == (["user: dig deep", "gold", "user: more", "More gold."], [])
        assert "Here we go on with “hey”" in back
        assert there == ["user: hey", "Yes?"]

    async def test_one_that_is_over_is_gone_on_with(self, house):
        channel = RecordingChannel("fake")
        model = by_last(dig=[Say("gold")], more=[Say("More gold.")])
        async with house(model, channels=[channel]) as agent:
            await say(agent, "/bg dig deep")
            await channel.sent(2)
            told = await say(agent, "/fg")
            more = await ask(agent, "more")
            log = await told_in(agent)
        assert "It is over; go on with it as you like." in told
        assert (more.content, log) == ("More gold.", ["user: dig deep", "gold", "user: more", "More gold."])

    async def test_what_runs_here_goes_to_the_background_in_its_place(self, house):
        gates, channel = [asyncio.Event(), asyncio.Event()], RecordingChannel("fake")
        model = by_last(a=[(Wait(gates[0]), Say("A"))], b=[(Wait(gates[1]), Say("B"))])
        async with house(model, channels=[channel]) as agent:
            await say(agent, "/bg a")
            await say(agent, "b")
            await model.called(2)
            told = await say(agent, "/fg")
            listed = (await say(agent, "/tasks")).splitlines()[0]
            gates[0].set()
            await channel.sent(4)
            gates[1].set()
            await channel.sent(5)
            log = await told_in(agent)
        assert told.endswith("What ran here goes on in the background: /tasks shows it.")
        assert listed.startswith("2. b — running")
        assert [each.text for each in channel.sends[3:]] == ["A", "Task 2 is done:\n\nB"]
        assert log == ["user: a", "A", "Task 2 is done:\n\nB"]

    @pytest.mark.parametrize(
        ("typed", "told"),
        [
            ("/fg", "Nothing of this chat is in the background."),
            ("/fg 7", "There is no task '7' in the background of this chat."),
            ("/fg x", "There is no task 'x' in the background of this chat."),
            ("/fg ²", "There is no task '²' in the background of this chat."),
            ("/fg 1", "Task 1 is a sub-agent's, who works alone."),
        ],
    )
    async def test_a_number_that_there_is_not_is_told(self, house, typed: str, told: str):
        model = by_last(find=[spawn("dig", wait=True), Say("done")], dig=[Say("gold")])
        async with house(model) as agent:
            await ask(agent, "find it", "api:default")
            assert (await say(agent, typed, "api:default")).startswith(told)

    async def test_it_stays_in_the_background_of_the_chat_whatever_that_turns_to(self, house):
        gate, channel = asyncio.Event(), RecordingChannel("fake")
        model = by_last(dig=[(Wait(gate), Say("gold"))], hey=[Say("Yes?"), Say("Yes!")])
        async with house(model, channels=[channel]) as agent:
            await say(agent, "/bg dig deep")
            await ask(agent, "hey")
            numbers = []
            for typed in ("/new", "/tasks", "hey", "/session fork", "/undo"):
                await (ask(agent, typed) if typed == "hey" else say(agent, typed))
                numbers.append([task.number for task in await tasks_in(agent)])
            gate.set()
            await until_told(channel, "Task 1 is done:\n\ngold")
        assert numbers == [[1]] * 5


class TestAsking:
    async def test_a_person_is_asked_in_the_chat_and_what_is_said_there_withdraws_nothing(self, house):
        channel = RecordingChannel("fake")
        model = by_last(run=[Call("blast"), Say("ran")], hey=[Say("Yes?")])
        async with house(model, channels=[channel], tools=[blast]) as agent:
            await say(agent, "/bg run it")
            await channel.sent(2)
            (waiting,) = await agent.approvals(CHAT)
            await ask(agent, "hey")
            told = await say(agent, f"/approve {waiting.id} no")
            await channel.sent(5)
        assert "is not allowed" in told
        assert channel.sends[-1].text == "Task 1 is done:\n\nran"


class TestEvents:
    async def test_who_watches_is_told_where_it_is(self, house):
        gate = asyncio.Event()
        model = by_last(dig=[(Wait(gate), Say("gold"))])
        async with house(model) as agent:
            await say(agent, "dig deep", "api:default")
            await model.called(1)
            thread = (await agent.store.session("api:default")).id
            with agent.events() as feed:
                await say(agent, "/bg", "api:default")
                await say(agent, "/fg", "api:default")
                gate.set()
                moves = []
                while len(moves) < 2:
                    moves += [event for event in await feed.next_ones() if isinstance(event, TurnMoved)]
        assert [(each.thread == thread, each.number, each.session) for each in moves] == [
            (True, 1, "api:default"),
            (True, 0, "api:default"),
        ]
        assert (moves[0].front == thread, moves[1].front == thread) == (False, True)


class TestDeleting:
    async def test_it_goes_with_the_conversation_that_is_in_front_of_it(self, house):
        channel = RecordingChannel("fake")
        model = by_last(hello=[Say("Hi.")], dig=[Say("canary gold")])
        async with house(model, channels=[channel]) as agent:
            await ask(agent, "hello")
            await say(agent, "/bg dig deep")
            await channel.sent(3)
            (task,) = await tasks_in(agent)
            front = (await agent.store.session(CHAT)).id
            told = await say(agent, f"/session delete {front}")
            left = await agent.store.named(task.thread)
        assert (told, left) == ("This conversation is deleted for good.", [])
