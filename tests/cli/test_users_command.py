"""`everloop users`, as the owner types it."""

import msgspec
from tests.cli.person import is_one_plain_sentence


async def test_people_are_introduced_changed_and_listed(person):
    added = await person.run("users", "add", "Anna", "--account", "telegram:12345")
    assert (added.status, added.out) == (0, "Anna (telegram:12345) is user from now on.\n")
    said = [
        (await person.run("users", *words)).out
        for words in (
            ("role", "anna", "admin"),
            ("rename", "anna", "Anne"),
            ("link", "Anne", "discord:9"),
            ("block", "discord:9"),
            ("unblock", "telegram:12345"),
        )
    ]
    assert said == [
        "Anna is admin from now on.\n",
        "That is Anne from now on.\n",
        "discord:9 is Anne from now on.\n",
        "Anne is heard nowhere any more.\n",
        "Anne is heard again.\n",
    ]
    listed = msgspec.json.decode((await person.run("users", "list", "--json")).out)["users"]
    told = [(each["id"], each["name"], each["role"], each["blocked"], each["accounts"]) for each in listed]
    assert told == [
        ("owner", "owner", 3, False, []),
        ("telegram:12345", "Anne", 2, False, ["telegram:12345", "discord:9"]),
    ]
    assert "telegram:12345, discord:9" in (await person.run("users")).out


async def test_what_cannot_be_is_one_sentence(person):
    for words in (
        ("role", "nobody", "user"),
        ("role", "owner", "user"),
        ("pair", "ABCDEFGH"),
        ("unlink", "telegram:1"),
        ("add", " "),
        ("add", "Owner"),
    ):
        ran = await person.run("users", *words)
        assert (ran.status, ran.out) == (1, "")
        assert is_one_plain_sentence(ran.err), ran.err
    assert (await person.run("users", "pair")).out == "Nobody waits to be let in.\n"


async def test_who_is_introduced_without_an_account_and_invited_from_here_is_told_what_is_missing(person):
    added = await person.run("users", "add", "Anna Berg")
    with_account = await person.run("users", "add", "Ben", "--account", "telegram:1")
    invited = await person.run("users", "invite", "anna berg")
    (person.home / "config.toml").write_text('[gateway]\nallowed_hosts = ["agent.example.com"]\n')
    elsewhere = await person.run("users", "invite", "anna berg")
    assert "everloop users invite 'Anna Berg'" in added.err
    assert "everloop users link 'Anna Berg' ACCOUNT" in added.err
    assert invited.out.startswith("http://127.0.0.1:")
    assert invited.err.startswith("Only this machine can open that link.")
    assert "docs/gateway.md" in invited.err
    assert (with_account.err, elsewhere.err) == ("", "")
    assert elsewhere.out.startswith("https://agent.example.com/")
