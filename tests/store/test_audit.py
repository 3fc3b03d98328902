"""The audit: who did what, when, by which authority, in one chain, on both databases."""

import asyncio

import pytest
from msgspec import structs
from tests.store.conftest import Home

from everloop.core.log import CallStarted, UserSaid
from everloop.core.mail import Address, Inbound, Said, Stop
from everloop.core.message import said
from everloop.core.people import Role
from everloop.errors import Fenced
from everloop.ports import Store
from everloop.ports.audit import (
    DEEDS,
    AuditCheck,
    AuditRow,
    Authority,
    Broken,
    acting_as,
    first_broken,
    hash_of,
    line_of,
)
from everloop.ports.directory import Person
from everloop.ports.rows import Commit, Lease


async def told(store: Store) -> list[tuple[str, str, str, str, str]]:
    """All lines, the first first, without times and hashes."""
    return [(r.actor, r.authority, r.deed, r.subject, r.detail) for r in reversed(await store.audit(limit=1000))]


async def test_a_line_rides_with_the_deed_and_says_who_by_what(store: Store):
    with acting_as("owner", "owner at the terminal"):
        await store.introduce(Person("web:7", "Anna", Role.USER, accounts=("web:7",)))
        await store.introduce(Person("web:7", "Anna", Role.USER))  # is somebody already
        await store.change_person("web:7", role=Role.ADMIN, name="Anne")
        await store.change_person("web:7", role=Role.ADMIN)  # is one already
        await store.change_person("nobody", role=Role.ADMIN, blocked=True)
    assert await told(store) == [
        ("owner", "owner at the terminal", "person.added", "web:7", '{"accounts":["web:7"],"role":"user"}'),
        ("owner", "owner at the terminal", "person.role", "web:7", '{"from":"user","to":"admin"}'),
        ("owner", "owner at the terminal", "person.renamed", "web:7", ""),
    ]


async def test_a_line_is_found_by_who_what_and_when(store: Store):
    for person, deed, subject in (("a", "token.made", "t1"), ("b", "person.role", "a"), ("b", "login.ok", "v1")):
        with acting_as(person, "x"):
            await store.note(line_of(deed, subject))
    assert [row.id for row in await store.audit(who="a")] == [2, 1]
    assert [row.id for row in await store.audit(what="person")] == [2]
    assert [row.id for row in await store.audit(what="pers")] == []
    assert [row.id for row in await store.audit(before=3, limit=1)] == [2]
    first = (await store.audit())[-1]
    assert [row.id for row in await store.audit(since=first.at / 1000 + 3600)] == []
    assert await store.audit_head() == (await store.audit())[0]


async def test_two_processes_write_one_chain(home: Home, store: Store):
    other = await home.connect()

    async def work(through: Store, name: str) -> None:
        for number in range(15):
            with acting_as(name, "x"):
                await through.note(line_of("login.failed", str(number)))

    await asyncio.gather(work(store, "a"), work(other, "b"), work(store, "c"))
    check = await other.check_audit()
    assert (check.lines, check.broken) == (45, None)
    for name in "abc":  # each in its own order
        own = [row.subject for row in await store.audit(who=name)]
        assert own == [str(number) for number in range(14, -1, -1)]


async def test_a_deed_that_fails_leaves_no_line(store: Store):
    assert not await store.forget_token("owner", "nothing")
    assert not await store.drop(7)
    assert await store.link("web:7", "nobody") != ""
    assert await told(store) == []


async def test_lines_are_only_ever_added(home: Home, store: Store):
    await store.note(line_of("login.ok", "v1"))
    for statement in ("UPDATE audit SET actor = 'x'", "DELETE FROM audit"):
        with pytest.raises(Exception, match="only ever added"):
            await home.write(statement)
    assert (await store.check_audit()).lines == 1


FIELDS = ("id", "at", "actor", "authority", "deed", "subject", "detail", "previous", "hash")


def chain(length: int) -> list[AuditRow]:
    rows: list[AuditRow] = []
    for id in range(1, length + 1):
        fields = (id, 1000 + id, "a", "b", "login.ok", f"v{id}", '{"n":1}', rows[-1].hash if rows else "")
        rows.append(AuditRow(*fields, hash_of(*fields)))
    return rows


def test_a_chain_that_nobody_touched_is_sound():
    assert first_broken(chain(6), None) is None
    assert first_broken(chain(6)[3:], chain(6)[2]) is None


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("at", [0, 2, 5])
def test_a_line_that_was_changed_in_any_field_shows(field: str, at: int):
    rows = chain(6)
    old = getattr(rows[at], field)
    rows[at] = structs.replace(rows[at], **{field: old + 1 if isinstance(old, int) else f"{old}x"})
    broken = first_broken(rows, None)
    assert broken is not None
    assert broken.line == at + 1


@pytest.mark.parametrize("field", FIELDS[2:7])
def test_a_line_that_was_changed_and_hashed_anew_shows_in_the_next(field: str):
    rows = chain(6)
    changed = structs.replace(rows[2], **{field: "other"})
    rows[2] = structs.replace(changed, hash=hash_of(*(getattr(changed, name) for name in FIELDS[:-1])))
    broken = first_broken(rows, None)
    assert broken is not None
    assert broken.line == 4


def test_letters_that_move_from_one_field_to_the_next_show():
    rows = chain(3)
    rows[1] = structs.replace(rows[1], actor="ab", authority="")
    assert first_broken(rows, None) == Broken(2, "it was changed after it was written")


