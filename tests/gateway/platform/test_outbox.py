"""The way out of the platform door: what the agent says by itself, and answers whose request was gone, reach the bot
once, and come again until it has confirmed them."""

import asyncio
from typing import Any

import aiohttp
import pytest

from everloop.app.records import open_records
from everloop.core.mail import Address, Inbound, Notice, Said
from everloop.core.message import Text
from everloop.core.people import Role
from everloop.errors import HostFailed
from everloop.gateway.platform.outbox import place_in
from everloop.ports.directory import Person
from everloop.readings.keys import escaped, place_of
from everloop.testing import Call, Fail, Say, ScriptedModel, Shown
from everloop.tools.decorator import tool
from tests.gateway.http_doors import TOKEN, Serve, Served

from .test_token_platforms import bot as token_of_bot
from .test_token_platforms import say

HERE = {"platform": "discord", "platform_user_id": "7"}
DM = "platform:discord//@7"


class Bot:
    """A bot with a token of somebody's, which names the platforms of the tests."""

    def __init__(self, served: Served, user: str = "") -> None:
        self._url = served.url
        self._headers = {"Authorization": f"Bearer {TOKEN}{user}"}

    async def ask(self, method: str, path: str, **sent: Any) -> tuple[int, Any]:
        async with (
            aiohttp.ClientSession(headers=self._headers) as client,
            client.request(method, f"{self._url}{path}", **sent) as answer,
        ):
            return answer.status, await answer.json()

    async def say(self, content: str, **more: Any) -> tuple[int, Any]:
        return await self.ask("POST", "/message", json={**HERE, "content": content, **more})

    async def fetch(self, **query: Any) -> list[Any]:
        status, told = await self.ask("GET", "/message/outbox", params={"wait": 20, **query})
        assert status == 200, told
        return list(told["items"])

    async def confirm(self, *items: Any, **said: Any) -> Any:
        receipts = [{"id": item["id"], **said} for item in items]
        return await self.ask("POST", "/message/outbox/receipts", json={"receipts": receipts})


async def remind(served: Served, text: str, event: str = "e1", session: str = DM) -> None:
    notice = Notice(text, "job:water", "owner", session, unattended=True)
    await served.agent.tell(Inbound(Address.parse(session), event, notice, "owner"))


def echoing(shown: Shown) -> Any:
    return Say(f"{shown.asked.splitlines()[-1]}!")


async def test_a_bot_that_waits_is_given_what_the_agent_says_by_itself_and_confirms_it_for_good(serve: Serve):
    async with serve(ScriptedModel(echoing)) as served:
        bot = Bot(served)
        await bot.say("hello")
        waiting = asyncio.ensure_future(bot.fetch())
        await remind(served, "water the plants")
        (item,) = await waiting
        meanwhile, confirmed, again = await bot.fetch(wait=0), await bot.confirm(item), await bot.confirm(item)
        listed = await served.agent.store.undelivered()
    item_id, at = item.pop("id"), item.pop("at")
    assert item == {
        "platform": "discord",
        "platform_server_id": None,
        "platform_channel_id": None,
        "platform_thread_id": None,
        "platform_user_id": "7",
        "session": DM,
        "kind": "reply",
        "content": "water the plants!",
        "failed": False,
        "files": [],
        "in_reply_to": [],
        "approval": None,
        "attempt": 1,
        "maybe_repeated": False,
    }
    assert (meanwhile, confirmed, again, listed) == ([], (200, {"settled": 1, "unknown": []}), confirmed, [])
    assert (bool(item_id), at > 1_700_000_000) == (True, True)


async def test_an_answer_that_was_given_does_not_come_through_the_outbox_as_well(serve: Serve):
    """A bot that fetches all the time while its messages are answered is given nothing but what was said by itself."""
    async with serve(ScriptedModel(echoing)) as served:
        bot, fetched = Bot(served), []

        async def poll() -> None:
            while not fetched:
                fetched.extend(await bot.fetch(wait=0))

        polling = asyncio.ensure_future(poll())
        answers = await asyncio.gather(*(bot.say(f"m{n}", platform_user_id=str(n), id=f"m{n}") for n in range(12)))
        await bot.say("/status")
        await remind(served, "up")
        await polling
        await served.agent._shown.settle()
        open_rows = [each.text for each in await served.agent.store.undelivered() if each.text != "up!"]
    assert [told["content"] for _, told in answers] == [f"m{n}!" for n in range(12)]
    assert ([item["content"] for item in fetched], open_rows) == (["up!"], [])


