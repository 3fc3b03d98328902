"""`everloop outbox`: what a channel could not deliver is listed, sent again and dropped."""

import asyncio
import json

from tests.channels.dead_letters import give_up

from everloop.store.sqlite import SqliteStore

WHERE = "within seconds where `everloop gateway` runs, else once it is started"


async def leave_behind(home, *texts: str) -> None:
    store = await SqliteStore.connect(home)
    await give_up(store, *texts)
    await store.close()


async def test_what_was_given_up_is_listed_with_the_reason(person):
    person.home.mkdir(exist_ok=True)
    empty = await person.run("outbox")
    await leave_behind(person.home, "hello", "x" * 100)
    ran = await person.run("outbox", "list")
    told = json.loads((await person.run("outbox", "list", "--json")).out)
    assert (empty.status, empty.out, empty.err) == (0, "Nothing waits to be delivered.\n", "")
    head, first, second = ran.out.splitlines()
    assert head.split() == ["ID", "CHAT", "STATE", "TRIES", "SINCE", "WHY", "TEXT"]
    assert (first.split()[:4], first.endswith("hello"), second.endswith("xxx…")) == (
        ["1", "fake:room", "given", "up"],
        True,
        True,
    )
    assert "\x1b" not in ran.out
    assert [(each["id"], each["chat"], each["state"], each["text"]) for each in told["outbox"]] == [
        (1, "fake:room", "failed", "hello"),
        (2, "fake:room", "failed", "x" * 100),
    ]


async def test_one_is_sent_again_and_the_rest_are_dropped(person):
    person.home.mkdir(exist_ok=True)
    await leave_behind(person.home, "one", "two", "three")
    words = ["retry", "2"], ["drop", "all"], ["retry", "all"]
    ran = [await person.run("outbox", *each) for each in words]
    assert [(each.status, each.out, each.err) for each in ran] == [
        (
            0,
            "1 answer will be sent again: within seconds where `everloop gateway` runs, else once it is started.\n",
            "",
        ),
        (0, "2 answers will not be sent.\n", ""),
        (0, "Nothing was given up; see: everloop outbox list\n", ""),
    ]
    (row,) = (await person.run("outbox")).out.splitlines()[1:]
    assert row.split()[:6] == ["2", "fake:room", "waits", "for", "the", "gateway"]
    store = await SqliteStore.connect(person.home)
    assert [row.outbound.text for row in await store.due("fake")] == ["two"]
    await store.close()


async def test_what_is_not_there_is_said_in_a_sentence(person):
    person.home.mkdir(exist_ok=True)
    ran = await asyncio.gather(*(person.run("outbox", *words) for words in (["retry", "7"], ["drop", "x"], ["mail"])))
    assert [(each.status != 0, each.out, "Traceback" in each.err) for each in ran] == [(True, "", False)] * 3
    assert ran[0].err == "everloop: nothing undelivered has the number '7'; see: everloop outbox list\n"
