"""Which messages of a channel are answered: decided before anything is kept, and before anything costs money."""

import asyncio

import pytest

from everloop.core.people import Role
from everloop.ports.channel import Delivered, Incoming
from everloop.ports.directory import Person
from everloop.ports.policy import ChannelPolicy, ChatPolicy
from everloop.runtime.admission import BLOCKED, UNKNOWN
from everloop.runtime.policy import (
    A_BOT,
    BOTS_ALONE,
    MOST_OF_BOTS,
    NOT_FOR_US,
    NOT_LISTED,
    OFF,
    TOO_MANY,
    refusal,
)
from everloop.testing import Say, ScriptedModel
from tests.runtime.standing_clock import StandingClock
from tests.runtime.test_reception import Heard, incoming

HI, NAMED, REPLY = {"text": "hi"}, {"mentioned": True}, {"replies": True}
COMMAND, OURS, ANSWER = {"text": "/help"}, {"text": "/help", "mentioned": True}, {"text": "/approve ab12cd"}


def policy(**said) -> dict:
    return {"channels": {"fake": said}}


def told(channel: Heard) -> list[str]:
    return [part.text for part in channel.parts]


def answering() -> ScriptedModel:
    return ScriptedModel(lambda shown: Say(f"you said {shown.asked}"))


@pytest.mark.parametrize(
    "rule, answered",
    [
        ("mention", [NAMED, REPLY, OURS, ANSWER]),
        ("reply", [REPLY, OURS, ANSWER]),
        ("always", [HI, NAMED, REPLY, COMMAND, OURS, ANSWER]),
        ("never", []),
    ],
)
def test_in_a_group_what_is_answered_is_what_its_rule_says(rule, answered):
    every = [HI, NAMED, REPLY, COMMAND, OURS, ANSWER, {"text": "/approve"}]
    answered = [*answered, every[-1]] if rule == "always" else answered
    whys = [refusal(ChannelPolicy(groups=rule), "always", incoming("e", direct=False, **each)) for each in every]
    assert whys == ["" if each in answered else NOT_FOR_US for each in every]
    assert [refusal(ChannelPolicy(groups=rule), "always", incoming("e", **each)) for each in every] == [""] * 7


def test_without_a_rule_it_is_what_is_usual_for_the_channel():
    chatter = incoming("e", direct=False)
    assert [refusal(ChannelPolicy(), usual, chatter) for usual in ("mention", "always")] == [NOT_FOR_US, ""]


def test_a_chat_may_have_rules_of_its_own():
    rules = ChannelPolicy(
        groups="never",
        allow_from=("anna",),
        chats={
            "open": ChatPolicy(rule="always", allow_from=()),
            "few": ChatPolicy(rule="always", allow_from=("bob",)),
            "closed": ChatPolicy(off=True),
        },
    )

    def why(chat: str, account: str, **more) -> str:
        return refusal(rules, "mention", incoming("e", chat=chat, account=account, direct=False, **more))

    assert [why("open", who) for who in ("anna", "bob")] == ["", ""]
    assert [why("few", who) for who in ("anna", "bob")] == [NOT_LISTED, ""]
    assert [why("closed", "anna"), why("any", "anna", mentioned=True), why("any", "bob")] == [
        OFF,
        NOT_FOR_US,
        NOT_LISTED,
    ]


def test_names_that_look_like_an_account_on_the_list_are_not_it():
    rules = ChannelPolicy(allow_from=("123",))
    accounts = ["123", "0123", "123 ", "１２３", "1234", "12", "fake:123", ""]
    assert [
        refusal(rules, "always", Incoming(event="e", chat="c", account=each, text="", name="123")) for each in accounts
    ] == ["" if each == "123" else NOT_LISTED for each in accounts]


async def test_what_is_not_for_us_is_not_kept_but_where_to_go_on_is(house):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel], settings=policy(groups="mention")) as agent:
        deliver = await channel.listens.get()
        chatter = incoming("e1", direct=False, text="between ourselves")
        assert await deliver(chatter, "41") == Delivered(refused=NOT_FOR_US)
        assert (await agent.store.resume("fake"), await agent.store.came("fake", "e1")) == ("41", False)
        assert await agent.store.session("fake:room") is None
        assert await deliver(incoming("e2", direct=False, text="@bot hello", mentioned=True)) == Delivered()
        await channel.sent(1)
    assert [prompt.messages[-1].text.partition("\n")[2] for prompt in model.prompts] == ["@bot hello"]


async def test_a_change_is_for_whom_the_message_was_also_where_it_names_nobody(house):
    channel, model, clock = Heard(), answering(), StandingClock()
    async with house(model, channels=[channel], settings=policy(groups="mention", gather=0.1), clock=clock):
        deliver = await channel.listens.get()
        await deliver(incoming("e1", direct=False, text="@bot hello", mentioned=True))
        assert await deliver(incoming("e2", direct=False, text="hello!", replaces="e1")) == Delivered()
        clock.time += 1
        await channel.sent(1)
    assert [prompt.messages[-1].text.partition("\n")[2] for prompt in model.prompts] == ["hello!"]


