"""A file that someone sends reaches the model through every door: seen as a picture, read as text, or by read_file."""

import base64
import io
import re
from collections.abc import Awaitable, Callable
from hashlib import sha256
from secrets import token_hex
from typing import Any

import pytest

from everloop.core.message import Media
from everloop.files.folder import Folder
from everloop.files.inventory import FileInventory
from everloop.testing import Call, Line, Say, ScriptedModel, Shown
from everloop.tools.documents import can_use

from .conftest import Door
from .test_files_out import PNG

LARGEST = 20_000_000
KINDS = {
    b"\x7fELF\0\xff": "application/x-executable",
    b"PK\3\4\0\xff": "application/zip",
    b"ID3\4\0\xff": "audio/mpeg",
    b"\0\0\0\x18ftypisom\xff": "video/mp4",
    b"\0\xff": "application/octet-stream",
}
HOSTILE = {
    "../../x": "x",
    "..": "file",
    "a\u202egpj.exe": "a_gpj.exe",
    "a\nb\rc": "a_b_c",
    "C:\\x\\y.exe": "y.exe",
    "a\0b": "a_b",
    f"{'n' * 300}.pdf": f"{'n' * 115}….pdf",
}
Sent = tuple[int, str]  # the status, and the answer or the sentence that stands for it
Send = Callable[[Door, str, bytes], Awaitable[Sent]]


async def by_socket(door: Door, name: str, data: bytes) -> Sent:
    async with door.socket() as wire:
        files = [{"name": name, "mime": "image/png", "data": base64.b64encode(data).decode()}]
        return await _said(wire, files)


async def by_page(door: Door, name: str, data: bytes) -> Sent:
    """As the page does: the file first, then a message that names it."""
    token = await door.token()
    async with door.client(token) as client, client.post("/api/files", params={"name": name}, data=data) as answer:
        kept = await answer.json()
        if answer.status != 201:
            assert answer.status in (409, 413)  # before anything is said; what follows is the status of the others
            return 400 if answer.status == 409 else 413, kept["error"]["message"]
    async with door.socket(token) as wire:
        return await _said(wire, [kept])


async def _said(wire: Any, files: list[dict[str, str]]) -> Sent:
    await wire.send("message", id=token_hex(4), content="look", files=files)
    frames = [await wire.next()]
    while frames[-1]["type"] not in ("response", "error"):
        frames.append(await wire.next())
    return 200 if frames[-1]["type"] == "response" else 400, frames[-1]["content"]


async def by_chat(door: Door, name: str, data: bytes) -> Sent:
    file = {"filename": name, "file_data": _url(data)}
    content = [{"type": "text", "text": "look"}, {"type": "file", "file": file}]
    told = await _posted(door, "/v1/chat/completions", {"messages": [{"role": "user", "content": content}]})
    return told[0], _sentence(told[1]) or told[1]["choices"][0]["message"]["content"]


async def by_responses(door: Door, name: str, data: bytes) -> Sent:
    file = {"type": "input_file", "filename": name, "file_data": _url(data)}
    content = [{"type": "input_text", "text": "look"}, file]
    told = await _posted(door, "/v1/responses", {"input": [{"role": "user", "content": content}]})
    return told[0], _sentence(told[1]) or told[1]["output"][-1]["content"][0]["text"]


async def by_platform(door: Door, name: str, data: bytes) -> Sent:
    attachment = {"filename": name, "url": _url(data), "mime_type": "image/png", "size_bytes": 1}
    message = {"platform": "chat", "platform_user_id": "7", "content": "look", "attachments": [attachment]}
    told = await _posted(door, "/message", message)
    return told[0], _sentence(told[1]) or told[1]["content"]


