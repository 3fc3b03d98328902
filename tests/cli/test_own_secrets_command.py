"""`everloop secrets key` and `secrets credential`: what the owner keeps on somebody's behalf."""

import json

import pytest
from tests.cli.person import Person, Ran, is_one_plain_sentence

from everloop.cli.secrets import NO_SECRETS

KEY, VALUE = b"sk-canary-annas\n", b"sk-canary-github\n"


async def test_what_is_a_persons_own_is_kept_listed_and_forgotten_and_never_told(person: Person):
    await person.run("users", "add", "Anna", "--account", "web:7")
    kept = await person.run("secrets", "key", "set", "openai", "--who", "Anna", typed=KEY)
    told = await person.run(
        "secrets", "credential", "set", "github", "--who", "Anna", "--host", "api.github.com", "--commands", typed=VALUE
    )
    listed = await person.run("secrets", "list", "--who", "Anna")
    as_json = await person.run("secrets", "list", "--who", "Anna", "--json")
    houses = await person.run("secrets", "list")
    gone = [
        await person.run("secrets", "key", "forget", "openai", "--who", "Anna"),
        await person.run("secrets", "credential", "forget", "github", "--who", "Anna"),
        await person.run("secrets", "list", "--who", "Anna"),
        await person.run("secrets", "key", "forget", "openai", "--who", "Anna"),
    ]
    use = "sent to https://api.github.com as Authorization; to commands as $GITHUB"
    assert kept == Ran(0, "", "Models of openai answer Anna with a key of their own from now on.\n")
    assert told == Ran(0, "", f"github is kept for the tools of Anna: {use}.\n")
    assert [line.split()[:2] for line in listed.out.splitlines()] == [
        ["KIND", "NAME"],
        ["key", "openai"],
        ["credential", "github"],
    ]
    assert use in listed.out
    rows = json.loads(as_json.out)
    assert [[each["name"] for each in rows["credentials"]], [each["provider"] for each in rows["keys"]]] == [
        ["github"],
        ["openai"],
    ]
    assert houses.out == f"{NO_SECRETS}\n"
    assert [ran.status for ran in gone] == [0, 0, 0, 1]
    assert gone[2].out == "Anna keeps nothing of their own.\n"
    assert "canary" not in "".join(ran.out + ran.err for ran in (kept, told, listed, as_json, *gone))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("key", "set", "openai", "--who", "Nobody"), "there is nobody 'Nobody'"),
        (("key", "set", "openai", "--who", "owner"), "the owner's keys are the house's"),
        (("key", "set", "nowhere", "--who", "owner"), "the owner's keys are the house's"),
        (("credential", "set", "x"), "say for which hosts it is"),
        (("credential", "set", "x", "--host", "*"), "'*' is"),
        (("credential", "set", "../x", "--host", "a.example"), "the name of a secret is"),
    ],
)
async def test_what_is_not_kept(person: Person, words: tuple[str, ...], says: str):
    ran = await person.run("secrets", *words, typed=VALUE)
    assert (ran.status, ran.out, is_one_plain_sentence(ran.err), says in ran.err) == (1, "", True, True)
    assert "canary" not in ran.err