async def test_who_is_on_no_list_is_told_so_once_and_in_a_group_never(house):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel], settings=policy(allow_from=["bob"])) as agent:
        deliver = await channel.listens.get()
        came = [await deliver(incoming(f"e{n}", chat="anna", text="my secret")) for n in range(3)]
        came.append(await deliver(incoming("e4", direct=False, account="eve")))
        assert await deliver(incoming("e5", chat="bob", account="bob")) == Delivered()
        await channel.sent(2)
        kept = await agent.store.recent("fake", 100)
    assert came == [Delivered(), *[Delivered(refused=NOT_LISTED)] * 3]
    assert ["anna is not among them" in text for text in told(channel)] == [True, False]
    assert [(each.event, each.author, each.told) for each in kept] == [
        ("e0", "fake:anna", True),
        ("e5", "fake:bob", False),
    ]
    assert len(model.prompts) == 1


async def test_a_channel_may_treat_strangers_in_its_own_way(house):
    channel, model = Heard(), answering()
    settings = {**policy(strangers="ignore"), "users": {"strangers": "guest"}}
    async with house(model, channels=[channel, other := Named()], settings=settings):
        deliver, elsewhere = await channel.listens.get(), await other.listens.get()
        assert await deliver(incoming("e1")) == Delivered(refused=UNKNOWN)
        assert await elsewhere(incoming("e1")) == Delivered()
        await other.sent(1)


