"""The routes of the workspace: whose it is, what comes with a file, and how a page of it is shown."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError
from aiohttp.test_utils import TestClient, TestServer

from everloop.app import open_desk
from everloop.gateway.api.framed import HTML, PDF
from everloop.testing import Say, ScriptedModel
from tests.gateway.api.stand_in import stand_in

Client = TestClient[Any, Any]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(30)


class Asking:
    """The API as somebody asks it."""

    def __init__(self, client: Client, home: Path) -> None:
        self.client = client
        self.home = home
        self.root = home / "workspace"

    async def __call__(self, method: str, what: str, who: str = "owner", data: Any = None, **headers: str) -> Any:
        sent = {"Authorization": f"Bearer {who}", **{name.replace("_", "-"): value for name, value in headers.items()}}
        return await self.client.request(method, f"/api/workspace{what}", headers=sent, data=data)


@pytest.fixture
async def asking(tmp_path: Path) -> AsyncIterator[Asking]:
    home = tmp_path / "home"
    async with (
        open_desk(home, provider=ScriptedModel(lambda shown: Say("yes"))) as agent,
        TestClient(TestServer(stand_in(agent))) as client,
    ):
        yield Asking(client, home)


async def test_everybody_sees_their_own_workspace_and_guests_none(asking: Asking):
    (asking.root / "mine.txt").write_text("the owner's")
    await asking("PUT", "/file?path=hers.txt", "user", b"ada's")
    listed = {
        who: [each["name"] for each in (await (await asking("GET", "", who)).json())["entries"]]
        for who in ("owner", "user")
    }
    assert "mine.txt" in listed["owner"]
    assert listed["user"] == ["hers.txt"]
    assert (asking.home / "people" / "ada" / "workspace" / "hers.txt").read_bytes() == b"ada's"
    asked = [("GET", ""), ("GET", "/file?path=mine.txt"), ("PUT", "/file?path=x"), ("DELETE", "/file?path=x")]
    asked.append(("POST", "/frame?path=mine.txt"))
    for who, status in (("user", {200, 201, 404}), ("guest", {403}), ("nobody", {401})):
        found = {(await asking(*each, who)).status for each in asked}
        assert found <= status, who
    reader = [(await asking(*each, "reader")).status for each in asked]
    assert reader == [403] * 5  # who may only read conversations does not read files
    assert (await asking("GET", "/file?path=../people/ada/workspace/hers.txt")).status == 404
    mine = str(asking.root / "mine.txt")
    assert [(await asking("GET", f"/file?path={mine}", who)).status for who in ("owner", "user")] == [200, 404]


@pytest.mark.parametrize(
    "content, kind, shown",
    [(b"<script>alert(1)</script>", "text/plain; charset=utf-8", "attachment"), (PNG, "image/png", "inline"),
     (b"<svg onload=alert(1)>", "text/plain; charset=utf-8", "attachment"),
     (b"%PDF-1.4 x", "application/pdf", "attachment"),
     (b"\0\1", "application/octet-stream", "attachment"), (b"", "text/plain; charset=utf-8", "attachment"),
     (("é" * 50_000).encode() + b"x", "text/plain; charset=utf-8", "attachment")],
)  # fmt: skip
async def test_a_file_comes_as_nothing_that_could_run(asking: Asking, content: bytes, kind: str, shown: str):
    (asking.root / "a.html").write_bytes(content)
    answer = await asking("GET", "/file?path=a.html")
    told = {name: answer.headers[name] for name in ("Content-Type", "X-Content-Type-Options", "Cache-Control")}
    assert (answer.status, await answer.read()) == (200, content)
    assert told == {"Content-Type": kind, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    assert answer.headers["Content-Disposition"].startswith(f'{shown}; filename="a.html"')
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"


@pytest.mark.parametrize(
    "asked, status, expected",
    [("bytes=0-2", 206, b"012"), ("bytes=7-", 206, b"789"), ("bytes=-2", 206, b"89"), ("bytes=8-99", 206, b"89"),
     ("bytes=5-3", 200, b"0123456789"), ("bytes=0-1,3-4", 200, b"0123456789"), ("lines=1-2", 200, b"0123456789"),
     ("bytes=-", 200, b"0123456789"), ("bytes=-99", 206, b"0123456789"), ("bytes=10-", 416, None),
     ("bytes=-0", 416, None)],
)  # fmt: skip
async def test_a_part_of_a_file_is_told(asking: Asking, asked: str, status: int, expected: bytes | None):
    (asking.root / "digits").write_bytes(b"0123456789")
    answer = await asking("GET", "/file?path=digits", Range=asked)
    assert answer.status == status
    if expected is not None:
        assert await answer.read() == expected
    if status == 206 and expected:
        begin = b"0123456789".index(expected)
        assert answer.headers["Content-Range"] == f"bytes {begin}-{begin + len(expected) - 1}/10"
    stale = await asking("GET", "/file?path=digits", Range=asked, If_Range='"another"')
    assert (stale.status, await stale.read()) == (200, b"0123456789")
    head = await asking("HEAD", "/file?path=digits")
    assert (head.status, head.headers["Content-Length"], await head.read()) == (200, "10", b"")


async def test_a_file_that_becomes_shorter_breaks_off(asking: Asking):
    size = 40_000_000
    (asking.root / "big").touch()
    os.truncate(asking.root / "big", size)
    answer = await asking("GET", "/file?path=big")
    read = len(await answer.content.readexactly(1000))
    os.truncate(asking.root / "big", 5000)
    with pytest.raises(ClientError):
        async with asyncio.timeout(30):
            read += len(await answer.read())
    assert int(answer.headers["Content-Length"]) == size


async def test_a_file_is_put_and_removed_and_can_be_had_back(asking: Asking):
    made = await asking("PUT", "/file?path=a.txt", data=b"one")
    again = await asking("PUT", "/file?path=a.txt", data=b"two")
    asked = await asking("PUT", "/file?path=a.txt&replace=true", data=b"two")
    kept = (await asked.json())["kept"]
    before = await asking.client.get(f"/api/files/{kept}", headers={"Authorization": "Bearer owner"})
    nowhere = await asking("PUT", "/file?path=none/a.txt", data=b"x")
    gone = [await asking("DELETE", "/file?path=a.txt"), await asking("DELETE", "/file?path=a.txt")]
    assert (made.status, await made.json()) == (201, {"path": "a.txt", "size": 3, "kept": ""})
    assert (again.status, (await again.json())["error"]["code"]) == (409, "exists")
    assert (asked.status, await before.read()) == (201, b"one")
    assert (nowhere.status, [each.status for each in gone]) == (404, [200, 404])
    assert not (asking.root / "a.txt").exists()


async def test_a_page_is_shown_with_everything_taken_from_it(asking: Asking):
    page = "<LINK rel=preconnect href=//secret.example><link rel=stylesheet href=x><linked><b>Ä</b>"
    (asking.root / "a.html").write_text(page)
    (asking.root / "a.pdf").write_bytes(b"%PDF-1.4 x")
    (asking.root / "a.bin").write_bytes(b"\0\1")
    html, pdf = await asking("POST", "/frame?path=a.html"), await asking("POST", "/frame?path=a.pdf")
    told = "<bgsound rel=preconnect href=//secret.example><bgsound rel=stylesheet href=x><linked><b>Ä</b>"
    assert (await html.text(), html.headers["Content-Type"]) == (told, "text/html; charset=utf-8")
    assert html.headers["Content-Security-Policy"] == HTML
    assert {"sandbox", "default-src 'none'"} <= set(HTML.split("; "))
    assert (pdf.headers["Content-Type"], pdf.headers["Content-Security-Policy"]) == ("application/pdf", PDF)
    assert {each.headers["X-Frame-Options"] for each in (html, pdf)} == {"SAMEORIGIN"}
    assert (await asking("POST", "/frame?path=a.bin")).status == 409
    assert (await asking("GET", "/frame?path=a.html")).status == 405  # it has no address that could be opened


@pytest.mark.parametrize("page", ["\ufeff<LiNk rel=x>", "<link/rel=x>", "<link\nrel=x>", "<svg><link>", "<link>"])
async def test_no_spelling_of_a_link_gets_through(asking: Asking, page: str):
    (asking.root / "a.html").write_text(page)
    assert "<link" not in (await (await asking("POST", "/frame?path=a.html")).text()).lower()
    (asking.root / "a.html").write_bytes(page.encode("utf-16"))  # a browser would read this as a page, too
    assert (await asking("POST", "/frame?path=a.html")).status == 409


async def test_what_the_owner_puts_is_the_owners_word(tmp_path: Path):
    """A file that stands in prompts is told from the next turn on, as if it had been edited by hand."""
    told: list[str] = []

    def answer(shown: Any) -> Any:
        told.append(shown.system)
        return Say("yes")

    async with (
        open_desk(tmp_path, provider=ScriptedModel(answer)) as agent,
        TestClient(TestServer(stand_in(agent))) as client,
    ):
        asking = Asking(client, tmp_path)
        await agent.ask("hi", "page:one")
        put = await asking("PUT", "/file?path=AGENTS.md&replace=true", data=b"Always say please.")
        await agent.ask("hi", "page:two")
        held = await (await asking.client.get("/api/approvals", headers={"Authorization": "Bearer owner"})).json()
    assert put.status == 201
    assert ["Always say please." in each for each in told] == [False, True]
    assert held == {"approvals": [], "questions": []}
