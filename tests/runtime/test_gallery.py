"""What a tool shows is kept for the one who asked, and found again for the model."""

import io
import logging
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import everloop
from everloop.core.log import CallReturned, ModelSaid, UserSaid
from everloop.core.message import Media, Message, said
from everloop.core.people import Role
from everloop.core.prompt import Transcript
from everloop.core.thread import Thread
from everloop.core.tool import Effect, ToolCall
from everloop.errors import MailRefused
from everloop.files.folder import Folder
from everloop.files.pictures import fit
from everloop.ports.tools import CallContext, Picture, Shown, Tool
from everloop.runtime.calls import Toolbox
from everloop.runtime.context import Gallery
from everloop.testing import Call, Say, ScriptedModel
from everloop.tools.decorator import tool

CONTEXT = CallContext(key="t:2:0", thread="t", session="api:default", user="ann", role=Role.USER)


def picture(kind: str = "png", size: tuple[int, int] = (3, 2)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, "red").save(out, kind)
    return out.getvalue()


CAT = picture()


@pytest.fixture
def files(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "files")


def showing(result: Any) -> Tool:
    @tool(Effect.READ, name="look")
    async def look() -> Shown:
        """Shows something."""
        return result

    return look


async def run(result: Any, files: Folder, limit: int = 8000) -> CallReturned:
    thread = Thread.of(UserSaid(said("hi"), "ann"), ModelSaid("", (ToolCall("c1", "look", "{}"),)))
    return await Toolbox.of([showing(result)], files, limit).run(thread, 0, CONTEXT)


class TestToolbox:
    async def test_pictures_are_kept_for_the_one_who_asked(self, files: Folder):
        returned = await run(
            Shown("a cat and a dog", (Picture(CAT, "image/png", "cat.png"), Picture(b"%PDF-", "x"))), files
        )
        (cat, paper) = returned.media
        assert returned == CallReturned(
            *(2, 0, "a cat and a dog", "done", ""),
            (Media(cat.file, "image/png", "cat.png", "ann"), Media(paper.file, "application/pdf", "", "ann")),
        )
        assert await files.get("ann", cat.file) == CAT
        with pytest.raises(FileNotFoundError):
            await files.get("bob", cat.file)

    async def test_a_picture_is_what_its_content_says(self, files: Folder):
        returned = await run(Shown("", (Picture(picture("jpeg"), "image/png"), Picture(b"?", "image/x"))), files)
        assert [media.mime for media in returned.media] == ["image/jpeg", "image/x"]

    async def test_a_long_text_beside_a_picture_is_shortened(self, files: Folder):
        returned = await run(Shown("x" * 900, (Picture(CAT, "image/png"),)), files, limit=400)
        assert (len(returned.text) <= 400, len(returned.media)) == (True, 1)
        assert await files.get("ann", returned.file) == b"x" * 900

    async def test_a_name_that_is_no_text_is_made_one(self, files: Folder):
        returned = await run(Shown("", (Picture(CAT, "image/png", "caf\udce9.png"),)), files)
        assert returned.media[0].name == "caf?.png"

    @pytest.mark.parametrize(
        "result, told",
        [
            (Shown(None), "a tool returns text, not NoneType"),  # type: ignore[arg-type]
            (Shown("", (b"raw",)), "a tool shows Pictures, whose data are bytes"),  # type: ignore[arg-type]
            (Shown("", (Picture("text", ""),)), "a tool shows Pictures, whose data are bytes"),  # type: ignore[arg-type]
        ],
    )
    async def test_what_is_no_picture_is_told_to_the_model(self, files: Folder, result: Shown, told: str):
        assert await run(result, files) == CallReturned(2, 0, f"Error: TypeError: {told}", "failed")


def shown(*media: Media) -> Transcript:
    return Transcript((Message("user", media),))


