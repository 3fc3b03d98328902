"""Answers that bots fetch by themselves, on both databases: each is one bot's at a time, and never comes again once it
was confirmed."""

import asyncio
from collections import Counter

from everloop.core.mail import Address, Inbound, Notice, Outbound, Said
from everloop.core.message import Text
from everloop.ports import Store
from everloop.ports.polled import PolledAnswer, PolledPlaces
from everloop.ports.rows import Commit, Lease
from everloop.readings.keys import place_of

from .conftest import Home

OWNERS = PolledPlaces("platform", "owner", ("platform:discord/",))
GRACE = 10.0


def place(user: str = "7", platform: str = "discord") -> Address:
    return place_of("platform", platform, "", user=user, room="")


async def said(store: Store, address: Address, *texts: str, owner: str = "owner", asked: bool = False) -> list[int]:
    """Answers of a session's thread: of its own accord, or to a message. Returns the letters."""
    mails = []
    for text in texts:
        letter = Said((Text("hi"),), "discord:7", str(address)) if asked else Notice("up", "job:1", "owner")
        receipt = await store.receive(Inbound(address, f"{address} {text}", letter, owner))
        opened = await store.open(receipt.thread)
        answer = Outbound(f"reply:{address}:{text}", address, text, mails=(receipt.id,))
        lease = Lease(receipt.thread, 0, opened.row.head)
        await store.commit(lease, Commit(outbox=[answer], absorbed=[receipt.id], release=True, seen=receipt.id))
        mails.append(receipt.id)
    return mails


async def poll(store: Store, places: PolledPlaces = OWNERS, limit: int = 20, **how: object) -> list[PolledAnswer]:
    return await store.poll(places, **{"limit": limit, "seconds": 60.0, "grace": GRACE, **how})  # type: ignore[arg-type]


def texts(found: list[PolledAnswer]) -> list[str]:
    return [each.outbound.text for each in found]


async def test_what_is_fetched_is_nobody_elses_until_its_time_is_over_and_then_comes_again_as_the_same(
    home: Home, store: Store
):
    other = await home.connect()
    await said(store, place(), "remember")
    (first,) = await poll(store)
    assert [await poll(other), await poll(store)] == [[], []]
    await home.write("UPDATE outbox SET due = 1")  # its time runs out
    (again,) = await poll(other)
    assert (again.id, again.outbound, first.attempts, again.attempts) == (first.id, first.outbound, 1, 2)
    assert (first.unsure, again.unsure) == (False, True)


async def test_a_claim_outlives_the_process_that_handed_it_out(home: Home):
    gateway = await home.connect()
    await said(gateway, place(), "remember")
    (first,) = await poll(gateway)
    await home.lose(gateway)
    store = await home.connect()
    assert await poll(store) == []  # the bot that has it goes on
    await store.settle_polled(first.row, "sent")
    await home.write("UPDATE outbox SET due = 1")
    assert await poll(store) == []


async def test_what_is_confirmed_never_comes_again_and_what_is_for_later_comes_then(home: Home, store: Store):
    for user, state in (("1", "sent"), ("2", "failed"), ("3", "pending")):
        await said(store, place(user), state)
    for each in await poll(store):
        await store.settle_polled(each.row, each.outbound.text, "so it is", 100.0)  # type: ignore[arg-type]
    assert await poll(store) == []
    await home.write("UPDATE outbox SET due = 1")
    assert texts(await poll(store)) == ["pending"]
    listed = {each.text: (each.state, each.why) for each in await store.undelivered()}
    assert listed == {"failed": ("failed", "so it is"), "pending": ("sending", "so it is")}


async def test_a_late_receipt_counts_for_what_was_given_up_and_no_receipt_takes_another_back(home: Home, store: Store):
    await said(store, place(), "hello")
    (found,) = await poll(store)
    for state in ("failed", "sent", "failed", "pending"):
        await store.settle_polled(found.row, state)
    assert await home.rows("SELECT state FROM outbox") == [("sent",)]


async def test_a_session_has_its_answers_in_order_one_at_a_time(store: Store):
    await said(store, place("1"), "a", "b", "c")
    await said(store, place("2"), "x")
    seen = []
    while found := await poll(store):
        seen.append(texts(found))
        for each in found:
            await store.settle_polled(each.row, "sent")
    assert seen == [["a", "x"], ["b"], ["c"]]


