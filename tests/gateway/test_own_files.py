"""Whoever has a login sees and removes their own files; whoever has a signed link has that file, for a while."""

import base64
import json
import mmap
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from everloop.app.access import new_token, token_scopes
from everloop.app.records import open_records
from everloop.core.people import Role
from everloop.files.folder import Folder
from everloop.ports.directory import Person
from everloop.testing import Call, Say, ScriptedModel
from everloop.testing.clock import SimulatedClock

from .conftest import Door

BYTES = bytes(range(256))
REF = f"file:{sha256(BYTES).hexdigest()}"
PAGE = "<script>alert(1)</script>"


async def upload(door: Door, data: bytes, name: str = "a.bin") -> tuple[int, Any]:
    async with (
        door.client(await door.token()) as client,
        client.post("/api/files", params={"name": name}, data=data) as answer,
    ):
        return answer.status, await answer.json()


async def got(door: Door, url: str, token: str = "", **headers: str) -> tuple[int, dict[str, str], bytes]:
    async with door.client(token, **headers) as client, client.get(url) as answer:
        return answer.status, dict(answer.headers), await answer.read()


async def by_bot(door: Door, content: str = "make it") -> Any:
    message = {"platform": "chat", "platform_user_id": "7", "content": content}
    async with door.client(await door.token()) as client, client.post("/message", json=message) as answer:
        return await answer.json()