class Named(Heard):
    """Another channel than that of the settings."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "other"


async def test_who_is_on_the_list_needs_no_code(house):
    channel, model = Heard(), answering()
    settings = {**policy(allow_from=["anna"]), "users": {"strangers": "pair"}}
    async with house(model, channels=[channel], settings=settings):
        deliver = await channel.listens.get()
        assert await deliver(incoming("e1")) == Delivered()
        await channel.sent(1)
        assert await deliver(incoming("e2", account="eve", direct=False)) == Delivered(refused=NOT_LISTED)
    assert (told(channel), len(model.prompts)) == (["you said hi"], 1)


async def test_who_is_blocked_stays_so_whatever_list_they_are_on(house):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel], settings=policy(allow_from=["anna"])) as agent:
        await agent.store.introduce(Person(id="fake:anna", name="Anna", role=Role.USER, accounts=("fake:anna",)))
        await agent.store.change_person("fake:anna", blocked=True)
        deliver = await channel.listens.get()
        assert await deliver(incoming("e1")) == Delivered(refused=BLOCKED)
    assert model.prompts == []


@pytest.mark.parametrize(
    "rules, known",
    [({}, ["anna"]), ({"allow_from": ["anna", "bob", "eve"]}, ["anna", "bob"]), ({"allow_from": ["bob"]}, ["bob"])],
)
async def test_who_is_known_can_be_asked_before_they_have_said_anything(house, rules, known):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel], settings=policy(**rules)) as agent:
        for name in ("anna", "eve"):
            await agent.store.introduce(
                Person(id=f"fake:{name}", name=name, role=Role.USER, accounts=(f"fake:{name}",))
            )
        await agent.store.change_person("fake:eve", blocked=True)
        deliver = await channel.listens.get()
        assert [name for name in ("anna", "bob", "eve") if await deliver.knows(name)] == known


async def test_other_bots_are_not_heard_unless_they_are_named(house):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel], settings=policy(bots=["good"])):
        deliver = await channel.listens.get()
        assert await deliver(incoming("e1", account="bad", bot=True)) == Delivered(refused=A_BOT)
        assert await deliver(incoming("e2", account="good", bot=True, text="beep")) == Delivered()
        await channel.sent(1)
    assert told(channel) == ["you said beep"]


async def test_bots_that_answer_one_another_come_to_an_end_also_over_a_restart_and_go_on_after_a_person(house):
    async def beep(deliver, first: int, last: int) -> list[str]:
        said = [incoming(f"b{n}", account="good", bot=True, direct=False) for n in range(first, last)]
        return [(await deliver(each)).refused for each in said]

    settings = policy(bots=["good"])
    async with house(answering(), channels=[channel := Heard()], settings=settings):
        before = await beep(await channel.listens.get(), 0, MOST_OF_BOTS - 1)
    async with house(answering(), channels=[channel := Heard()], settings=settings):
        deliver = await channel.listens.get()
        after = await beep(deliver, MOST_OF_BOTS - 1, MOST_OF_BOTS + 2)
        await deliver(incoming("p1", direct=False))
        again = await beep(deliver, 90, 91)
    assert before == [""] * (MOST_OF_BOTS - 1)
    assert (after, again) == (["", BOTS_ALONE, BOTS_ALONE], [""])


async def test_who_writes_too_much_is_told_once_and_what_was_accepted_is_answered(house):
    channel, model, clock = Heard(), answering(), StandingClock()

    def slower() -> list[str]:
        return [text for text in told(channel) if "within a minute" in text]

    def asked() -> set[str]:
        return {message.text for prompt in model.prompts for message in prompt.messages if message.role == "user"}

    async with house(model, channels=[channel], settings=policy(per_minute=2), clock=clock):
        deliver = await channel.listens.get()
        came = []
        for n in range(5):
            came.append(await deliver(incoming(f"e{n}", chat="anna", text=f"line {n}")))
        again = await deliver(incoming("e0", chat="anna", text="line 0"))
        other = await deliver(incoming("o1", chat="bob", account="bob", text="me too"))
        clock.time += 61
        later = await deliver(incoming("e9", chat="anna", text="line 9"))
        while not (asked() >= {"line 9", "me too"} and slower()):  # noqa: ASYNC110  each chat has a turn of its own
            await asyncio.sleep(0.01)
    assert came == [Delivered(), Delivered(), Delivered(), *[Delivered(refused=TOO_MANY)] * 2]
    assert (again, other, later) == (Delivered(fresh=False), Delivered(), Delivered())
    assert slower() == [
        "You have sent 2 messages within a minute, and I take no more than that. What you wrote was not kept: say it "
        "again in 60 s."
    ]
    assert asked() == {"line 0", "line 1", "line 9", "me too"}


async def test_an_album_counts_as_one_message(house):
    channel = Heard()
    async with house(answering(), channels=[channel], settings=policy(per_minute=2)):
        deliver = await channel.listens.get()
        albums = [incoming(f"{name}{n}", album=name, direct=False) for name in ("a", "b", "c") for n in range(3)]
        came = [(await deliver(each)).refused for each in albums]
    assert came == [*[""] * 6, *[TOO_MANY] * 3]


async def test_changes_of_an_album_count_each_and_another_persons_album_of_that_name_is_another(house):
    channel, clock = Heard(), StandingClock()
    async with house(answering(), channels=[channel], settings=policy(per_minute=2, gather=5), clock=clock):
        deliver = await channel.listens.get()
        first = (await deliver(incoming("a0", album="a", direct=False))).refused
        edits = [incoming(f"a0/{n}", album="a", replaces="a0", direct=False) for n in range(3)]
        changed = [(await deliver(each)).refused for each in edits]
        others = [incoming(f"b{n}", album=f"a{n % 2}", direct=False, account="bob") for n in range(4)]
        bobs = [(await deliver(each)).refused for each in others]
        bobs_third = (await deliver(incoming("b9", album="a", direct=False, account="bob"))).refused
    assert (first, changed) == ("", ["", TOO_MANY, TOO_MANY])
    assert (bobs, bobs_third) == ([""] * 4, TOO_MANY)


async def test_a_restart_does_not_begin_to_count_anew(house):
    settings = policy(per_minute=3)
    async with house(answering(), channels=[channel := Heard()], settings=settings):
        deliver = await channel.listens.get()
        before = [(await deliver(incoming(f"e{n}", direct=False))).refused for n in range(2)]
    async with house(answering(), channels=[channel := Heard()], settings=settings):
        deliver = await channel.listens.get()
        after = [(await deliver(incoming(f"e{n}", direct=False))).refused for n in range(2, 5)]
    assert (before, after) == (["", ""], ["", TOO_MANY, TOO_MANY])


async def test_a_channel_takes_no_more_than_its_limit_of_all_together(house):
    channel = Heard()
    async with house(answering(), channels=[channel], settings=policy(per_minute_all=2)):
        deliver = await channel.listens.get()
        came = [(await deliver(incoming(f"e{n}", account=f"user{n}", direct=False))).refused for n in range(3)]
    assert came == ["", "", TOO_MANY]


async def test_who_has_written_too_much_can_still_stop_it_but_not_without_end(house):
    channel = Heard()
    async with house(answering(), channels=[channel], settings=policy(per_minute=2)):
        deliver = await channel.listens.get()
        for n in range(2):
            await deliver(incoming(f"e{n}", direct=False))
        came = [(await deliver(incoming(f"s{n}", text="/stop", direct=False))).refused for n in range(3)]
        assert (await deliver(incoming("e9", direct=False))).refused == TOO_MANY
    assert came == ["", "", TOO_MANY]


async def test_a_command_in_a_group_is_obeyed_as_its_rule_says_and_by_whom_it_is_for(house):
    channel = Heard()
    async with house(answering(), channels=[channel], settings=policy(groups="mention")):
        deliver = await channel.listens.get()
        ignored = await deliver(incoming("e1", direct=False, text="/help"))
        await deliver(incoming("e2", direct=False, text="/model other", mentioned=True))
        await channel.sent(1)
    assert ignored == Delivered(refused=NOT_FOR_US)
    assert told(channel) == ["/model is not for guests: it needs a user."]