@pytest.mark.parametrize("path", ["/message", "/message/stream"])
async def test_an_answer_whose_request_was_gone_is_fetched_and_names_the_message(serve: Serve, path: str):
    go, asked = asyncio.Event(), asyncio.Event()

    async def slowly() -> None:
        asked.set()
        await go.wait()

    @tool(permission=Role.GUEST)
    async def work() -> str:
        """Work."""
        await slowly()
        return "worked"

    async with serve(ScriptedModel([Call("work"), Say("done at last")]), tools=[work]) as served:
        bot = Bot(served)
        sent = asyncio.ensure_future(bot.ask("POST", path, json={**HERE, "content": "work", "id": "m:1"}))
        await asked.wait()
        sent.cancel()
        await asyncio.gather(sent, return_exceptions=True)
        assert await bot.fetch(wait=0) == []
        go.set()
        (item,) = await bot.fetch()
        assert (item["content"], item["in_reply_to"], item["platform_user_id"]) == ("done at last", ["m:1"], "7")
        await bot.confirm(item)
        # Whoever asks again under the same id is given the same answer, and nothing is done again.
        _, again = await bot.say("work", id="m:1")
        assert (again["content"], await bot.fetch(wait=0)) == ("done at last", [])


async def test_why_there_is_no_answer_is_fetched_as_well_unless_it_was_told(serve: Serve):
    go, asked = asyncio.Event(), asyncio.Event()

    @tool(permission=Role.GUEST)
    async def work() -> str:
        """Work."""
        asked.set()
        await go.wait()
        return "worked"

    down = Fail(HostFailed("it is down"))
    async with serve(ScriptedModel([down, Call("work"), down]), tools=[work]) as served:
        bot = Bot(served)
        status, _ = await bot.say("hi")
        sent = asyncio.ensure_future(bot.say("work", id="m2"))
        await asked.wait()
        sent.cancel()
        await asyncio.gather(sent, return_exceptions=True)
        go.set()
        (item,) = await bot.fetch()
    assert (status, item["failed"], item["in_reply_to"]) == (502, True, ["m2"])


async def test_what_is_not_confirmed_comes_again_and_what_failed_is_a_dead_letter(serve: Serve):
    async with serve(ScriptedModel(echoing)) as served:
        bot = Bot(served)
        await bot.say("hello")
        await remind(served, "one")
        (first,) = await bot.fetch(seconds=1)
        (second,) = await bot.fetch()  # when its second is over
        await bot.confirm(second, state="later", why="the platform is down", seconds=0)
        (third,) = await bot.fetch()
        await bot.confirm(third, state="failed", why="the chat is gone")
        (listed,) = await served.agent.store.undelivered()
        assert await bot.fetch(wait=0) == []
        await served.agent.store.send_again(listed.id)
        (fourth,) = await bot.fetch()
    assert len({each["id"] for each in (first, second, third, fourth)}) == 1
    told = [(each["attempt"], each["maybe_repeated"]) for each in (first, second, third, fourth)]
    assert told == [(1, False), (2, True), (3, True), (1, True)]
    assert (listed.state, listed.why, listed.attempts) == ("failed", "the chat is gone", 3)


async def test_two_bots_on_one_platform_share_the_work_and_another_persons_gets_nothing_of_it(serve: Serve):
    async with serve(ScriptedModel(echoing)) as served:
        for user in "123456":
            await Bot(served).say("hi", platform_user_id=user)
            await remind(served, f"to {user}", user, f"platform:discord//@{user}")
        bots, other = [Bot(served), Bot(served)], Bot(served, ":ann")
        await other.say("hi")
        shared: list[Any] = []
        while len(shared) < 6:
            for found in await asyncio.gather(*(bot.fetch(limit=2, wait=1) for bot in bots)):
                shared += found
        foreign = [await other.fetch(wait=0), (await other.confirm(*shared))[1]]
        assert (await bots[0].confirm(*shared))[1] == {"settled": 6, "unknown": []}
    assert sorted(item["content"] for item in shared) == [f"to {user}!" for user in "123456"]
    assert foreign == [[], {"settled": 0, "unknown": [item["id"] for item in shared]}]


async def test_the_bot_of_somebody_else_is_told_its_places_by_their_own_names(serve: Serve):
    async with serve(ScriptedModel(echoing)) as served:
        bot = Bot(served, ":ann")
        await bot.say("hi", platform_server_id="s 1", platform_channel_id="@c/1", platform_thread_id="t:1")
        (found,) = await served.agent.store.conversations("ann")
        notice = Notice("up", "job:1", "ann", found.session, unattended=True)
        await served.agent.tell(Inbound(Address.parse(found.session), "e", notice, "ann"))
        (item,) = await bot.fetch(platform="discord")
    place = {name: value for name, value in item.items() if name.startswith("platform")}
    assert place == {
        "platform": "discord",
        "platform_server_id": "s 1",
        "platform_channel_id": "@c/1",
        "platform_thread_id": "t:1",
        "platform_user_id": None,
    }