async def test_a_bot_sees_the_places_of_its_owner_on_its_platforms_alone(home: Home, store: Store):
    hers = place_of("platform", "ada/discord", "", user="7", room="")
    for address, owner in ((place(), "owner"), (place(platform="telegram"), "owner"), (hers, "ada")):
        await said(store, address, f"{owner} {address.chat}", owner=owner)
    await said(store, Address("platform", "discordia/x/@1"), "a name that begins so")
    await said(store, Address("page", "discord/"), "another channel")
    ada = PolledPlaces("platform", "ada", ("platform:discord/", "platform:ada%2Fdiscord/"))
    as_if = PolledPlaces("platform", "owner", ("platform:ada%2Fdiscord/",))  # a platform that is called so
    found = {"owner": await poll(store), "ada": await poll(store, ada), "as if": await poll(store, as_if)}
    assert {name: texts(each) for name, each in found.items()} == {
        "owner": ["owner discord//@7"],
        "ada": ["ada ada%2Fdiscord//@7"],
        "as if": [],
    }
    rows = [each.row for each in (*found["owner"], *found["ada"])]
    assert [[*await store.find_polled(who, rows)] for who in (OWNERS, ada, as_if)] == [[rows[0]], [rows[1]], []]


async def test_an_answer_is_kept_for_whoever_asked_until_they_are_let_go_or_its_time_is_over(home: Home, store: Store):
    (mail,) = await said(store, place("1"), "waited for", asked=True)
    (other,) = await said(store, place("2"), "gone", asked=True)
    await said(store, place("3"), "old", asked=True)
    await home.write("UPDATE outbox SET at = at - 20 WHERE key LIKE '%old'")
    await store.let_askers_go([other])
    assert texts(await poll(store)) == ["gone", "old"]
    await home.write("UPDATE outbox SET at = at - 20")
    assert texts(await poll(store, spare=[mail])) == []  # they surely wait
    assert texts(await poll(store)) == ["waited for"]


async def test_what_whoever_asked_was_given_does_not_come(store: Store):
    (mail,) = await said(store, place(), "hello", asked=True)
    await store.acknowledge([f"reply:{place()}:hello"], [mail])
    await store.let_askers_go([mail])  # too late: they have it
    assert await poll(store, grace=0.0) == []
    assert [
        each.given for each in [await store.newest("platform", f"{place()} hello", f"{place()} hello")] if each
    ] == [True]


async def test_what_nobody_was_given_can_be_had_at_once(store: Store):
    await said(store, place(), "hello")
    found = await poll(store)
    await store.put_back(found)
    (again,) = await poll(store)
    assert (again.id, again.attempts, again.unsure) == (found[0].id, 1, False)
    await store.put_back(found)  # an old claim puts nothing back that somebody has by now
    assert await poll(store) == []


async def test_many_bots_at_once_get_each_answer_once(home: Home, store: Store):
    stores = [store, await home.connect()]
    for user in range(40):
        await said(store, place(str(user)), f"to {user}")
    fetched: list[str] = []

    async def fetch(mine: Store) -> None:
        for _ in range(40):
            fetched.extend(texts(await poll(mine, limit=3)))

    await asyncio.gather(*(fetch(stores[n % 2]) for n in range(8)))
    assert Counter(fetched) == {f"to {user}": 1 for user in range(40)}


async def test_what_waits_for_a_bot_is_listed_and_can_be_dropped_or_sent_again(store: Store):
    await said(store, place(), "hello")
    (listed,) = await store.undelivered()
    assert (listed.channel, listed.chat, listed.state, listed.attempts) == (
        "platform",
        "platform:discord//@7",
        "pending",
        0,
    )
    assert (await store.send_again(listed.id), texts(await poll(store))) == (True, ["hello"])
    await said(store, place("8"), "other")
    [other] = [each.id for each in await store.undelivered() if each.text == "other"]
    assert (await store.drop(other), await poll(store)) == (True, [])


async def test_where_a_bot_comes_is_known_for_a_while(home: Home, store: Store):
    await store.note_polled(["platform:discord/"])
    await store.note_polled(["platform:discord/"])
    asked = ("platform:discord//@7", "platform:discordia//@7", "platform:irc//@7", "webhook:x")
    assert [await store.is_polled(key, 300.0) for key in asked] == [True, False, False, False]
    await home.write("UPDATE resumes SET at = at - 301")
    assert await store.is_polled(asked[0], 300.0) is False
    assert await store.resume("platform") == ""
