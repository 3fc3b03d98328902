"""People and their accounts, on both databases."""

from tests.store.conftest import Home

from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.people import Role
from everloop.ports import Store
from everloop.ports.directory import Person
from everloop.ports.rows import Known


def plain(person: Person | None) -> tuple[str, str, Role, bool, tuple[str, ...]] | None:
    """Without the time at which they came."""
    return person and (person.id, person.name, person.role, person.blocked, person.accounts)


async def test_the_owner_is_known_from_the_beginning(store: Store):
    assert [plain(each) for each in await store.people()] == [("owner", "owner", Role.OWNER, False, ())]


async def test_who_is_introduced_is_known_by_their_account_and_once(home: Home, store: Store):
    other = await home.connect()
    anna = Person("web:7", "Anna", Role.USER, accounts=("web:7",))
    assert [await store.introduce(anna), await other.introduce(anna)] == [True, False]
    assert plain(await other.person("web:7")) == ("web:7", "Anna", Role.USER, False, ("web:7",))
    assert (await other.known_by("web:7"), await other.known_by("web:8")) == (
        await other.known_by("web:7"),
        None,
    )
    assert await other.role("web:7") is Role.USER


async def test_what_is_not_said_of_a_change_stays(store: Store):
    await store.introduce(Person("p1", "Anna", Role.USER))
    assert await store.change_person("p1", role=Role.ADMIN)
    assert await store.change_person("p1", name="Anne")
    assert not await store.change_person("p2", name="Anne")
    assert plain(await store.person("p1")) == ("p1", "Anne", Role.ADMIN, False, ())


async def test_whoever_is_blocked_has_no_role_and_no_way_in(store: Store):
    await store.introduce(Person("p1", "Anna", Role.ADMIN))
    token = await store.keep_token("p1", "x", "hash", ("chat",))
    visit = await store.keep_visit("p1", "cookie", "page", 100)
    before = await store.known_token("hash"), await store.known_visit("cookie"), await store.role("p1")
    assert before == (Known(token, "p1", "admin", ("chat",)), Known(visit, "p1", "admin", ()), Role.ADMIN)
    await store.change_person("p1", blocked=True)
    assert (await store.known_token("hash"), await store.known_visit("cookie")) == (None, None)
    assert await store.role("p1") is Role.BLOCKED
    await store.change_person("p1", blocked=False)
    assert (await store.known_token("hash"), await store.role("p1")) == before[::2]


async def test_an_account_is_one_persons(store: Store):
    for name in ("p1", "p2"):
        await store.introduce(Person(name, name, Role.USER))
    assert [await store.link("web:7", "p1"), await store.link("web:7", "p1")] == ["", ""]
    assert await store.link("web:7", "p2") == "web:7 belongs to somebody else"
    assert await store.link("web:8", "p9") == "there is no person 'p9'"
    person = await store.person("p1")
    assert person
    assert person.accounts == ("web:7",)
    assert [await store.unlink("web:7"), await store.unlink("web:7")] == [True, False]
    assert await store.link("web:7", "p2") == ""


async def test_an_account_that_is_a_persons_id_is_nobodys_way_to_be_them_once_it_was_taken_away(store: Store):
    await store.introduce(Person("web:7", "Anna", Role.ADMIN, accounts=("web:7", "web:8")))
    await store.unlink("web:7")
    heard = [await store.known_by(account) for account in ("web:7", "web:8", "web:9")]
    assert [each and (each.id, each.blocked) for each in heard] == [("web:7", True), ("web:7", False), None]
    await store.link("web:7", "web:7")
    back = await store.known_by("web:7")
    assert back
    assert not back.blocked


def letter(account: str, event: str) -> Inbound:
    return Inbound(Address("web", account.partition(":")[2]), event, Said(said("hi"), account), account)


async def test_an_account_that_has_said_something_stays_who_it_is(store: Store):
    await store.introduce(Person("p1", "Anna", Role.USER))
    receipt = await store.receive(letter("web:7", "e1"))
    await store.introduce(Person("web:9", "Ben", Role.USER, accounts=("web:9",)))
    refused = "is somebody already, with conversations or a role of their own"
    assert await store.link("web:9", "p1") == f"web:9 {refused}"
    assert await store.link("web:7", "p1") == f"web:7 {refused}"
    assert (await store.session("web:7")).owner == "web:7"  # type: ignore[union-attr]
    assert receipt.fresh


async def test_where_an_account_was_only_told_something_the_place_becomes_the_persons(store: Store):
    await store.introduce(Person("p1", "Anna", Role.USER))
    await store.command(letter("web:7", "e1"), "none", "who are you?")
    assert await store.link("web:7", "p1") == ""
    row = await store.session("web:7")
    assert row
    assert row.owner == "p1"
    again = Inbound(Address("web", "7"), "e2", Said(said("hi"), "p1"), "p1")
    assert (await store.receive(again)).thread == row.id


async def test_a_code_stays_the_same_until_it_is_used_and_is_used_once(home: Home, store: Store):
    other = await home.connect()
    first = await store.ask_code("pair", "web:7", "web:7", "e1", 100)
    again = await other.ask_code("pair", "web:7", "web:7", "e2", 100)
    link = await store.ask_code("link", "web:7", "web:7", "e1", 100)
    assert (again, first.event, len(first.code)) == (first, "e1", 8)
    assert await store.use_code("link", first.code) is None
    assert [await other.use_code("pair", first.code.lower()), await store.use_code("pair", first.code)] == [first, None]
    assert (await store.codes("pair"), await store.codes("link")) == ([], [link])


async def test_a_code_that_is_too_old_is_none(home: Home, store: Store):
    old = await store.ask_code("pair", "web:7", "web:7", "e1", 100)
    await home.write("UPDATE codes SET until = 1")
    assert (await store.codes("pair"), await store.use_code("pair", old.code)) == ([], None)
    assert (await store.ask_code("pair", "web:7", "web:7", "e2", 100)).event == "e2"