def resident() -> int:
    """Bytes of memory that this process takes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def mapped(piece: bytes) -> mmap.mmap:
    """A copy in pages of its own: what Python has freed before and kept is not taken for it."""
    held = mmap.mmap(-1, len(piece))
    held.write(piece)
    return held


class TestOwn:
    async def test_one_sees_what_one_has_sent_and_removes_it(self, openings: Any):
        door = await openings(ScriptedModel([]), files={"quota": 1_000_000})
        assert await upload(door, BYTES, "../../etc/a.bin") == (
            201,
            {"file": REF, "mime": "application/octet-stream", "name": "a.bin", "bytes": 256},
        )
        token = await door.token()
        async with door.client(token) as client:
            async with client.get("/api/files") as answer:
                told = await answer.json()
            async with client.delete(f"/api/files/{REF}") as answer:
                gone = answer.status, await answer.json()
            async with client.delete(f"/api/files/{REF}") as answer:
                again = answer.status
            async with client.get("/api/files") as answer:
                left = await answer.json()
        at, url = told["files"][0].pop("at"), told["files"][0].pop("url")
        assert (at > 0, url.startswith(f"/files/{REF}/a.bin?link=")) == (True, True)
        assert told == {
            "files": [{"file": REF, "name": "a.bin", "mime": "application/octet-stream", "bytes": 256}],
            "more": False,
            "used": 4096,
            "quota": 1_000_000,
            "largest": 1_000_000_000,
        }
        assert (gone, again, left["files"], left["used"]) == ((200, {"removed": REF}), 404, [], 0)

    async def test_another_ones_file_is_neither_told_nor_given_nor_removed_nor_taken(self, openings: Any):
        """A file of Ann's, and every way in which the owner could name it; the same ways work for the owner's own."""
        model = ScriptedModel(lambda shown: Say("noted"))
        door = await openings(model)
        await Folder(door.home / "files").put("ann", BYTES, "a.bin")
        token = await door.token()
        for theirs in (True, False):
            if not theirs:
                await upload(door, BYTES)
            statuses = [(await got(door, f"/api/files/{REF}{name}", token))[0] for name in ("", "/a.bin")]
            async with door.client(token) as client:
                part = {"type": "file", "file": {"file_id": REF}}
                body = {"messages": [{"role": "user", "content": [{"type": "text", "text": str(theirs)}, part]}]}
                async with client.post("/v1/chat/completions", json=body) as answer:
                    statuses.append(answer.status)
                item = {"role": "user", "content": [{"type": "input_file", "file_id": REF}]}
                async with client.post("/v1/responses", json={"input": [item]}) as answer:
                    statuses.append(answer.status)
            async with door.socket(token) as wire:
                await wire.send("message", id=f"m{theirs}", content="look", files=[{"file": REF, "name": "x"}])
                frame = await wire.next()
                while frame["type"] not in ("response", "error"):
                    frame = await wire.next()
            async with door.client(token) as client, client.delete(f"/api/files/{REF}") as answer:
                statuses.append(answer.status)
            expected = ([404, 404, 400, 400, 404], "error") if theirs else ([200] * 5, "response")
            assert (statuses, frame["type"]) == expected
        assert await Folder(door.home / "files").get("ann", REF) == BYTES

    async def test_the_owner_sees_to_the_files_of_others_and_nobody_else_does(self, openings: Any):
        door = await openings(ScriptedModel([]))
        async with open_records(door.home) as records:
            await records.store.introduce(Person("web:ann", "Ann", Role.ADMIN))
            hers = await new_token(records.store, "web:ann", "hers", token_scopes())
        await upload(door, BYTES)
        async with door.client(hers) as client, client.post("/api/files?name=h.txt", data=b"hers") as answer:
            ref = (await answer.json())["file"]

        async def asked(token: str, method: str, path: str) -> tuple[int, list[str]]:
            async with door.client(token) as client, client.request(method, path) as answer:
                told = await answer.json()
                return answer.status, [each["name"] for each in told.get("files", [])]

        owner, reader = await door.token(), await door.token("read")
        assert await asked(owner, "GET", "/api/files?of=web:ann") == (200, ["h.txt"])
        assert await asked(reader, "GET", "/api/files?of=web:ann") == (403, [])
        assert await asked(hers, "GET", "/api/files?of=owner") == (403, [])
        assert await asked(hers, "DELETE", f"/api/files/{REF}?of=owner") == (403, [])
        assert await asked(hers, "GET", "/api/files?of=web:ann") == (200, ["h.txt"])
        assert await asked(owner, "DELETE", f"/api/files/{ref}?of=web:ann") == (200, [])
        assert await asked(hers, "GET", "/api/files") == (200, [])
        assert await asked(owner, "GET", "/api/files") == (200, ["a.bin"])

    async def test_the_link_in_the_list_opens_without_a_login_and_the_conversation_is_found(self, openings: Any):
        door = await openings(ScriptedModel(lambda shown: Say("noted")))
        await upload(door, BYTES)
        token = await door.token()
        async with door.socket(token) as wire:
            await wire.send("message", id="m", session="api:talk", content="look", files=[{"file": REF, "name": "x"}])
            await wire.until("response", id="m")
        async with door.client(token) as client:
            async with client.get("/api/files") as answer:
                url = (await answer.json())["files"][0]["url"]
            async with client.get("/api/sessions", params={"file": REF}) as answer:
                found = [each["session"] for each in (await answer.json())["sessions"]]
            async with client.get("/api/sessions", params={"file": f"file:{'0' * 64}"}) as answer:
                none = (await answer.json())["sessions"]
        status, _, data = await got(door, url)
        assert (status, data, found, none) == (200, BYTES, ["api:talk"], [])

    async def test_a_part_of_a_file_is_given(self, openings: Any):
        door = await openings(ScriptedModel([]))
        await upload(door, BYTES)
        status, headers, data = await got(door, f"/api/files/{REF}", await door.token(), Range="bytes=10-19")
        assert (status, headers["Content-Range"], data) == (206, "bytes 10-19/256", BYTES[10:20])

    @pytest.mark.parametrize("data", [PAGE.encode(), b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"\x7fELF\0"])
    async def test_nothing_that_could_run_is_given_as_what_it_is(self, openings: Any, data: bytes):
        door = await openings(ScriptedModel([]))
        _, kept = await upload(door, data)
        for name in ("x.html", "%2e%2e%2fx", "a%0d%0aSet-Cookie:%20x=1", "%E2%80%AEgpj.html"):
            status, headers, _ = await got(door, f"/api/files/{kept['file']}/{name}", await door.token())
            assert (status, headers["X-Content-Type-Options"]) == (200, "nosniff")
            assert headers["Content-Disposition"].startswith("attachment; ")
            assert headers["Content-Type"].split(";")[0] in ("text/plain", "application/x-executable")
            assert "sandbox" in headers["Content-Security-Policy"]
            assert "Set-Cookie" not in headers

    @pytest.mark.parametrize("whole", [False, True])
    async def test_a_large_upload_does_not_show_in_memory(self, openings: Any, whole: bool):
        """The gateway runs in this process, and so does the client, which sends one piece again and again. A client
        that has the whole of it in its hand is seen."""
        door = await openings(ScriptedModel([]))
        await upload(door, b"warm")
        piece = os.urandom(1 << 20)
        before, highest = resident(), 0

        async def pieces() -> Any:
            nonlocal highest
            held = []
            for _ in range(64):
                held += [mapped(piece)] if whole else []
                yield piece
                highest = max(highest, resident())

        async with door.client(await door.token()) as client:
            async with client.post("/api/files", data=pieces()) as answer:
                kept = await answer.json()
            async with client.get(f"/api/files/{kept['file']}") as answer:
                size = 0
                async for part in answer.content.iter_any():
                    size += len(part)
                    highest = max(highest, resident())
        assert (kept["bytes"], size) == (64 << 20, 64 << 20)
        assert (highest - before < 16 << 20) is not whole


class TestSignedLinks:
    async def answered(self, openings: Any, **files: Any) -> tuple[Door, str]:
        model = ScriptedModel([Call("write_file", {"path": "p.html", "content": PAGE}), Say("made")])
        door = await openings(model, files=files, roles={"chat:7": Role.USER})
        told = await by_bot(door)
        assert [(each["name"], each["mime"]) for each in told["files"]] == [("p.html", "text/plain")]
        return door, told["files"][0]["url"]

    async def test_a_bot_is_given_links_that_open_without_a_login(self, openings: Any):
        door, url = await self.answered(openings)
        status, headers, data = await got(door, url)
        assert (status, data, headers["X-Content-Type-Options"]) == (200, PAGE.encode(), "nosniff")
        assert headers["Content-Disposition"].startswith("attachment; ")
        assert (headers["Content-Type"], headers["Cache-Control"]) == ("text/plain; charset=utf-8", "private, no-store")

    async def test_nothing_of_a_link_can_be_changed(self, openings: Any):
        door, url = await self.answered(openings)
        other = await Folder(door.home / "files").put("chat:7", b"other", "")
        body, signature = url.partition("link=")[2].split(".")
        owner, until = json.loads(base64.urlsafe_b64decode(body + "=="))
        later = base64.urlsafe_b64encode(json.dumps([owner, until + 9]).encode()).decode().rstrip("=")
        mine = base64.urlsafe_b64encode(json.dumps(["owner", until]).encode()).decode().rstrip("=")
        head = url.partition("?")[0]
        ref = head.split("/")[2]
        for wrong in (
            head,
            f"{head}?link=",
            f"{head}?link=.",
            f"{head}?link={later}.{signature}",
            f"{head}?link={mine}.{signature}",
            f"{head}?link={body}.{signature[:-2]}",
            f"{head}?link={body}.é",
            f"{head}?link={'a' * 10_000}.{signature}",
            url.replace(ref, other),
            url.replace("p.html", "p.exe"),
        ):
            assert (await got(door, wrong))[0] in (400, 404), wrong
        assert (await got(door, url))[0] == 200

    async def test_a_link_of_somebody_who_is_blocked_opens_nothing(self, openings: Any):
        door, url = await self.answered(openings)
        async with open_records(door.home) as records:
            await records.store.introduce(Person("chat:7", "Sven", Role.USER))
            assert (await got(door, url))[0] == 200
            await records.store.change_person("chat:7", blocked=True)
        assert (await got(door, url))[0] == 404

    async def test_nor_does_one_from_before_the_account_was_theirs(self, openings: Any):
        door, url = await self.answered(openings)
        async with open_records(door.home) as records:
            await records.store.introduce(Person("sven", "Sven", Role.USER, accounts=("chat:7",)))
            assert (await got(door, url))[0] == 200
            await records.store.change_person("sven", blocked=True)
        assert (await got(door, url))[0] == 404

    async def test_a_link_expires(self, openings: Any, tmp_path: Path):
        clock = SimulatedClock(tmp_path / "clock")
        clock.set(1_800_000_000.0)
        model = ScriptedModel([Call("write_file", {"path": "p.html", "content": PAGE}), Say("made")])
        door = await openings(model, files={"link_seconds": 60}, roles={"chat:7": Role.USER}, clock=clock)
        url = (await by_bot(door))["files"][0]["url"]
        assert (await got(door, url))[0] == 200
        clock.set(1_800_000_061.0)
        assert (await got(door, url))[0] == 404
