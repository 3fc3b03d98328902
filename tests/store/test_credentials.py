"""Who may come in, on both databases: hashes go in, and what is found says whose they are."""

from tests.store.conftest import Home

from everloop.core.mail import Address, Inbound, Stop
from everloop.ports import Store
from everloop.ports.rows import Known, TokenRow

ALL = ("read", "chat")


async def test_a_token_is_known_by_its_hash_until_it_is_forgotten(home: Home, store: Store):
    other = await home.connect()
    id = await store.keep_token("owner", "laptop", "hash", ALL)
    assert await other.known_token("hash") == Known(id, "owner", "owner", ALL)
    assert await store.known_token("other") is None
    assert [await other.forget_token("owner", "laptop"), await other.forget_token("owner", "laptop")] == [True, False]
    assert await store.known_token("hash") is None


async def test_a_name_is_given_once_as_long_as_it_holds(home: Home, store: Store):
    first = await store.keep_token("owner", "laptop", "a", ALL, 100)
    again = await store.keep_token("owner", "laptop", "b", ALL)
    await home.write("UPDATE tokens SET until = 1")
    assert (bool(first), again, await store.known_token("a"), await store.tokens("owner")) == (True, "", None, [])
    assert await store.keep_token("owner", "laptop", "b", ALL)


async def test_tokens_are_listed_by_age_and_belong_to_their_owner(store: Store):
    ids = [await store.keep_token("owner", name, name, ALL) for name in ("b", "a")]
    rows = await store.tokens("owner")
    assert [row.until for row in rows] == [0, 0]
    came = {row.id: row.at for row in rows}  # both may be in the same millisecond
    made = [TokenRow(id, "owner", name, ALL, came[id]) for id, name in zip(ids, ("b", "a"), strict=True)]
    assert rows == sorted(made, key=lambda row: (row.at, row.id))
    assert came[ids[0]] <= came[ids[1]]
    assert (await store.tokens("ann"), await store.forget_token("ann", "a")) == ([], False)
    assert await store.forget_token("owner", ids[0])


async def test_a_token_of_someone_who_is_no_user_is_unknown(store: Store):
    await store.keep_token("nobody", "x", "hash", ALL)
    assert await store.known_token("hash") is None


async def test_a_link_is_used_once_and_a_new_one_takes_its_place(store: Store):
    await store.keep_login("owner", "link", "old", 100)
    await store.keep_login("owner", "link", "new", 100)
    assert [await store.use_link(hash) for hash in ("old", "new", "new")] == ["", "owner", ""]


async def test_a_link_that_is_too_old_is_none(home: Home, store: Store):
    await store.keep_login("owner", "link", "hash", 100)
    await home.write("UPDATE logins SET until = 1")
    assert (await store.use_link("hash"), await store.login("owner", "link")) == ("", None)


async def test_a_login_is_forgotten(store):
    await store.keep_login("owner", "password", "hash")
    assert [await store.forget_login("owner", "password") for _ in range(2)] == [True, False]
    assert await store.login("owner", "password") is None


async def test_a_password_is_no_link(store: Store):
    await store.keep_login("owner", "password", "hash")
    assert (await store.use_link("hash"), await store.login("owner", "password")) == ("", "hash")


async def test_a_visit_is_known_by_its_cookie_or_its_page_until_it_ends(home: Home, store: Store):
    one = await store.keep_visit("owner", "cookie", "page", 100)
    two = await store.keep_visit("owner", "cookie 2", "page 2", 100)
    known = [await store.known_visit("cookie"), await store.known_visit("page", page=True)]
    crossed = [await store.known_visit("page"), await store.known_visit("cookie", page=True)]
    await store.end_visits("owner", but=two)
    left = [await store.known_visit("cookie"), await store.known_visit("cookie 2")]
    await home.write("UPDATE web_sessions SET until = 1")
    assert known == [Known(one, "owner", "owner", ())] * 2
    assert (crossed, left) == ([None, None], [None, Known(two, "owner", "owner", ())])
    assert await store.known_visit("cookie 2") is None


async def test_the_origins_of_letters_are_told(store: Store):
    assert await store.origins([1, 2]) == {}


async def test_whether_a_letter_has_come_is_told_by_its_event(store: Store):
    await store.receive(Inbound(Address("test", "chat"), "one", Stop("ann")))
    asked = [("test", "one"), ("test", "two"), ("other", "one")]
    assert [await store.came(*each) for each in asked] == [True, False, False]
