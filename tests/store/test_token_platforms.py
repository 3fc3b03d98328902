"""The platforms that tokens name, on both databases, and what became of tokens that are older than that."""

from everloop.core.mail import Inbound, Said
from everloop.core.message import Text
from everloop.ports import Store
from everloop.ports.rows import Known
from everloop.readings.keys import author_of, escaped, name_of, place_of
from everloop.store import schema

from .conftest import Home

ALL = ("read", "chat")
BEFORE = next(n for n, each in enumerate(schema.MIGRATIONS) if "tokens ADD COLUMN platforms" in "".join(each))


async def test_a_token_is_known_with_the_platforms_that_it_names(store: Store):
    id = await store.keep_token("owner", "bot", "hash", ALL, platforms=["discord", "my team"])
    assert await store.known_token("hash") == Known(id, "owner", "owner", ALL, 0.0, ("discord", "my%20team"))
    assert [row.platforms for row in await store.tokens("owner")] == [("discord", "my team")]
    (line,) = [each for each in await store.audit() if each.deed == "token.made"]
    assert '"platforms":["discord","my team"]' in line.detail


async def spoken(store: Store, platform: str, owner: str = "owner") -> None:
    known_as = platform if owner == "owner" else f"{escaped(owner)}/{platform}"
    address = place_of("platform", known_as, "s1", user="7", room="c1")
    said = Said((Text("hi"),), author_of(known_as, "7"), str(address))
    await store.receive(Inbound(address, f"{owner} {platform}", said, owner))


async def test_an_older_token_keeps_the_platforms_of_its_owners_bots_and_gets_no_other(home: Home):
    old = await home.connect(migrations=schema.MIGRATIONS[:BEFORE])
    for platform, owner in (("discord", "owner"), ("my team", "owner"), ("slack", "web:ada"), ("a/b", "web:ada")):
        await spoken(old, platform, owner)
    await home.write("INSERT INTO users(id, name, role, created) VALUES('web:ada', 'Ada', 'user', 0)")
    await home.write("INSERT INTO users(id, name, role, created) VALUES('web:bob', 'Bob', 'user', 0)")
    for owner, name, scopes in (
        ("owner", "bot", "read chat"),
        ("owner", "reader", "read"),
        ("web:ada", "hers", "chat"),
        ("web:bob", "his", "chat"),
    ):
        await home.write(
            "INSERT INTO tokens(id, owner, name, hash, scopes, at, until) "
            f"VALUES('{name}', '{owner}', '{name}', '{name}', '{scopes}', 0, 0)"
        )
    await home.lose(old)
    store = await home.connect()
    found = {name: await store.known_token(name) for name in ("bot", "reader", "hers", "his")}
    assert {name: known and sorted(known.platforms) for name, known in found.items()} == {
        "bot": ["discord", "my%20team"],
        "reader": [],
        "hers": ["a%2Fb", "slack"],
        "his": [],
    }


async def test_what_nobody_could_fetch_in_older_days_does_not_come_all_at_once_and_what_is_fresh_does(home: Home):
    old = await home.connect(migrations=schema.MIGRATIONS[:BEFORE])
    for user, channel in (("1", "platform"), ("2", "platform"), ("3", "webhook")):
        address = place_of(channel, "discord", "", user=user, room="")
        said = Said((Text("/help"),), f"discord:{user}", str(address))
        await old.command(Inbound(address, user, said), "none", f"to {user}")
    await home.write("UPDATE outbox SET at = at - 90000 WHERE chat <> 'platform:discord//@2'")
    await home.lose(old)
    await home.connect()
    rows = await home.rows("SELECT chat, state FROM outbox ORDER BY id")
    assert rows == [
        ("platform:discord//@1", "dropped"),
        ("platform:discord//@2", "pending"),
        ("webhook:discord//@3", "pending"),
    ]


def test_a_name_that_was_escaped_is_found_again():
    names = ["discord", "my team/chat", "ünï:c%de", "100%", "!", "@a.b_c-d~e"]
    assert [name_of(escaped(each)) for each in names] == names
    assert name_of(escaped("ü" * 300)) == escaped("ü" * 300)