def test_lines_that_were_removed_swapped_or_put_in_between_show():
    rows = chain(6)
    assert first_broken([*rows[:2], *rows[3:]], None) == Broken(3, "it is missing")
    assert first_broken(rows[1:], None) == Broken(1, "it is missing")
    renumbered = [structs.replace(row, id=n) for n, row in enumerate([*rows[:2], *rows[3:]], 1)]
    swapped = [*rows[:2], structs.replace(rows[3], id=3), structs.replace(rows[2], id=4), *rows[4:]]
    put_in = [*rows[:2], rows[1], *(structs.replace(row, id=row.id + 1) for row in rows[2:])]
    for spoiled, line in ((renumbered, 3), (swapped, 3), (put_in, 3)):
        broken = first_broken(spoiled, None)
        assert broken is not None
        assert broken.line == line


TRIGGERS = {
    "sqlite": ["DROP TRIGGER audit_unchanged", "DROP TRIGGER audit_whole"],
    "postgres": ["DROP TRIGGER audit_unchanged ON audit"],
}


async def test_who_reaches_around_us_into_the_table_is_noticed(home: Home, store: Store):
    for number in range(5):
        await store.note(line_of("login.ok", f"v{number}"))
    head = (await store.check_audit()).head
    kind = "sqlite" if type(home).__name__ == "SqliteHome" else "postgres"
    for statement in TRIGGERS[kind]:
        await home.write(statement)
    assert (await store.check_audit(head)).broken is None
    await home.write("UPDATE audit SET subject = 'other' WHERE id = 3")
    assert (await store.check_audit()).broken == Broken(3, "it was changed after it was written")
    await home.write("UPDATE audit SET subject = 'v2' WHERE id = 3")
    assert (await store.check_audit()).broken is None
    await home.write("DELETE FROM audit WHERE id > 3")  # at the end: only who has noted the head sees it
    assert (await store.check_audit()).broken is None
    cut = await store.check_audit(head)
    assert (cut.lines, cut.broken) == (3, Broken(4, "it is missing, with all up to the one that was noted"))
    for number in range(3, 5):
        await store.note(line_of("login.ok", f"w{number}"))
    assert (await store.check_audit()).broken is None
    anew = (await store.check_audit(head)).broken
    assert anew == Broken(5, "it is not the one that was noted: the lines since then were written anew")
    await home.write("DELETE FROM audit WHERE id = 2")
    assert (await store.check_audit()).broken == Broken(2, "it is missing")


async def test_both_databases_bind_any_text_in_the_same_way(store: Store):
    for subject in ("", "ä€😀", "a:1:b", "x" * 500, "nul\0 and half \ud800", "'; DROP TABLE audit; --"):
        await store.note(line_of("login.failed", subject, {"keys": [subject], "n": 1, "yes": True}))
    assert (await store.check_audit()).broken is None
    assert await store.check_audit() == AuditCheck(6, (await store.check_audit()).head)
    assert max(len(row.subject) for row in await store.audit()) == 200


def test_nothing_is_noted_that_is_not_one_of_the_deeds():
    with pytest.raises(ValueError, match=r"person\.praised is not one of the DEEDS"):
        line_of("person.praised")
    assert all(deed.count(".") == 1 for deed in DEEDS)


async def test_lines_of_a_turn_ride_in_its_commit_and_those_of_starts_only_if_they_start(home: Home, store: Store):
    session = Address.parse("web:7")
    receipt = await store.receive(Inbound(session, "e1", Said(said("hi"), "anna", "web:7"), "anna"))
    by = Authority("anna", "user")
    decided, began = line_of("approval.allowed", "t:1:0", by=by), line_of("tool.started", "t:1:0", by=by)
    entry, start = UserSaid(said("hi"), "anna", "web:7", receipt.id), CallStarted(1, 0)
    lease = Lease(receipt.thread, 0, 0)
    first = Commit((entry,), (start,), (receipt.id,), audit=(decided,), audit_starts=(began,))
    committed = await store.commit(lease, first)
    assert committed.started
    assert [row.deed for row in await store.audit()] == ["tool.started", "approval.allowed"]
    lease = Lease(receipt.thread, committed.epoch, committed.head)
    await store.receive(Inbound(session, "e2", Stop("anna"), "anna"))
    stopped = await store.commit(lease, Commit((), (start,), audit=(decided,), audit_starts=(began,)))
    assert not stopped.started
    assert [row.deed for row in await store.audit()] == ["approval.allowed", "tool.started", "approval.allowed"]
    with pytest.raises(Fenced):
        await (await home.connect()).commit(lease, Commit((), (start,), audit=(decided,), audit_starts=(began,)))
    assert (await store.check_audit()).lines == 3
    assert (await store.check_audit()).broken is None


async def test_many_turns_of_two_processes_and_changes_beside_them_make_one_chain(home: Home, store: Store):
    other = await home.connect()
    by = Authority("anna", "user")

    async def drive(through: Store, name: str) -> None:
        receipt = await through.receive(Inbound(Address("web", name), name, Said(said("x"), "anna", "web:7"), "anna"))
        lease = Lease(receipt.thread, 0, 0)
        for number in range(5):
            lines = [line_of("tool.started", f"{name}:{number}:{place}", by=by) for place in range(2)]
            done = await through.commit(lease, Commit((), (CallStarted(1, number),), audit_starts=lines))
            lease = Lease(receipt.thread, done.epoch, done.head)

    async def change(through: Store) -> None:
        for number in range(5):
            await through.introduce(Person(f"p{id(through)}-{number}", "x", Role.USER))

    turns = [drive(each, f"{n}-{id(each)}") for n in range(4) for each in (store, other)]
    await asyncio.gather(*turns, change(store), change(other))
    assert await store.check_audit() == AuditCheck(90, (await other.check_audit()).head)
