"""What a server answers, of whatever kind, is shown within its limits."""

import base64
import json
from typing import Any

import pytest
from mcp_types import AudioContent, BlobResourceContents, CallToolResult, EmbeddedResource, ImageContent, TextContent
from tests.tools.mcp.wires import CONTEXT

from everloop.core.message import Media
from everloop.errors import NoRoom, ToolError
from everloop.ports.files import FileRecord
from everloop.ports.tools import Picture, Shown
from everloop.tools.mcp.limits import FILES, PICTURES
from everloop.tools.mcp.results import ResultReader

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
SOURCE = "MCP server x"


def fenced(text: str, *notes: str) -> str:
    return "\n".join([f'<untrusted source="{SOURCE}">\n{text}\n</untrusted>', *notes])


def image(data: bytes = PNG) -> ImageContent:
    return ImageContent(data=base64.b64encode(data).decode(), mime_type="image/png")


def sound(data: bytes = b"RIFF") -> AudioContent:
    return AudioContent(data=base64.b64encode(data).decode(), mime_type="audio/wav")


async def read(*content, keeper=None, **more):
    return await ResultReader("x", keeper).of_call(CallToolResult(content=[*content], **more), CONTEXT)


class Keeper:
    """Keeps what has room, which is `most` files."""

    largest = 1 << 30

    def __init__(self, most: int = 100) -> None:
        self._left = most

    async def keep(self, owner, pieces, name):
        self._left -= 1
        if self._left < 0:
            raise NoRoom("there is no room")
        size = sum([len(piece) async for piece in pieces])
        return FileRecord(owner, f"file:{size}", name, "audio/wav", size)


async def test_text_is_a_strangers():
    assert await read(TextContent(text="a"), TextContent(text="b")) == Shown(fenced("a\nb"), origin=SOURCE)


async def test_a_secret_that_a_server_was_started_with_is_not_told_back():
    result = CallToolResult(
        content=[TextContent(text="API_KEY=sk-canary-123 Port 80")], structured_content={"k": "sk-canary-123"}
    )
    shown = [
        await ResultReader("x", None, {"API_KEY": hidden}).of_call(result, CONTEXT)
        for hidden in ("sk-canary-123", "80")
    ]
    assert [each.text for each in shown] == [
        fenced('API_KEY=[API_KEY] Port 80\n{"k": "[API_KEY]"}'),
        fenced(
            'API_KEY=sk-canary-123 Port 80\n{"k": "sk-canary-123"}'
        ),  # what is shorter than 8 letters is found anywhere
    ]


async def test_structured_content_is_shown_unless_the_text_says_the_same():
    text = TextContent(text='{"b": 1, "a": [2]}')
    assert (await read(text, structured_content={"a": [2], "b": 1})).text == fenced('{"b": 1, "a": [2]}')
    assert (await read(text, structured_content={"a": 3})).text == fenced('{"b": 1, "a": [2]}\n{"a": 3}')
    assert (await read(structured_content={"a": 3})).text == fenced('{"a": 3}')


@pytest.mark.parametrize(
    ("texts", "structured"),
    [
        (["as it\nis"], {"content": "as it\nis"}),  # as the official servers for Node do
        (["3"], {"result": 3}),  # as the official SDK for Python does
        (["one", "two"], {"result": ["one", "two"]}),
        (["1", "2"], {"result": [1, 2]}),
    ],
)
async def test_what_a_server_has_to_wrap_is_not_told_twice(texts: list[str], structured: dict[str, Any]):
    blocks = [TextContent(text=each) for each in texts]
    assert (await read(*blocks, structured_content=structured)).text == fenced("\n".join(texts))


@pytest.mark.parametrize("structured", [{"a": "x", "b": "x"}, {"result": "y"}, {"result": ["x", "y"]}])
async def test_what_no_text_says_is_told(structured: dict[str, Any]):
    shown = await read(TextContent(text="x"), structured_content=structured)
    assert shown.text == fenced(f"x\n{json.dumps(structured)}")


async def test_nothing_but_an_empty_list_is_told():
    assert (await read(structured_content={"result": []})).text == fenced('{"result": []}')


async def test_an_attachment_that_is_given_once_more_is_named_and_not_told_as_text():
    """As the official file server does: a picture would else be a hundred thousand tokens."""
    again = {"content": [{"type": "image", "mimeType": "image/png", "data": image().data}]}
    shown = await read(image(), structured_content=again)
    assert shown.text == fenced(
        "attachment 1: image (image/png)\n"
        '{"content": [{"type": "image", "mimeType": "image/png", "data": "attachment 1"}]}'
    )


async def test_an_image_is_shown_by_what_it_holds():
    assert await read(image()) == Shown(
        fenced("attachment 1: image (image/png)"), (Picture(PNG, "image/png", "image"),), origin=SOURCE
    )
    forged = await read(image(b"<script>"))
    assert forged.pictures == ()
    assert forged.text == fenced(
        "attachment 1: image (image/png)", "[attachment 1 (8 bytes) cannot be shown, and was not kept]"
    )


async def test_files_are_kept_for_whoever_has_called():
    shown = await read(sound(), keeper=Keeper())
    assert shown.made == (Media("file:4", "audio/wav", "audio", "owner"),)
    assert shown.text == fenced(
        "attachment 1: audio (audio/wav)", "[attachment 1 (4 bytes) goes with the answer; it is file:4]"
    )


async def test_a_file_without_room_is_told():
    shown = await read(sound(), keeper=Keeper(0))
    assert shown.text.endswith("[attachment 1 (4 bytes) could not be kept: there is no room]")


async def test_there_are_only_so_many_images_files_and_bytes():
    images = await read(*[image()] * 20)
    files = await read(*[sound()] * 20, keeper=Keeper())
    large = await read(image(PNG + bytes(6_000_000)), image(PNG + bytes(6_000_000)), image())
    assert len(images.pictures) == PICTURES
    assert images.text.count("was left out: it is too large, or one too many") == 20 - PICTURES
    assert len(files.made) == FILES
    assert len(large.pictures) == 2
    assert "[attachment 2 was left out: with one answer, 10,000,000 bytes are taken at most]" in large.text


async def test_what_is_not_base64_is_told():
    blob = BlobResourceContents(uri="x://a/b.bin", blob="no base64!", mime_type=None)
    assert (await read(EmbeddedResource(resource=blob))).text == fenced(
        "attachment 1: b.bin ()", "[attachment 1 was left out: it is not base64]"
    )


async def test_a_failure_is_an_error_in_the_servers_words_and_keeps_nothing():
    with pytest.raises(ToolError) as told:
        await read(TextContent(text="x" * 9000), sound(), is_error=True, keeper=Keeper())
    assert told.value.origin == SOURCE
    assert str(told.value).startswith(fenced("x" * 4000, "[cut after 4,000 of 9,032 characters]"))