def _url(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


async def _posted(door: Door, path: str, body: Any) -> tuple[int, Any]:
    async with door.client(await door.token()) as client, client.post(path, json=body) as answer:
        return answer.status, await answer.json()


def _sentence(told: Any) -> str:
    return told["error"]["message"] if told.get("error") else ""


DOORS: dict[str, Send] = {
    "socket": by_socket,
    "page": by_page,
    "chat": by_chat,
    "responses": by_responses,
    "platform": by_platform,
}
every_door = pytest.mark.parametrize("send", DOORS.values(), ids=DOORS.keys())


def read_it(shown: Shown) -> Line:
    """A model that reads what it is told of, and repeats it."""
    if shown.step == 0 and (ref := re.search(r"file:[0-9a-f]{12}", shown.asked)):
        return Call("read_file", {"path": ref[0]})
    return Say(shown.messages[-1].text)


@pytest.mark.skipif(not can_use("docx"), reason="extra [documents]")
@pytest.mark.parametrize("send", [by_socket, by_page, by_chat, by_responses])
async def test_a_document_is_read_by_the_name_that_the_model_is_told(openings, send: Send):
    import docx

    made, document = io.BytesIO(), docx.Document()
    document.add_paragraph("The code is 4711.")
    document.save(made)
    model = ScriptedModel(read_it)
    door = await openings(model)
    status, answer = await send(door, "plan.docx", made.getvalue())
    size = f"{len(made.getvalue()):,}"
    name = f"file:{sha256(made.getvalue()).hexdigest()[:12]}"
    assert model.prompts[0].messages[-1].text == (
        f"look\n[plan.docx, kept as {name}: docx, {size} bytes; read_file reads it]"
    )
    assert (status, "The code is 4711." in answer) == (200, True)


@every_door
async def test_a_picture_is_seen_and_kept_whatever_it_is_said_to_be(openings, send: Send):
    model = ScriptedModel([Say("a dot")])
    door = await openings(model)
    assert await send(door, "notes.txt", PNG) == (200, "a dot")
    _, picture = model.prompts[0].messages[-1].parts
    owner = "chat:7" if send is by_platform else "owner"
    assert picture == Media(f"file:{sha256(PNG).hexdigest()}", "image/png", "notes.txt", owner)
    assert await Folder(door.home / "files").get(owner, picture.file) == PNG
    with pytest.raises(FileNotFoundError):
        await Folder(door.home / "files").get("ada", picture.file)


@every_door
async def test_a_text_is_read_as_it_is_and_kept(openings, send: Send):
    model = ScriptedModel([Say("milk")])
    door = await openings(model)
    assert await send(door, "cat.png", b"buy milk") == (200, "milk")
    name = f"file:{sha256(b'buy milk').hexdigest()[:12]}"
    assert model.prompts[0].messages[-1].text == f"look\n[cat.png, kept as {name}]\nbuy milk"


@every_door
async def test_what_nobody_could_read_is_kept_and_told_of(openings, send: Send):
    model = ScriptedModel(lambda shown: Say("noted"))
    door = await openings(model)
    owner = "chat:7" if send is by_platform else "owner"
    for data, kind in KINDS.items():
        assert await send(door, "cat.png", data) == (200, "noted")
        name = f"file:{sha256(data).hexdigest()[:12]}"
        assert model.prompts[-1].messages[-1].text == (
            f"look\n[cat.png, kept as {name}: {kind}, {len(data)} bytes; load_file brings it into the workspace]"
        )
        assert await Folder(door.home / "files").get(owner, name) == data


@every_door
async def test_a_name_is_one_name_on_one_line(openings, send: Send):
    model = ScriptedModel(lambda shown: Say("noted"))
    door = await openings(model)
    for name, told in HOSTILE.items():
        if send not in (by_chat, by_responses) and len(name) > 200:
            continue  # these doors say themselves that it is too long
        assert await send(door, name, b"\0") == (200, "noted")
        said = model.prompts[-1].messages[-1].text.splitlines()
        assert said[0] == "look"
        assert (len(said), said[1].partition(", kept as ")[0]) == (2, f"[{told}")


@pytest.mark.parametrize("send", [by_chat, by_responses, by_platform])
async def test_what_is_too_large_for_a_request_is_refused_with_a_sentence(openings, send: Send):
    door = await openings(ScriptedModel([]))
    assert await send(door, "big.png", PNG + bytes(LARGEST)) == (
        413,
        "A file has more than 20,000,000 bytes: upload it (POST /api/files), and name it by its reference.",
    )


@every_door
async def test_what_is_too_large_at_all_is_refused_with_a_sentence(openings, send: Send):
    door = await openings(ScriptedModel([]), {}, files={"max_bytes": 1_000_000})
    status, sentence = await send(door, "big.bin", bytes(1_000_001))
    assert (status, sentence.rstrip(".")) == (
        400 if send is by_socket else 413,
        "big.bin is not kept: it has more than 1,000,000 bytes (files.max_bytes)",
    )
    assert await FileInventory(door.home / "files").files() == []


@every_door
async def test_nobody_is_kept_more_files_than_they_have_room_for(openings, send: Send):
    model = ScriptedModel(lambda shown: Say("read"))
    door = await openings(model, {"bytes_per_user": 1_000_000})
    assert await send(door, "first.txt", b"1" * 600_000) == (200, "read")
    status, sentence = await send(door, "second.txt", b"2" * 600_000)
    assert (status, model.calls) == (400 if send is by_socket else 413, 1)
    assert sentence.rstrip(".") == (
        "second.txt is not kept: together with it your files would take more than 1,000,000 bytes (files.quota)"
    )
    files = [file for file in await FileInventory(door.home / "files").files() if file.size > 4096]
    assert [file.ref for file in files] == [f"file:{sha256(b'1' * 600_000).hexdigest()}"]


async def test_what_tools_keep_is_kept_also_where_nobody_may_send_more(openings):
    model = ScriptedModel([Call("write_file", {"path": "a.txt", "content": "3" * 9000}), Say("written"), Say("read")])
    door = await openings(model, {"bytes_per_user": 1_000_000})
    await Folder(door.home / "files").put("owner", bytes(2_000_000), "much")
    assert (await by_page(door, "first.txt", b"1" * 9000))[0] == 413
    async with door.socket() as wire:
        await wire.send("message", id="m1", content="write it", files=[])
        while (frame := await wire.next())["type"] != "response":
            pass
    assert [file["name"] for file in frame["files"]] == ["a.txt"]


async def test_of_a_long_text_the_beginning_is_shown_and_the_rest_can_be_read(openings):
    text = "".join(f"line {n}\n" for n in range(10_000))
    model = ScriptedModel(
        lambda shown: (
            Call("read_file", {"path": re.findall(r"file:[0-9a-f]{12}", shown.asked)[0], "offset": 9_999})
            if shown.step == 0
            else Say(shown.messages[-1].text)
        )
    )
    door = await openings(model)
    status, answer = await by_socket(door, "log.txt", text.encode())
    shown = model.prompts[0].messages[-1].text
    assert shown.startswith(
        f"look\n[log.txt, kept as file:{sha256(text.encode()).hexdigest()[:12]}: the first 32,000 of "
    )
    assert shown.endswith(text[:32_000])
    assert (status, answer) == (200, "line 9998\nline 9999\n[the end]")


async def test_an_attachment_that_is_said_to_be_too_large_is_not_fetched(openings):
    door = await openings(ScriptedModel([]))
    far = {"url": "http://127.0.0.1:9/cat.png", "size_bytes": LARGEST + 1}
    message = {"platform": "chat", "platform_user_id": "7", "content": "look", "attachments": [far]}
    status, told = await _posted(door, "/message", message)
    assert (status, told["error"]["code"]) == (413, "file_too_large")
    status, told = await _posted(door, "/message", {**message, "attachments": [{"url": "file:///etc/hostname"}]})
    assert (status, told["error"]["code"]) == (400, "invalid_url")


async def test_a_conversation_is_named_by_what_was_said_and_not_by_its_files(openings):
    door = await openings(ScriptedModel([Say("milk"), Say("milk")]))
    token = await door.token()
    async with door.socket(token) as wire:
        for session, content in (("api:a", "look"), ("api:b", "")):
            data = base64.b64encode(b"buy milk").decode()
            files = [{"name": "list.txt", "data": data}]
            await wire.send("message", id=session, session=session, content=content, files=files)
            await wire.until("response")
    async with door.client(token) as client, client.get("/api/sessions") as answer:
        sessions = (await answer.json())["sessions"]
    assert [(each["session"], each["title"]) for each in sessions] == [("api:b", "list.txt"), ("api:a", "look")]


async def test_an_edited_message_keeps_the_files_that_came_with_it(openings):
    model = ScriptedModel([Say("milk"), Say("bread")])
    door = await openings(model)
    await by_socket(door, "list.txt", b"buy milk")
    async with door.socket() as wire:
        await wire.ask("/session edit read again", "m2")
    files = [part.text for part in model.prompts[1].messages[-1].parts]
    assert files[0] == "read again"
    assert files[1].startswith("[list.txt, kept as file:")
