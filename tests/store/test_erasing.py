"""A person who is erased is nowhere any more: not in a row of either database, not in a byte of the home; in a group's
log the places stay. Everybody else has what they had."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.store.town import GROUP, KINDS, NAMES, ROOM, Town, canary, dumped, tables_holding

from everloop.core.log import Compacted, ModelCalled, ModelSaid, UserSaid
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import Message, said
from everloop.core.people import ERASED, Role
from everloop.core.prompt import Usage
from everloop.core.thread import Thread
from everloop.errors import MailRefused
from everloop.ports import Store
from everloop.ports.directory import Person
from everloop.ports.rows import Commit, Lease, Spent
from everloop.readings.erasing import NO_SUMMARY
from everloop.readings.spoken import BLANK

IN_TABLES = {
    *("entries", "grants", "inbox", "jobs", "outbox", "reply_contexts", "snapshots", "threads", "tokens", "vault"),
    *("accounts", "logins", "sessions", "users", "usage", "said"),
}


def place_of(home: Any, folder: Path) -> Path:
    """Where the files of a house lie: beside the database, where that is a file."""
    return getattr(home, "path", folder / "home")


@pytest.fixture
async def town(home: Any, store: Store, tmp_path: Path) -> Town:
    return Town(store, place_of(home, tmp_path))


async def test_nothing_of_one_who_is_erased_is_left_and_everybody_else_has_what_they_had(home: Any, town: Town):
    await town.settle()
    others = [name for name in NAMES if name != "anna"]
    (town.folder / "everloop.db.before-3").write_text(canary("anna", "copy"))
    (town.folder / "backups" / ".copy-x").mkdir(parents=True)  # of a backup that was killed
    (town.folder / "backups" / ".copy-x" / "everloop.db").write_text(canary("anna", "copy"))
    before = {name: await town.exported(name) for name in others}
    spent = [(row.model, row.calls, row.cost) for row in await town.store.spent()]
    named = {*await tables_holding(home, "fake:anna"), *await tables_holding(home, "canaryanna")}
    assert named >= IN_TABLES
    assert set(town.holding("canaryanna")) >= {"files", "people", "logs", "everloop.db.before-3"}

    gone = await town.erase("Anna")

    assert await tables_holding(home, "fake:anna") == await tables_holding(home, "canaryanna") == []
    assert await tables_holding(home, "Anna") == []
    assert town.holding("canaryanna") == town.holding("fake%3Aanna") == []
    assert await home.rows("SELECT count(*) FROM audit WHERE detail LIKE '%canary%'") == [(0,)]
    assert gone == {
        "person": 1,
        "accounts": 1,
        "tokens": 1,
        "ways to log in": 1,
        "secrets": 1,
        "conversations": 1,
        "entries": 3,
        "entries in the search index": 2,
        "snapshots": 1,
        "letters": 2,
        "answers in the outbox": 1,
        "jobs": 2,
        "schedules": 1,
        "grants": 1,
        "messages in groups": 1,
        "files": 1,
        "files in the workspace": 2,
        "copies of the store": 1,
    }
    assert [(row.model, row.calls, row.cost) for row in await town.store.spent()] == spent
    assert await home.rows("SELECT count(*) FROM usage WHERE owner = 'erased'") == [(1,)]
    assert {name: await town.exported(name) for name in others} == before
    kept = b"".join(town.bytes().values()).decode(errors="replace") + str(await dumped(home))
    for name in others:
        assert [kind for kind in KINDS if canary(name, kind) not in kept] == []
        assert [each.title for each in await town.conversations(name)] == [canary(name, "title")]
        found = await town.store.search(f"fake:{name}", canary(name, "message"))
        assert [(each.seq, each.who) for each in found] == [(1, "user")]
    assert await town.store.jobs("owner") == []
    assert len(town.forgotten) == 1


async def test_in_a_groups_log_places_stay_and_only_others_words(town: Town):
    await town.settle(("anna", "ben"))
    before = await town.store.history(town.group.thread)
    await town.erase("anna")
    after = await town.store.history(town.group.thread)
    blank = UserSaid(said(BLANK), ERASED, "fake:room", before[0].entry.mail, principal=GROUP)
    assert [each.entry for each in after[:3]] == [blank, ModelCalled("m"), ModelSaid(BLANK, model="m")]
    assert after[3:6] == before[3:6]
    assert [each.at for each in after[:6]] == [each.at for each in before]
    [last] = after[6:]
    thread = Thread.of(*(each.entry for each in after))
    assert isinstance(last.entry, Compacted)
    assert [message.text for message in thread.transcript.messages] == [
        BLANK,
        BLANK,
        f"{canary('ben', 'group')}\n[shared.txt]",
        canary("ben", "reply"),
    ]
    assert thread.rests
    opened = await town.store.open(town.group.thread)
    assert (opened.row.head, opened.first, opened.row.state, opened.row.holder) == (7, 7, "resting", "")
    assert await town.store.search(GROUP, canary("anna", "group")) == []
    assert [each.seq for each in await town.store.search(GROUP, canary("ben", "group"))] == [4]


async def test_a_summary_that_covers_them_goes_and_one_before_them_stays(town: Town):
    await town.settle(("ben", "cleo"))
    early = f"a summary of {canary('ben', 'group')}"
    await town.summarise_group(early)
    await town.bring("anna")
    await town.speak_in_group("anna")
    [hers] = [each.entry for each in (await town.store.history(town.group.thread))[7:8]]
    assert isinstance(hers, UserSaid)
    kept = (Message("user", hers.parts), Message("assistant", said("somebody has cut this: canaryanna")))
    await town.summarise_group(f"a summary of {canary('anna', 'group')}", *kept)
    await town.erase("anna")
    entries = [each.entry for each in await town.store.history(town.group.thread)]
    summaries = [(each.summary, each.facts) for each in entries if isinstance(each, Compacted)]
    assert summaries == [(early, (f"user: {early} fact",)), (NO_SUMMARY, ()), (NO_SUMMARY, ())]
    assert "canaryanna" not in str(entries)
    assert [message.text for message in Thread.of(*entries).transcript.messages][1:] == [BLANK, BLANK]


async def test_nobody_is_erased_who_may_not_be(town: Town):
    await town.settle(("anna",))
    await town.store.introduce(Person("fake:boss", "Boss", Role.ADMIN))
    for who, by in (
        *(("owner", Role.OWNER), ("owner", Role.ADMIN), ("Boss", Role.ADMIN)),
        *(("anna", Role.USER), ("anna", Role.GUEST), ("nobody", Role.OWNER), (GROUP, Role.OWNER)),
    ):
        with pytest.raises(MailRefused):
            await town.erasures.find(who, by)
    assert (await town.erasures.find("anna", Role.ADMIN)).id == "fake:anna"
    assert (await town.erasures.find("Boss", Role.OWNER)).id == "fake:boss"


async def test_a_stranger_of_whom_something_is_kept_is_erased_by_the_owner(home: Any, town: Town):
    await town.settle(("anna", "ben"))
    await town.store.unlink("fake:anna")
    await home.write("DELETE FROM users WHERE id = 'fake:anna'")
    with pytest.raises(MailRefused):
        await town.erasures.find("fake:anna", Role.ADMIN)
    with pytest.raises(MailRefused):
        await town.erasures.find("fake:zoe", Role.OWNER)
    await town.erase("fake:anna")
    assert await tables_holding(home, "canaryanna") == await tables_holding(home, "fake:anna") == []
    assert town.holding("canaryanna") == []


async def test_a_place_of_two_through_a_bot_goes_as_a_whole_and_a_room_does_not(home: Any, town: Town):
    await town.settle(("anna", "ben"))
    for chat, authors in (("fake//@anna", ("anna",)), ("fake//@both", ("anna", "ben")), ("fake//room", ("anna",))):
        at = Address("platform", chat)
        inbound = Inbound(at, f"owner/{at}/1", Said(said("canaryanna in two"), "fake:anna", str(at)))
        receipt = await town.store.receive(inbound)
        heard = [UserSaid(said(f"canary{name} here"), f"fake:{name}", str(at)) for name in authors]
        commit = Commit(heard, absorbed=[receipt.id], ended=[(receipt.id, 1)], release=True, state="resting")
        spent = [Spent(1, f"m{len(authors)}", Usage(7, 3), 0.5, requester=f"fake:{authors[-1]}")]
        await town.store.commit(Lease(receipt.thread), structs.replace(commit, usage=spent))
        town.log(f'{{"message":"turn given up","session":"{at}"}}\n')
    given = await town.exported("anna")
    assert len([path for path in given if path.startswith("conversations/")]) == 4  # of her own, and the place of two
    rows = given["tables/usage.csv"].decode().splitlines()[1:]
    assert [row.split(",")[1] for row in rows] == ["m", "m1", "m1"]  # what she asked for, anywhere
    town.log('{"message":"turn given up","session":"platform:fake//@anna2"}\n')
    gone = await town.erase("anna")
    assert (gone["conversations"], gone["messages in groups"]) == (2, 3)
    assert await tables_holding(home, "canaryanna") == await tables_holding(home, "@anna") == []
    assert town.holding('fake//@anna"') == []
    assert town.holding("fake//@anna2") != []
    assert town.holding("fake//room") != []
    assert sorted(each.session for each in await town.store.conversations("owner")) == [
        "platform:fake//@both",
        "platform:fake//room",
    ]
    [both] = await town.store.conversations("owner", session="platform:fake//@both")
    entries = [each.entry for each in await town.store.history(both.id)][:2]
    assert [(entry.author, entry.parts) for entry in entries if isinstance(entry, UserSaid)] == [
        (ERASED, said(BLANK)),
        ("fake:ben", said("canaryben here")),
    ]


async def test_no_number_of_a_letter_is_given_again_and_no_answer_to_a_command_of_theirs_stays(home: Any, town: Town):
    await town.settle(("ben", "anna"))
    asked = Inbound(ROOM, "usage", Said(said("/usage"), "fake:anna", str(ROOM), principal=GROUP), GROUP)
    last = await town.store.command(asked, "none", "canaryanna has spent much")
    await town.erase("anna")
    assert await tables_holding(home, "canaryanna") == []
    again = Inbound(ROOM, "new usage", Said(said("/usage"), "fake:ben", str(ROOM), principal=GROUP), GROUP)
    receipt = await town.store.command(again, "none", "pear")
    assert receipt.id > last.id
    assert await home.rows("SELECT count(*) FROM outbox WHERE body LIKE '%pear%'") == [(1,)]
