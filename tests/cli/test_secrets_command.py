"""`everloop secrets` as people run it, and the channel that refers to one."""

import pytest
from tests.channels.platform import Receiver
from tests.cli.person import Person, Ran, is_one_plain_sentence
from tests.cli.test_models_command import files_with

from everloop.app.channels import Unopened, expanded, opened, secrets_named
from everloop.app.records import open_records
from everloop.app.secrets import keep_secret, take_out
from everloop.cli.secrets import NO_SECRETS
from everloop.errors import VaultLocked
from everloop.settings.shape import Settings

CANARY = "canary-of-a-token-31f0"
HOOK = {"url": "http://127.0.0.1:1/x", "secret": "${vault:hook.one}"}


async def test_a_secret_is_kept_listed_and_forgotten_and_never_told(person: Person):
    kept = await person.run("secrets", "set", "hook.one", typed=f"{CANARY}\n".encode())
    assert kept == Ran(0, "", "hook.one is kept in the vault: ${vault:hook.one}\n")
    assert files_with(CANARY, person.home) == []
    told = await person.run("secrets", "list")
    assert [line.split()[0] for line in told.out.splitlines()] == ["NAME", "hook.one"]
    as_json = await person.run("secrets", "--json")
    assert CANARY not in told.out + told.err + as_json.out + as_json.err
    assert '"name":"hook.one"' in as_json.out.replace(" ", "")
    assert await person.run("models", "key", "list") == Ran(0, "", "There are no keys in the vault.\n")
    assert await person.run("secrets", "forget", "hook.one") == Ran(0, "", "hook.one is forgotten.\n")
    assert (await person.run("secrets")).out == f"{NO_SECRETS}\n"


async def test_what_lies_open_would_be_found(person: Person):
    await person.run("secrets")
    (person.home / "config.toml").write_text(f"# {CANARY}\n")
    assert files_with(CANARY, person.home) == [person.home / "config.toml"]


@pytest.mark.parametrize(
    ("name", "typed", "says"),
    [
        ("hook", b"", "no secret was given"),
        ("hook", CANARY.encode() + b"\nand more", "a secret is one line"),
        ("hook", CANARY.encode() + b"\x00", "a secret is one line"),
        ("../hook", CANARY.encode(), "the name of a secret is"),
        ("a" * 101, CANARY.encode(), "the name of a secret is"),
    ],
)
async def test_what_is_not_kept(person: Person, name: str, typed: bytes, says: str):
    ran = await person.run("secrets", "set", name, typed=typed)
    assert (ran.status, ran.out, is_one_plain_sentence(ran.err)) == (1, "", True)
    assert says in ran.err
    assert CANARY not in ran.err
    assert (await person.run("secrets", "forget", name)).err == (
        f"everloop: there is no secret {name!r}; see: everloop secrets list\n"
    )


async def test_a_channel_is_given_what_it_refers_to(person: Person, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EVERLOOP_HOME", str(person.home))
    settings = Settings(channels={"webhook": HOOK})
    assert secrets_named(settings) == {"hook.one"}
    async with open_records() as records:
        missing = await expanded(settings, "webhook", records.vault)
        assert isinstance(missing, Unopened)
        assert missing.why.startswith("channels.webhook.secret needs hook.one from the vault")
        await keep_secret(records.vault, "hook.one", CANARY)
        known = await take_out(records.vault, {"hook.one", "another"})
        assert known == {"vault:hook.one": CANARY}
        values = await expanded(settings, "webhook", records.vault)
        assert values == {**HOOK, "secret": CANARY}
        assert opened("webhook", values, Receiver()).manifest.name == "webhook"
        (person.home / "vault.key").unlink()
        with pytest.raises(VaultLocked, match=r"vault.key is missing"):
            await take_out(records.vault, {"hook.one"})
        locked = await expanded(settings, "webhook", records.vault)
        assert isinstance(locked, Unopened)
        assert "vault.key is missing" in locked.sentence


def test_what_is_switched_off_needs_nothing_of_the_vault():
    assert secrets_named(Settings(channels={"webhook": {**HOOK, "enabled": False}})) == frozenset()
    assert secrets_named(Settings(channels={"webhook": "no table"})) == frozenset()
