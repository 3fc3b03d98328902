"""`everloop audit`, as the owner types it."""

import asyncio

import apsw
import msgspec
from tests.cli.person import Person, is_one_plain_sentence


async def test_what_the_owner_did_at_the_terminal_is_listed_and_sound(person: Person):
    added = await asyncio.gather(*(person.run("users", "add", name) for name in ("Anna", "Ben", "Cleo")))
    assert [each.status for each in added] == [0, 0, 0]  # three processes at once
    await person.run("users", "role", "Anna", "admin")
    await person.run("tokens", "create", "bot")
    await person.run("models", "key", "set", "openai", typed=b"sk-canary-of-the-audit\n")
    listed = msgspec.json.decode((await person.run("audit", "--json")).out)["lines"]
    by = {(each["actor"], each["authority"]) for each in listed}
    assert by == {("owner", "owner at the terminal")}
    deeds = ["person.added"] * 3 + ["person.role", "token.made", "secret.kept"]
    assert [each["deed"] for each in listed] == deeds
    some = await person.run("audit", "--who", "anna", "--what", "person", "--since", "1h")
    assert [line.split()[-5:] for line in some.out.splitlines()][2][-4:] == ["from", "user,", "to", "admin"]
    assert "Anna" not in some.out
    checked = await person.run("audit", "--verify")
    head = (await person.run("audit", "--head")).out.strip()
    assert (checked.status, checked.out) == (0, f"All 6 lines are as they were written. The last is {head}\n")

    database = apsw.Connection(str(person.home / "everloop.db"))
    database.execute("DROP TRIGGER audit_unchanged; UPDATE audit SET actor = 'nobody' WHERE id = 4")
    database.close()
    spoiled = await person.run("audit", "--verify", "--against", head)
    sentence = "Line 4 is not sound: it was changed after it was written. The 3 before it are as written.\n"
    assert (spoiled.status, spoiled.out) == (1, sentence)


async def test_what_cannot_be_is_one_sentence(person: Person):
    for words in (
        ("--since", "yesterday"),
        ("--since", "2026-13-01"),
        ("--what", "nonsense"),
        ("--against", "x", "--verify"),
        ("--against", "1:ab"),
        ("--limit", "0"),
    ):
        ran = await person.run("audit", *words)
        assert (ran.status, ran.out) == (2, ""), words
        assert is_one_plain_sentence(ran.err), ran.err
    assert (await person.run("audit")).out == "Nothing of the kind was done.\n"
    assert (await person.run("audit", "--verify")).out == "All 0 lines are as they were written. The last is none\n"