def test_a_name_that_is_told_by_its_hash_is_left_out():
    room = "ü" * 200
    told = place_in(place_of("platform", "discord", "s", user="7", room=room), "owner")
    assert (told["platform_server_id"], told["platform_channel_id"]) == ("s", None)
    assert place_in(Address("platform", f"{escaped('a b')}//{escaped('x')}"), "owner")["platform"] == "a b"


@tool(permission=Role.GUEST, guarded=True)
async def act() -> str:
    """Act."""
    return "acted"


async def test_a_question_reaches_the_bot_with_what_may_be_answered_and_message_takes_the_answer(serve: Serve):
    async with serve(ScriptedModel([Call("act"), Say("It is done.")]), tools=[act]) as served:
        await served.agent.store.introduce(Person("ada", "Ada", Role.ADMIN, accounts=("discord:7",)))
        bot = Bot(served)
        status, told = await bot.say("act", attended=True, id="m1")
        assert (status, told["waiting"], told["error"], told["content"]) == (202, True, None, "")
        (question,) = await bot.fetch()
        await bot.confirm(question)
        assert (question["kind"], "act" in question["content"]) == ("question", True)
        status, told = await bot.say(question["approval"]["allow"], attended=True)
        assert (status, told["error"]) == (200, None)
        (item,) = await bot.fetch()
    assert (item["content"], item["in_reply_to"], item["approval"]) == ("It is done.", ["m1"], None)


async def test_a_streamed_message_says_that_it_waits_and_a_no_is_taken_as_well(serve: Serve):
    async with serve(ScriptedModel([(Say("Let me see."), Call("act")), Say("Then not.")]), tools=[act]) as served:
        await served.agent.store.introduce(Person("ada", "Ada", Role.ADMIN, accounts=("discord:7",)))
        bot, sent = Bot(served), {**HERE, "content": "act", "attended": True}
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            aiohttp.ClientSession(served.url, headers=headers) as client,
            client.post("/message/stream", json=sent) as answer,
        ):
            streamed = await answer.text()
        (question,) = await bot.fetch()
        await bot.confirm(question)
        await bot.say(question["approval"]["deny"], attended=True)
        (item,) = await bot.fetch()
    assert ("event: waiting" in streamed, "event: error" in streamed, item["content"]) == (True, False, "Then not.")


async def test_what_somebody_else_wants_is_asked_of_the_owner_where_their_bot_fetches_it(serve: Serve):
    async with serve(ScriptedModel([Say("hi"), Call("act"), Say("It is done.")]), tools=[act]) as served:
        await served.agent.store.link("discord:7", "owner")
        bot = Bot(served)
        await bot.say("hello")
        assert await bot.fetch(wait=0) == []  # from now on the house knows that a bot comes
        status, _ = await bot.say("act", platform_user_id="9", attended=True)
        told = {item["platform_user_id"]: item for item in await bot.fetch()}
        await bot.confirm(*told.values())
        _, allowed = await bot.say(told["7"]["approval"]["allow"])
        (item,) = await bot.fetch()
    assert (status, {user: each["kind"] for user, each in told.items()}) == (202, {"7": "question", "9": "notice"})
    assert "the owner on discord" in told["9"]["content"]
    assert (allowed["error"], item["platform_user_id"], item["content"]) == (None, "9", "It is done.")


async def test_where_no_bot_comes_nobody_is_said_to_be_asked_there(serve: Serve):
    async with serve(ScriptedModel([Say("hi"), Call("act"), Say("It is done.")]), tools=[act]) as served:
        await served.agent.store.link("discord:7", "owner")
        bot = Bot(served)
        await bot.say("hello")
        await bot.say("act", platform_user_id="9", attended=True)
        told = await bot.fetch()
    assert [(item["platform_user_id"], "the owner in the page" in item["content"]) for item in told] == [("9", True)]


async def test_a_bot_that_fetches_nothing_asks_nobody_as_before(serve: Serve):
    model = ScriptedModel([Call("act"), Say("I could not.")])
    async with serve(model, tools=[act]) as served:
        await served.agent.store.introduce(Person("ada", "Ada", Role.ADMIN, accounts=("discord:7",)))
        status, told = await Bot(served).say("act")
    assert (status, told["content"], told["tool_calls_metadata"][0]["outcome"]) == (200, "I could not.", "denied")