class TestGallery:
    async def test_a_picture_is_hung_as_it_is(self, files: Folder):
        ref = await files.put("ann", CAT, "")
        transcript = shown(Media(ref, "image/png", "cat.png", "ann"))
        await Gallery(files, fit).load_media(transcript, "ann")
        assert transcript.files == {ref: CAT}

    async def test_one_that_is_too_large_is_hung_smaller(self, files: Folder):
        ref = await files.put("ann", picture(size=(9000, 10)), "")
        transcript = shown(Media(ref, "image/png", "long.png", "ann"))
        await Gallery(files, fit).load_media(transcript, "ann")
        assert Image.open(io.BytesIO(transcript.files[ref])).size == (2000, 2)

    async def test_it_is_fetched_once(self, files: Folder):
        ref = await files.put("ann", CAT, "")
        fitted: list[str] = []

        async def count(data: bytes, mime: str) -> bytes:
            fitted.append(mime)
            return data

        transcript = shown(Media(ref, "image/png", owner="ann"), Media(ref, "image/png", owner="ann"))
        gallery = Gallery(files, count)
        await gallery.load_media(transcript, "ann")
        await gallery.load_media(transcript, "ann")
        assert fitted == ["image/png"]

    async def test_what_belongs_to_someone_else_is_not_shown(self, files: Folder, caplog: pytest.LogCaptureFixture):
        ref = await files.put("bob", CAT, "")
        mine = Media(ref, "image/png", "cat.png", "ann")
        nobodys = Media(ref, "image/png", "cat.png")
        for media in (mine, nobodys):
            transcript = shown(media)
            with caplog.at_level(logging.WARNING, "everloop.context"):
                await Gallery(files, fit).load_media(transcript, "ann")
            assert transcript.files == {}
        told = [record.getMessage() for record in caplog.records if record.name == "everloop.context"]
        assert [each.partition(":")[0] for each in told] == ["cat.png cannot be shown"] * 2

    async def test_in_a_conversation_of_several_each_ones_is_found(self, files: Folder):
        ref = await files.put("bob", CAT, "")
        transcript = shown(Media(ref, "image/png", "cat.png", "bob"))
        await Gallery(files, fit).load_media(transcript, "ann")
        assert transcript.files == {ref: CAT}

    @pytest.mark.parametrize("data", [b"", b"GIF89a", CAT[:-12], picture("jpeg"), b"<svg/>"])
    async def test_what_a_host_would_refuse_is_not_shown(self, files: Folder, data: bytes):
        transcript = shown(Media(await files.put("ann", data, ""), "image/png", "cat.png", "ann"))
        await Gallery(files, fit).load_media(transcript, "ann")
        assert transcript.files == {}


async def test_a_programmers_tool_may_show_pictures(house, tmp_path: Path):
    @everloop.tool(everloop.Effect.READ, permission=everloop.Role.GUEST)
    async def photograph() -> everloop.Shown:
        """Take a photo."""
        return everloop.Shown("a cat", (everloop.Picture(CAT, "image/png", "cat.png"),))

    model = ScriptedModel([Call("photograph"), Say("a cat, I think")])
    async with house(model, tools=[photograph]) as agent:
        assert (await agent.ask("what is there?", author="ann")).content == "a cat, I think"
        row = await agent.store.session("api:default")
        entries = await agent.store.read(row.id)
    (returned,) = [entry for entry in entries if isinstance(entry, CallReturned)]
    (media,) = returned.media
    assert media == Media(media.file, "image/png", "cat.png", "ann")
    assert await Folder(tmp_path / "home" / "files").get("ann", media.file) == CAT
    call, result = model.prompts[1].messages[-2:]
    assert result == Message("tool", (*said("a cat"), media), answers=call.calls[0].id)


async def test_a_file_alone_is_a_message_and_nothing_at_all_is_none(house, tmp_path: Path):
    (tmp_path / "cat.png").write_bytes(CAT)
    model = ScriptedModel([Say("a cat")])
    async with house(model) as agent:
        assert (await agent.ask("", files=[tmp_path / "cat.png"])).content == "a cat"
        with pytest.raises(MailRefused, match="the message is empty"):
            await agent.ask("")
    ((media,),) = [message.parts for message in model.prompts[0].messages]
    assert media == Media(media.file, "image/png", "cat.png", "owner")
