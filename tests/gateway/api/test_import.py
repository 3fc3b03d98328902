"""Moving in through the gateway: sent or named by the owner, looked at, done, and bounded."""

import os
from pathlib import Path
from typing import Any

import pytest

from everloop.app import import_desk
from everloop.app.access import new_token, token_scopes
from everloop.app.records import open_records
from everloop.testing import Say, ScriptedModel
from tests.gateway.api.test_setup import Door, opened
from tests.moving.foreign_homes import FIXTURES, chatgpt_export, openclaw_home

HELLO = ScriptedModel(Say("hello"))


async def sent(door: Door, data: bytes) -> tuple[int, Any]:
    async with door.client.post("/api/import/upload", data=data) as answer:
        return answer.status, await answer.json()


async def done(door: Door, **wanted: Any) -> Any:
    """How it stands when it has ended."""
    status, told = await door.send("POST", "/api/import", wanted)
    assert status == 202, told
    standing = told
    while standing["state"] == "running":
        standing = await door.get("/api/import")
    return standing


async def test_an_export_that_was_sent_is_looked_at_and_taken_over_once(tmp_path: Path):
    export = chatgpt_export(tmp_path / "export.zip").read_bytes()
    async with opened(tmp_path / "home", provider=HELLO) as door:
        assert (await door.get("/api/import"))["state"] == "none"
        status, kept = await sent(door, export)
        assert (status, kept["size"]) == (201, len(export))
        foretold = await done(door, kind="chatgpt", upload=kept["upload"])
        assert (foretold["state"], foretold["counts"], foretold["messages"]) == ("done", {"conversation": 2}, 12)
        assert (await door.get("/api/sessions"))["sessions"] == []
        real = await done(door, kind="chatgpt", upload=kept["upload"], dry_run=False)
        assert {**real, "wanted": None} == {**foretold, "wanted": None}
        listed = (await door.get("/api/sessions"))["sessions"]
        assert sorted(each["title"] for each in listed) == ["Garden 1", "Garden 2"]
        assert not (tmp_path / "home" / import_desk.EXPORTS).exists()
        refused = await door.send("POST", "/api/import", {"kind": "chatgpt", "upload": kept["upload"]})
        assert (refused[0], refused[1]["error"]["message"]) == (409, import_desk.NO_UPLOAD)
        _, again = await sent(door, export)
        assert (await done(door, kind="chatgpt", upload=again["upload"], dry_run=False))["there"] == {"conversation": 2}


def held_open(folder: Path) -> list[str]:
    """What of a folder this process has open, removed or not."""
    found = [place_of(number) for number in os.listdir("/proc/self/fd")]
    return [place for place in found if place.startswith(str(folder))]


def place_of(number: str) -> str:
    """Nothing when it was closed meanwhile, as by another thread."""
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except FileNotFoundError:
        return ""


async def test_an_export_that_was_taken_over_takes_no_room_any_more(tmp_path: Path):
    export = chatgpt_export(tmp_path / "export.zip").read_bytes()
    broken = chatgpt_export(tmp_path / "broken.zip").read_bytes().replace(b"Garden", b"gARDEN")  # not as it was packed
    folder = tmp_path / "home" / import_desk.EXPORTS
    async with opened(tmp_path / "home", provider=HELLO) as door:
        for data, dry_run, state in ((export, True, "done"), (broken, False, "failed"), (export, False, "done")):
            _, kept = await sent(door, data)
            assert (await done(door, kind="chatgpt", upload=kept["upload"], dry_run=dry_run))["state"] == state
            assert held_open(folder) == []
        with (tmp_path / "export.zip").open("rb"):  # a look that cannot fail would be none
            assert held_open(tmp_path) != []


@pytest.mark.parametrize("kind", ["nanobot", "openclaw"])
async def test_a_home_on_the_gateways_machine_is_taken_over_while_the_gateway_runs(kind: str, tmp_path: Path):
    source = FIXTURES / "nanobot" if kind == "nanobot" else openclaw_home(tmp_path / "other")
    home = tmp_path / "home"
    async with opened(home, provider=HELLO) as door:
        foretold = await done(door, kind=kind, path=str(source))
        assert not (home / "config.toml").exists()
        real = await done(door, kind=kind, path=str(source), dry_run=False)
        assert (real["state"], real["counts"], real["left"]) == ("done", foretold["counts"], foretold["left"])
        assert len((await door.get("/api/sessions"))["sessions"]) == 2
        assert (await done(door, kind=kind, path=str(source), dry_run=False))["taken"] == []
    assert "made-up" not in (home / "config.toml").read_text()


async def test_what_cannot_be_read_is_told_in_a_sentence(tmp_path: Path):
    async with opened(tmp_path / "home", provider=HELLO) as door:
        _, kept = await sent(door, b"no archive")
        for wanted in (
            {"kind": "claude", "upload": kept["upload"]},
            {"kind": "openclaw", "path": str(tmp_path / "no")},
            {"kind": "openclaw", "path": "~nobody-of-this-name/x"},
        ):
            standing = await done(door, **wanted)
            assert (standing["state"], standing["taken"]) == ("failed", [])
            assert standing["error"]
        for wanted in ({"kind": "chatgpt"}, {"kind": "chatgpt", "upload": "../x"}):
            assert (await door.send("POST", "/api/import", wanted))[0] == 409


async def test_what_is_sent_is_bounded_and_what_was_cut_off_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(import_desk, "LARGEST", 1000)
    async with opened(tmp_path / "home", provider=HELLO) as door:
        status, told = await sent(door, b"x" * 1001)
        assert (status, told["error"]["code"]) == (413, "too_large")
        assert not (tmp_path / "home" / import_desk.EXPORTS).exists()
        assert (await sent(door, b"x" * 1000))[0] == 201


async def test_a_token_that_runs_out_neither_brings_in_nor_takes_along_what_would_outlive_it(tmp_path: Path):
    """A backup holds the hashes of every token, and settings that are brought in let people in for good."""
    async with opened(tmp_path / "home", provider=HELLO) as door:
        async with open_records(door.home) as records:
            fleeting = await new_token(records.store, "owner", "fleeting", token_scopes(), 3600)
        headers = {"Authorization": f"Bearer {fleeting}"}
        asked: list[tuple[str, str, object]] = [
            ("POST", "/api/import", {"kind": "nanobot", "path": str(FIXTURES / "nanobot")}),
            ("PUT", "/api/backup/schedule", {"every": "daily", "keep": 1}),
            ("POST", "/api/backup/adopt", {}),
            ("GET", "/api/backup/files/everloop-20260101-000000.tar.gz", None),
        ]
        refused = [(await door.send(method, path, body, **headers))[1]["error"] for method, path, body in asked]
        async with door.client.post("/api/import/upload", data=b"x", headers=headers) as answer:
            refused.append((await answer.json())["error"])
        assert {each["message"] for each in refused} == {"A token that runs out lets nobody in for good."}
        assert (await door.get("/api/import"))["state"] == "none"
        assert (await door.send("POST", "/api/import", asked[0][2]))[0] == 202  # one that lasts may
