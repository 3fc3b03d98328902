"""Moving in where the store is PostgreSQL: the same comes as into SQLite, and once."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.moving.foreign_homes import FIXTURES, chatgpt_export, claude_export, openclaw_home
from tests.store.conftest import PostgresHome

from everloop.app import moving_hand
from everloop.app.moving import open_mover
from everloop.app.records import open_records


def source_in(folder: Path, kind: str) -> Path:
    match kind:
        case "nanobot":
            return FIXTURES / "nanobot"
        case "openclaw":
            return openclaw_home(folder)
        case "chatgpt":
            return chatgpt_export(folder / "export.zip")
    return claude_export(folder / "claude")


async def moved(home: Path, kind: str, source: Path) -> tuple[list[str], list[str], dict[str, int], list[str]]:
    async with open_mover(home, kind, source) as mover:
        report = await mover.move()
    async with open_records(home) as records:
        titles = [each.title for each in await records.store.conversations("owner")]
    return [each.name for each in report.taken], report.left, report.there, sorted(titles)


@pytest.mark.parametrize("kind", ["nanobot", "openclaw", "chatgpt", "claude"])
async def test_the_same_comes_into_postgres_as_into_sqlite(kind: str, tmp_path: Path, postgres_home: PostgresHome):
    source = source_in(tmp_path, kind)
    files, server = tmp_path / "files", tmp_path / "server"
    server.mkdir()
    (server / "config.toml").write_text(f'[store]\nurl = "{postgres_home.url}"\n')
    assert await moved(server, kind, source) == await moved(files, kind, source)
    taken, _, there, titles = await moved(server, kind, source)
    assert (taken, bool(there), bool(titles)) == ([], True, True)
    assert not (server / "everloop.db").exists()


async def test_what_would_fill_the_disk_is_left_and_comes_when_there_is_room(tmp_path: Path, monkeypatch: Any):
    home, export = tmp_path / "home", chatgpt_export(tmp_path / "export.zip")
    usual = moving_hand.SPARE
    monkeypatch.setattr(moving_hand, "SPARE", 10**18)
    taken, left, _, _ = await moved(home, "chatgpt", export)
    assert (taken, sum("make room, then run this again" in each for each in left)) == ([], 2)
    assert not [path for path in (home / "files").rglob("*") if path.is_file() and path.stat().st_size]
    monkeypatch.setattr(moving_hand, "SPARE", usual)
    assert (await moved(home, "chatgpt", export))[0] == ["Garden 1", "Garden 2"]


async def test_half_of_a_pair_and_a_zero_character_keep_nothing_from_coming(
    tmp_path: Path, postgres_home: PostgresHome
):
    theirs, export, home = tmp_path / "theirs", tmp_path / "export", tmp_path / "server"
    (theirs / "workspace" / "memory").mkdir(parents=True)
    (theirs / "config.json").write_text("{}")
    (theirs / "workspace" / "memory" / "history.jsonl").write_text(json.dumps({"content": "a \ud83d b\0"}))
    export.mkdir()
    (export / "conversations.json").write_text("[]")
    docs = [{"filename": "d.md", "content": "a \ud83d b"}]
    (export / "projects.json").write_text(json.dumps([{"name": "P", "docs": docs}]))
    home.mkdir()
    (home / "config.toml").write_text(f'[store]\nurl = "{postgres_home.url}"\n')
    assert (await moved(home, "nanobot", theirs))[:2] == (["HISTORY.md"], [])
    assert (await moved(home, "claude", export))[:2] == (["imported/claude/P/d.md"], [])
    assert (home / "workspace" / "imported" / "claude" / "P" / "d.md").read_text() == "a ? b"
