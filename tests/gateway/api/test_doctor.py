"""The doctor through the gateway: what it finds of the house that it stands in, what it mends, and the live log."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from everloop.app.access import new_token, token_scopes
from everloop.app.doctor import CHECKS
from everloop.app.records import open_records
from everloop.cli.logbook import LogFile
from everloop.core.people import Role
from everloop.ports.directory import Person
from everloop.ports.log_lines import LogLine
from everloop.testing import Say, ScriptedModel
from tests.gateway.api.test_setup import opened


def write(home: Path, message: str, level: int = logging.WARNING) -> None:
    book = LogFile(home / "logs" / "everloop.log")
    name = logging.getLevelName(level)
    book.emit(logging.makeLogRecord({"name": "everloop.x", "msg": message, "levelno": level, "levelname": name}))
    book.close()


async def events(answer: aiohttp.ClientResponse) -> AsyncIterator[list[LogLine]]:
    async for line in answer.content:
        if line.startswith(b"data: "):
            yield msgspec.json.decode(line[6:], type=list[LogLine])


async def test_the_house_is_looked_at_and_what_is_safe_is_mended(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel(Say("hello"))) as door:
        os.chmod(tmp_path, 0o755)
        seen = await door.get("/api/doctor")
        found = {each["check"]: each for each in seen["findings"]}
        assert seen["verdict"] in ("advice", "broken")
        assert set(found) == {check.name for _, check in CHECKS}
        assert [each["name"] for each in seen["checks"]] == [check.name for _, check in CHECKS]
        assert (found["file-modes"]["can_fix"], found["tasks"]["verdict"]) == (True, "ok")
        status, fixed = await door.send("POST", "/api/doctor/fix", {})
        assert status == 200
        assert [each["check"] for each in fixed["mended"]] == ["file-modes"]
        assert os.stat(tmp_path).st_mode & 0o777 == 0o700
        assert {each["check"]: each["verdict"] for each in fixed["now"]["findings"]}["file-modes"] == "ok"


async def test_who_asks_at_once_is_told_what_one_look_finds(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel(Say("hello"))) as door:
        one, other = await asyncio.gather(door.get("/api/doctor"), door.get("/api/doctor"))
        assert one == other


async def test_the_log_comes_as_it_is_written(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel(Say("hello"))) as door:
        for number in range(3):
            write(tmp_path, f"line {number}")
        async with door.client.get("/api/log?last=2") as answer:
            lines = events(answer)
            assert [line.message for line in await anext(lines)] == ["line 1", "line 2"]
            write(tmp_path, "it has failed", logging.ERROR)
            (line,) = await anext(lines)
            assert (line.level, line.message) == ("error", "it has failed")


async def test_a_token_that_was_revoked_hears_no_more_of_the_log(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel(Say("hello"))) as door:
        async with open_records(tmp_path) as records:
            token: Any = await new_token(records.store, "owner", "mine", ["admin"])
        async with door.client.get("/api/log", headers={"Authorization": f"Bearer {token}"}) as answer:
            lines = events(answer)
            await anext(lines)
            write(tmp_path, "heard")
            assert [line.message for line in await anext(lines)] == ["heard"]
            async with open_records(tmp_path) as records:
                assert await records.store.forget_token("owner", "mine")
            write(tmp_path, "not for them")
            assert [each async for each in lines] == []


async def test_where_there_is_no_log_yet_its_first_line_comes(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel(Say("hello"))) as door, door.client.get("/api/log") as answer:
        lines = events(answer)
        assert await anext(lines) == []
        write(tmp_path, "the first")
        assert [line.message for line in await anext(lines)] == ["the first"]


async def test_a_query_that_is_wrong_is_refused(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel(Say("hello"))) as door:
        for query in ("last=x", "last=5000", "more=1"):
            async with door.client.get(f"/api/log?{query}") as answer:
                assert answer.status == 400


@pytest.mark.parametrize("path", ["/api/doctor", "/api/log"])
async def test_nobody_but_the_owner_may_look(tmp_path: Path, path: str):
    async with opened(tmp_path, provider=ScriptedModel(Say("hello"))) as door:
        async with open_records(tmp_path) as records:
            await records.store.introduce(Person("web:7", "Anna", Role.ADMIN, accounts=("web:7",)))
            token: Any = await new_token(records.store, "web:7", "hers", token_scopes(), platforms=["discord"])
        async with door.client.get(path, headers={"Authorization": f"Bearer {token}"}) as answer:
            assert answer.status == 403
