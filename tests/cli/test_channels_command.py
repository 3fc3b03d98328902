"""`everloop channels` as people run it, with a channel of ours and one of a stranger's package."""

import json
from collections.abc import AsyncIterator

import pytest
from tests.channels.parrot import PASSWORD, PLUGGED, TOKEN, Cage
from tests.cli.at_terminal import AtTerminal
from tests.cli.person import Person, Ran, is_one_plain_sentence
from tests.cli.test_models_command import files_with


@pytest.fixture
async def cage() -> AsyncIterator[Cage]:
    async with Cage().open() as cage:
        yield cage


@pytest.fixture
def keeper(person: Person) -> Person:
    """Somebody who has the stranger's package."""
    person.environment["PYTHONPATH"] = str(PLUGGED)
    return person


async def test_all_channels_that_there_are_are_listed_with_who_brings_them(keeper: Person):
    ran = await keeper.run("channels", "list", "--json")
    rows = {row["name"]: (row["title"], row["by"], row["state"]) for row in json.loads(ran.out)["channels"]}
    assert rows["webhook"] == ("Webhook", "everloop", "unset")
    assert rows["parrot"] == ("parrot", "parrot-channel", "unset")


async def test_a_channel_is_tried_kept_tested_and_removed_and_its_token_is_shown_nowhere(keeper: Person, cage: Cage):
    cage.scopes = ["speak"]
    given = ("--set-file", "token=-", f"url={cage.url}")  # in any order
    added = await keeper.run("channels", "add", "parrot", *given, typed=TOKEN.encode())
    assert (added.status, added.out) == (
        0,
        "It answers: polly, https://parrot.example/polly\nParrot is set up.\n",
    )
    assert "Missing: the parrot may not fly: open its cage\n" in added.err
    assert (keeper.home / "config.toml").read_text() == (
        f'[channels.parrot]\nurl = "{cage.url}"\ntoken = "${{vault:parrot.token}}"\n'
    )
    tested = await keeper.run("channels", "test", "parrot")
    assert (tested.status, tested.err) == (1, "Missing: the parrot may not fly: open its cage\n")
    cage.scopes.append("fly")
    assert await keeper.run("channels", "test", "parrot") == Ran(
        0, "It answers: polly, https://parrot.example/polly\n", ""
    )
    status = await keeper.run("channels", "status", "parrot")
    todo = "parrot: Start the gateway: everloop gateway. One that runs already opens it within seconds\n"
    assert ("not running" in status.out, status.err) == (True, todo)
    noted = await keeper.run("audit")
    asked = await keeper.run("channels", "remove", "parrot")
    assert (asked.status, is_one_plain_sentence(asked.err)) == (2, True)
    removed = await keeper.run("channels", "remove", "parrot", "--yes")
    assert removed == Ran(0, "parrot is removed, with its secrets. Its conversations stay.\n", "")
    assert (keeper.home / "config.toml").read_text() == ""
    assert "keeps no secrets" in (await keeper.run("secrets")).out
    again = await keeper.run("channels", "remove", "parrot", "--yes")
    assert (again.status, again.err) == (1, "everloop: the channel parrot is not set up\n")
    everything = "".join(ran.out + ran.err for ran in (added, tested, status, noted, asked, removed, again))
    assert ("channel.added" in noted.out, TOKEN in everything, files_with(TOKEN, keeper.home)) == (True, False, [])


async def test_what_the_platform_refuses_is_one_sentence_without_the_token(keeper: Person, cage: Cage):
    ran = await keeper.run("channels", "add", "parrot", f"url={cage.url}", typed=b"wrong-canary-0001")
    assert (ran.status, ran.out, ran.err) == (
        1,
        "",
        "everloop: the parrot does not know the token …; ask it for another. Nothing was written\n",
    )


async def test_a_locked_vault_is_told_with_what_to_do_and_nothing_is_written(keeper: Person, cage: Cage):
    await keeper.run("secrets", "set", "other", typed=b"something-secret")
    (keeper.home / "vault.key").unlink()
    ran = await keeper.run("channels", "add", "parrot", f"url={cage.url}", f"token={TOKEN}")
    assert (ran.status, is_one_plain_sentence(ran.err), "vault.key is missing" in ran.err) == (1, True, True)
    assert not (keeper.home / "config.toml").exists()
    (keeper.home / "config.toml").write_text('[channels.parrot]\nurl = "http://x"\ntoken = "${vault:other}"\n')
    status = await keeper.run("channels", "status")
    assert ("wrong" in status.out, "vault.key is missing" in status.err) == (True, True)


