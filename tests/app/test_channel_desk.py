"""Setting up a channel: all is checked and tried before anything is written, and no secret is told."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from everloop.app.channel_desk import open_channel_desk
from everloop.app.channel_status import ChannelStatus
from everloop.app.listening import unopened_lease_of
from everloop.app.records import open_records
from everloop.app.secrets import keep_secret, kept_secrets
from everloop.errors import EverloopError
from everloop.ports.channel import Probed
from everloop.settings import load
from tests.channels.parrot import TOKEN, Cage, plugged_in

FILE = "[channels.parrot]\n"


@pytest.fixture
async def cage() -> AsyncIterator[Cage]:
    async with Cage().open() as cage:
        yield cage


@pytest.fixture(autouse=True)
def package() -> Iterator[None]:
    with plugged_in():
        yield


async def secrets_in(home: Path) -> list[str]:
    async with open_records(home) as records:
        return sorted(await kept_secrets(records.vault))


def text_of(home: Path) -> str:
    return (home / "config.toml").read_text() if (home / "config.toml").exists() else ""


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"token": "wrong-canary-0001"},
            "does not know the token …; ask it for another. Nothing was written",
        ),
        ({"token": "tiny"}, "channels.parrot.token is too short: …"),
        ({}, "channels.parrot.token is missing: What the parrot told you"),
        ({"token": ""}, "channels.parrot.token is missing: What the parrot told you"),
        ({"token": TOKEN, "url": ""}, "channels.parrot.url is missing: Where the parrot lives"),
        ({"token": "wrong-canary-0001", "wings": "2"}, "there is no setting channels.parrot.wings"),
        ({"token": "wrong\x00canary-0001"}, "a secret is one line"),
        ({"token": TOKEN, "url": "http://127.0.0.1:9"}, "cannot be reached"),
        ({"token": TOKEN, "url": "http://[broken"}, "address cannot be understood"),
        ({"token": "${vault:nothing}"}, "needs nothing from the vault"),
        ({"token": "${NOT_SET_ANYWHERE}"}, "needs the environment variable NOT_SET_ANYWHERE"),
    ],
)
async def test_what_cannot_work_is_a_sentence_and_nothing_is_written(
    tmp_path: Path, cage: Cage, given: dict[str, Any], says: str
):
    async with open_channel_desk(tmp_path) as desk:
        with pytest.raises(EverloopError) as raised:
            await desk.add("parrot", {"url": cage.url, **given})
    assert says in str(raised.value)
    assert ("canary" in str(raised.value), text_of(tmp_path), await secrets_in(tmp_path)) == (False, "", [])


async def test_what_works_is_written(tmp_path: Path, cage: Cage):
    async with open_channel_desk(tmp_path) as desk:
        added = await desk.add("parrot", {"url": cage.url, "token": TOKEN})
        tested = await desk.test("parrot")
    probed = Probed(account="polly", link="https://parrot.example/polly")
    assert (added.probed, tested, added.row.state) == (probed, probed, "stopped")
    assert text_of(tmp_path) == f'{FILE}url = "{cage.url}"\ntoken = "${{vault:parrot.token}}"\n'
    assert await secrets_in(tmp_path) == ["parrot.token"]


async def test_what_is_away_is_kept_by_who_does_not_want_it_tried(tmp_path: Path):
    async with open_channel_desk(tmp_path) as desk:
        added = await desk.add("parrot", {"url": "http://127.0.0.1:9", "token": TOKEN}, test=False)
    assert (added.probed, await secrets_in(tmp_path)) == (None, ["parrot.token"])


async def test_an_address_is_not_changed_under_a_token_that_is_kept(tmp_path: Path, cage: Cage):
    """Else whoever may change settings, and does not know the token, could have it sent to themselves."""
    async with open_channel_desk(tmp_path) as desk, Cage().open() as another:
        await desk.add("parrot", {"url": cage.url, "token": TOKEN})
        before = text_of(tmp_path)
        with pytest.raises(EverloopError, match=r"channels.parrot.token is missing"):
            await desk.add("parrot", {"url": another.url})
        assert text_of(tmp_path) == before
        await desk.add("parrot", {"url": another.url, "token": TOKEN})
    assert text_of(tmp_path) == before.replace(cage.url, another.url)


async def test_what_is_set_up_anew_keeps_what_it_does_not_ask_for_and_is_switched_on(tmp_path: Path, cage: Cage):
    before = {"enabled": False, "nickName": "old", "volume": 3, "token": "old-token-1"}
    (tmp_path / "config.json").write_text(json.dumps({"channels": {"parrot": before, "other": {"x": 1}}}))
    async with open_channel_desk(tmp_path) as desk:
        with pytest.raises(EverloopError, match=r"there is no setting channels.parrot.nick_name"):
            await desk.add("parrot", {"url": cage.url, "token": TOKEN})
        del before["nickName"]
        (tmp_path / "config.json").write_text(json.dumps({"channels": {"parrot": before, "other": {"x": 1}}}))
        await desk.add("parrot", {"url": cage.url, "token": TOKEN})
    written = json.loads((tmp_path / "config.json").read_text())["channels"]
    parrot = {"enabled": True, "volume": 3, "token": "${vault:parrot.token}", "url": cage.url}
    assert written == {"parrot": parrot, "other": {"x": 1}}


async def test_a_secret_that_others_may_use_stays_when_a_channel_goes(tmp_path: Path):
    (tmp_path / "config.toml").write_text(f'{FILE}url = "http://127.0.0.1:9"\ntoken = "${{vault:birds}}"\n# mine\n')
    async with open_records(tmp_path) as records:
        await keep_secret(records.vault, "birds", TOKEN)
        await keep_secret(records.vault, "parrot.token", "of-an-attempt-that-broke-off")
        await keep_secret(records.vault, "parrot.cage", "somebody's own")
    async with open_channel_desk(tmp_path) as desk:
        assert await desk.remove("parrot") == ["birds"]
        with pytest.raises(EverloopError, match=r"the channel parrot is not set up"):
            await desk.remove("parrot")
    assert await secrets_in(tmp_path) == ["birds", "parrot.cage"]


async def test_a_file_that_cannot_be_changed_here_keeps_no_secret_either(tmp_path: Path, cage: Cage):
    (tmp_path / "config.toml").write_text("[channels]\nparrot = true\n")
    async with open_channel_desk(tmp_path) as desk:
        with pytest.raises(EverloopError, match=r"cannot be changed here, for the way the file is written"):
            await desk.add("parrot", {"url": cage.url, "token": TOKEN})
    assert (text_of(tmp_path), await secrets_in(tmp_path)) == ("[channels]\nparrot = true\n", [])


async def test_who_writes_into_the_file_meanwhile_loses_nothing(tmp_path: Path, cage: Cage):
    (tmp_path / "config.toml").write_text("# my file\n[gateway]\nport = 1 # mine\n")
    async with open_channel_desk(tmp_path) as desk:
        await desk.add("parrot", {"url": cage.url, "token": TOKEN})
    assert text_of(tmp_path).startswith("# my file\n[gateway]\nport = 1 # mine\n")


async def test_one_that_somebody_is_about_to_say_is_wrong_is_told_by_its_settings(tmp_path: Path):
    (tmp_path / "config.toml").write_text("[channels]\nwebhook = 3\n")
    async with open_records(tmp_path) as records:
        await records.store.hold(unopened_lease_of("webhook"), 30)  # of which nothing is said yet
        status = ChannelStatus(tmp_path, records.store, records.vault)
        rows = {each.name: each for each in await status.rows(load(tmp_path, {}))}
    assert (rows["webhook"].state, "must be a table of settings" in rows["webhook"].why) == ("wrong", True)