async def test_a_question_that_was_answered_before_a_bot_has_fetched_it_does_not_come(serve: Serve):
    async with serve(ScriptedModel([Call("act"), Say("It is done.")]), tools=[act]) as served:
        await served.agent.store.introduce(Person("ada", "Ada", Role.ADMIN, accounts=("discord:7",)))
        bot = Bot(served)
        await bot.say("act", attended=True)
        (waiting,) = await served.agent.approvals()
        await served.agent.decide(waiting.id, True)
        found: list[Any] = []
        while not found:
            found = await bot.fetch()
    assert [item["content"] for item in found] == ["It is done."]


async def test_what_makes_no_sense_is_refused_in_a_sentence(serve: Serve):
    wrong = {"wait=61": "wait", "wait=-1": "wait", "wait=x": "wait", "limit=0": "limit", "limit=101": "limit"}
    wrong |= {"seconds=0": "seconds", "seconds=1e9": "seconds", "until=1": "'until'"}
    async with serve(ScriptedModel([])) as served:
        told = {query: await Bot(served).ask("GET", f"/message/outbox?{query}") for query in wrong}
    assert {query: (told[query][0], why in told[query][1]["error"]["message"]) for query, why in wrong.items()} == (
        dict.fromkeys(wrong, (400, True))
    )


async def test_receipts_of_nothing_are_told_apart_and_change_nothing(serve: Serve):
    async with serve(ScriptedModel(echoing)) as served:
        bot = Bot(served)
        await bot.say("hi")
        await remind(served, "up")
        (item,) = await bot.fetch()
        row = item["id"].partition("-")[0]
        forged = [f"{row}-0000000000000000", row, "x", "99999999999999999999-0", f"-{row}", f" {item['id']}"]
        answer = await bot.ask("POST", "/message/outbox/receipts", json={"receipts": [{"id": id} for id in forged]})
        empty = await bot.ask("POST", "/message/outbox/receipts", json={"receipts": []})
        wrong = await bot.ask("POST", "/message/outbox/receipts", json={"receipts": [{"id": "1", "state": "lost"}]})
        (listed,) = await served.agent.store.undelivered()
    assert answer == (200, {"settled": 0, "unknown": forged})
    assert (empty[0], wrong[0], listed.state) == (400, 400, "sending")


async def test_a_bot_fetches_and_confirms_for_the_platforms_that_its_token_names_alone(openings: Any):
    door = await openings(ScriptedModel(lambda shown: Fail(HostFailed("down"))))
    tokens = [
        await token_of_bot(door, *named, name=f"t{n}") for n, named in enumerate([(), ("telegram",), ("discord",)])
    ]
    await say(door, tokens[2], "discord")

    async def status(token: str, path: str, **sent: Any) -> int:
        async with door.client(token) as client, client.request("POST" if sent else "GET", path, **sent) as answer:
            return answer.status

    receipt = {"json": {"receipts": [{"id": "1-0"}]}}
    assert [await status(token, "/message/outbox?platform=discord") for token in tokens] == [403, 403, 200]
    assert [await status(token, "/message/outbox") for token in tokens] == [403, 200, 200]
    assert [await status(token, "/message/outbox/receipts", **receipt) for token in tokens] == [403, 200, 200]
    reader = await door.token("read")
    assert [await status(reader, "/message/outbox"), await status("", "/message/outbox")] == [403, 401]


async def test_who_waits_with_a_token_that_is_revoked_meanwhile_is_given_nothing(openings: Any):
    door = await openings(ScriptedModel(lambda shown: Say("hello")))
    token, other = [await token_of_bot(door, "discord", name=name) for name in ("bot", "other")]
    async with door.client(token) as client:
        waiting = asyncio.ensure_future(client.get("/message/outbox?wait=20"))
        async with door.client(other) as later:
            for _ in range(3):  # by then the first is let in, and waits
                assert (await later.get("/message/outbox")).status == 200
        await door.revoke("bot")
        letter = Said((Text("hi"),), "discord:7", DM)
        async with open_records(door.home) as records:
            await records.store.command(Inbound(Address.parse(DM), "e1", letter), "none", "secret")
            await records.store.let_askers_go([1])
        assert ((await waiting).status, "secret" in await (await waiting).text()) == (401, False)
    async with door.client(other) as client, client.get("/message/outbox?wait=20") as answer:
        (item,) = (await answer.json())["items"]
    assert (item["content"], item["attempt"]) == ("secret", 1)