async def test_a_login_makes_a_token_of_a_password_that_is_kept_nowhere(keeper: Person, cage: Cage):
    wrong = await keeper.run("channels", "login", "parrot", f"url={cage.url}", typed=b"canary-of-a-wrong-password")
    assert (wrong.status, wrong.err) == (1, "everloop: the parrot does not know the password …\n")
    ran = await keeper.run("channels", "login", "parrot", f"url={cage.url}", typed=PASSWORD.encode())
    assert (ran.status, ran.out.splitlines()[-1]) == (0, "Parrot is set up.")
    assert 'token = "${vault:parrot.token}"' in (keeper.home / "config.toml").read_text()
    assert (PASSWORD in ran.out + ran.err, files_with(PASSWORD, keeper.home)) == (False, [])
    none = await keeper.run("channels", "login", "webhook")
    assert (none.status, none.err) == (
        2,
        "everloop: Webhook has no login; set it up with: everloop channels add webhook\n",
    )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("whatsapp", "there is no channel 'whatsapp' (WhatsApp has none in this version)"),
        ("../x", "there is no channel"),
    ],
)
async def test_a_channel_that_there_is_not_is_one_sentence(person: Person, name: str, says: str):
    for word in ("add", "test", "login", "status"):
        ran = await person.run("channels", word, name)
        assert (ran.status, is_one_plain_sentence(ran.err)) == (1, True)
        assert says in ran.err


async def test_what_another_agents_settings_name_is_told_and_stands_nowhere_in_the_way(person: Person):
    person.home.mkdir(exist_ok=True)
    names = ("whatsapp", "feishu", "dingtalk", "qq", "mochat")
    tables = {name: {"enabled": True, "bridgeUrl": "ws://localhost:3001"} for name in names}
    (person.home / "config.json").write_text(json.dumps({"channels": {**tables, "discord": {"enabled": False}}}))
    ran = await person.run("channels")
    told = [line.partition(" is set, but")[0].partition(": ")[0] for line in ran.err.splitlines()]
    assert (ran.status, told, ran.err.count("has no channel for")) == (0, list(names), len(names))


async def test_the_settings_of_another_agent_are_read_as_they_are(person: Person):
    person.home.mkdir(exist_ok=True)
    telegram = {"enabled": True, "token": "123456:AAE-canary-of-a-bot", "allowFrom": ["7"]}
    others = {
        "whatsapp": {"enabled": True, "bridge_url": "ws://x"},
        "discord": {"enabled": False, "gatewayUrl": "wss://x"},
    }
    (person.home / "config.json").write_text(json.dumps({"channels": {"telegram": telegram, **others}}))
    ran = await person.run("channels", "--json")
    states = {row["name"]: row["state"] for row in json.loads(ran.out)["channels"]}
    wanted = {"telegram": "stopped", "whatsapp": "wrong", "discord": "off"}
    assert ({name: states[name] for name in wanted}, "canary" in ran.out + ran.err) == (wanted, False)


async def test_at_a_terminal_one_is_told_where_to_get_the_token_and_types_it_unseen(keeper: Person, cage: Cage):
    async with AtTerminal(keeper, "channels", "add", "parrot") as terminal:
        await terminal.sees("Where the parrot lives: ")
        terminal.type(cage.url)
        await terminal.sees("What the parrot told you: ")
        terminal.type(TOKEN)
        await terminal.sees("What it calls you (may be left out): ")
        terminal.type("")
        await terminal.sees("Parrot is set up.")
        shown = terminal.raw.decode()
    assert "1. Ask the parrot for a token, which it tells whoever feeds it." in shown
    assert TOKEN not in shown


async def test_what_is_to_be_done_for_several_channels_is_said_once(keeper: Person, cage: Cage):
    await keeper.run("channels", "add", "parrot", f"url={cage.url}", typed=TOKEN.encode())
    hook = ("url=http://127.0.0.1:9/x", "--no-test", "secret=0123456789abcdef")
    assert (await keeper.run("channels", "add", "webhook", *hook)).status == 0
    status = await keeper.run("channels", "status")
    assert status.err == (
        "webhook, parrot: Start the gateway: everloop gateway. One that runs already opens it within seconds\n"
    )
