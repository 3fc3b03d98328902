"""How much may be kept is changed while everloop runs."""

from pathlib import Path

import pytest

from everloop.app import open_desk
from everloop.errors import FileTooLarge, NoRoom
from everloop.testing import Say, ScriptedModel


async def pieces(size: int):
    yield b"x" * size


async def test_a_quota_and_the_size_of_a_file_hold_from_the_moment_on_that_they_are_set(tmp_path: Path):
    async with open_desk(tmp_path, provider=ScriptedModel([])) as desk:
        await desk.keep_file("web:anna", pieces(20_000), "before.txt")
        told = await desk.live_settings.change(
            {"files": {"max_bytes": 1_000_000, "quota": 1_200_000, "link_seconds": 90}}
        )
        with pytest.raises(FileTooLarge, match="it has more than 1,000,000 bytes"):
            await desk.keep_file("web:anna", pieces(1_000_001), "long.txt")
        await desk.keep_file("web:anna", pieces(900_000), "fits.txt")
        with pytest.raises(NoRoom, match="more than 1,200,000 bytes"):
            await desk.keep_file("web:anna", pieces(900_001), "more.txt")
        assert (desk.largest_file, await desk.file_quota("web:anna"), desk.link_seconds) == (1_000_000, 1_200_000, 90)
        assert [each for each in told.waiting if each.startswith("files.")] == []


async def test_where_the_files_lie_waits_for_the_next_start(tmp_path: Path):
    async with open_desk(tmp_path, provider=ScriptedModel([Say("ok")])) as desk:
        (tmp_path / "config.toml").write_text('[files]\nregion = "elsewhere"\nquota = 2_000_000\n')
        await desk.ask("one")
        assert (await desk.live_settings.look()).waiting == ["files.region"]
        assert await desk.file_quota("web:anna") == 2_000_000
