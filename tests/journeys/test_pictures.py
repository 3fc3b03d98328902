"""Images and files on their whole way: from a person's disk, through the log, to a host."""

import asyncio
import base64
import io
import logging
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image

import everloop
from everloop.testing import Call, Calls, Http, Say
from everloop.testing.model_server import ModelServer

Opener = Callable[..., AbstractAsyncContextManager[everloop.Agent]]

BLIND = Http(404, {"error": {"message": "No endpoints found that support image input", "code": 404}})
REFUSED = "scripted at custom cannot see images or read documents (404): No endpoints found that support image input"


def png(width: int = 40, height: int = 30) -> bytes:
    out = io.BytesIO()
    Image.effect_noise((width, height), 90).save(out, "png")
    return out.getvalue()


CAT = png()
PDF = b"%PDF-1.7\n%%EOF\n"


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
def house(tmp_path: Path, model: ModelServer) -> Opener:
    settings = {
        "agents": {"defaults": {"model": "custom/scripted"}},
        "providers": {"custom": {"api_base": model.url, "api_key": "sk-canary-pictures"}},
    }

    def open(**more: Any) -> AbstractAsyncContextManager[everloop.Agent]:
        return everloop.open(tmp_path / "home", settings, **more)

    return open


@pytest.fixture
def cat(tmp_path: Path) -> Path:
    path = tmp_path / "cat.png"
    path.write_bytes(CAT)
    return path


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image(data: bytes, mime: str = "image/png") -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{base64.b64encode(data).decode()}"}}


def heard(model: ModelServer, call: int = -1) -> list[Any]:
    """The contents of the messages at a call, without the system's and the tail of the moment."""
    contents = [message["content"] for message in model.requests[call].body["messages"][1:]]
    *before, last = contents
    if isinstance(last, str):
        return [*before, last.partition("\n\nCurrent time:")[0]]
    assert last[-1]["text"].startswith("Current time:")
    return [*before, last[:-1]]


class TestSeeing:
    async def test_an_image_arrives_as_it_is_and_stays_where_it_is(self, house: Opener, model: ModelServer, cat: Path):
        model.play([Say("a cat"), Say("grey"), Say("still grey")])
        looking = [text("what is this?"), image(CAT)]
        async with house() as agent:
            await agent.ask("what is this?", files=[cat])
            await agent.ask("which colour?")
        async with house() as agent:
            await agent.ask("and now?")
        assert heard(model, 0) == [looking]
        assert heard(model, 1) == [looking, "a cat", "which colour?"]
        assert heard(model, 2) == [looking, "a cat", "which colour?", "grey", "and now?"]
        end = model.requests[0].raw.index(base64.b64encode(CAT)) + len(base64.b64encode(CAT))
        assert len({request.raw[:end] for request in model.requests}) == 1

    async def test_the_file_may_go_once_it_was_shown(self, house: Opener, model: ModelServer, cat: Path):
        model.play([Say("a cat"), Say("grey")])
        async with house() as agent:
            await agent.ask("what is this?", files=[cat])
        (cat.parent / "cat.png").unlink()
        async with house() as agent:
            await agent.ask("which colour?")
        assert heard(model)[0] == [text("what is this?"), image(CAT)]

    async def test_a_large_image_is_sent_small_and_the_same_each_time(
        self, house: Opener, model: ModelServer, cat: Path
    ):
        model.play([Say("a line"), Say("grey")])
        (cat.parent / "cat.png").write_bytes(png(9000, 10))
        async with house() as agent:
            await agent.ask("what is this?", files=[cat])
        async with house() as agent:
            await agent.ask("which colour?")
        first, second = heard(model, 0)[0], heard(model, 1)[0]
        sent = base64.b64decode(first[1]["image_url"]["url"].removeprefix("data:image/png;base64,"))
        assert Image.open(io.BytesIO(sent)).size == (2000, 2)
        assert first == second

    async def test_a_pdf_goes_as_a_file(self, house: Opener, model: ModelServer, tmp_path: Path):
        model.play([Say("a bill")])
        (tmp_path / "bill.pdf").write_bytes(PDF)
        async with house() as agent:
            await agent.ask("", files=[tmp_path / "bill.pdf"])
        data = f"data:application/pdf;base64,{base64.b64encode(PDF).decode()}"
        assert heard(model) == [[{"type": "file", "file": {"filename": "bill.pdf", "file_data": data}}]]

    async def test_what_tools_show_follows_their_results(self, house: Opener, model: ModelServer, cat: Path):
        dog = png(20, 20)

        @everloop.tool(everloop.Effect.READ)
        async def photograph() -> everloop.Shown:
            """Take a photo."""
            return everloop.Shown("a dog", (everloop.Picture(dog, "image/png", "dog.png"),))

        model.play([Calls(Call("read_file", {"path": "cat.png"}), Call("photograph")), Say("both"), Say("yes")])
        async with house(tools=[photograph]) as agent:
            shutil.copy(cat, cat.parent / "home" / "workspace" / "cat.png")
            await agent.ask("look")
            await agent.ask("sure?")
        told = f"cat.png: image/png, {len(CAT):,} bytes\n[cat.png]"
        looked = ["look", None, told, "a dog\n[dog.png]", [image(CAT), image(dog)]]
        assert heard(model, 1) == looked
        assert heard(model, 2) == [*looked, "both", "sure?"]

    async def test_a_kept_file_that_is_gone_is_named_and_logged(
        self, house: Opener, model: ModelServer, cat: Path, caplog: pytest.LogCaptureFixture
    ):
        model.play([Say("a cat"), Say("grey, as I said")])
        async with house() as agent:
            await agent.ask("what is this?", files=[cat])
        shutil.rmtree(cat.parent / "home" / "files")
        with caplog.at_level(logging.WARNING, "everloop.context"):
            async with house() as agent:
                assert (await agent.ask("which colour?")).content == "grey, as I said"
        assert heard(model) == ["what is this?\n[cat.png: not shown]", "a cat", "which colour?"]
        assert ["cat.png cannot be shown" in record.getMessage() for record in caplog.records] == [True]


class TestBlind:
    async def test_a_host_that_takes_no_image_fails_one_turn_and_not_the_conversation(
        self, house: Opener, model: ModelServer, cat: Path
    ):
        model.play([BLIND, Say("so be it")])
        async with house() as agent:
            with pytest.raises(everloop.TurnFailed) as caught:
                await agent.ask("what is this?", files=[cat])
            assert str(caught.value).startswith(f"{REFUSED}. Choose a model that can with /model, or say it in words.")
            assert caught.value.reason == "vision"
            assert (await agent.ask("never mind")).content == "so be it"
        assert heard(model, 0) == [[text("what is this?"), image(CAT)]]
        assert heard(model, 1) == ["what is this?\n[cat.png: not shown]", str(caught.value), "never mind"]

    async def test_another_image_is_not_even_sent(self, house: Opener, model: ModelServer, cat: Path):
        model.play([BLIND])
        async with house() as agent:
            for _ in range(2):
                with pytest.raises(everloop.TurnFailed, match="cannot see images or read documents"):
                    await agent.ask("what is this?", files=[cat])
        assert model.calls == 1

    async def test_after_a_restart_the_conversation_still_goes_on(self, house: Opener, model: ModelServer, cat: Path):
        model.play([BLIND, BLIND, Say("so be it")])
        async with house() as agent:
            with pytest.raises(everloop.TurnFailed):
                await agent.ask("what is this?", files=[cat])
        async with house() as agent:
            assert (await agent.ask("never mind")).content == "so be it"
        assert heard(model)[0] == "what is this?\n[cat.png: not shown]"

    async def test_what_a_tool_shows_is_named_and_the_turn_goes_on(self, house: Opener, model: ModelServer, cat: Path):
        model.play([Call("read_file", {"path": "cat.png"}), BLIND, Say("I cannot see it")])
        async with house() as agent:
            shutil.copy(cat, cat.parent / "home" / "workspace" / "cat.png")
            assert (await agent.ask("look")).content == "I cannot see it"
        told = f"cat.png: image/png, {len(CAT):,} bytes"
        assert heard(model, 1)[2:] == [f"{told}\n[cat.png]", [image(CAT)]]
        assert heard(model, 2)[2:] == [f"{told}\n[cat.png: not shown]"]


class Ran(msgspec.Struct):
    status: int
    out: str
    err: str


class TestCommand:
    @pytest.fixture
    def run(self, tmp_path: Path, model: ModelServer) -> Callable[..., Any]:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "EVERLOOP_HOME": str(tmp_path / "home"),
            "EVERLOOP_AGENTS__DEFAULTS__MODEL": "custom/scripted",
            "EVERLOOP_PROVIDERS__CUSTOM__API_BASE": model.url,
        }

        async def run(*arguments: str) -> Ran:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "everloop", "agent", *arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
                cwd=tmp_path,
            )
            out, err = await process.communicate()
            return Ran(process.returncode or 0, out.decode(), err.decode())

        return run

    async def test_files_are_shown_with_the_message_in_their_order(self, run, model: ModelServer, cat: Path):
        model.play([Say("a cat")])
        (cat.parent / "notes.txt").write_text("It is mine.\n")
        assert await run("-m", "whose is this?", "-f", "cat.png", "--file", "notes.txt") == Ran(0, "a cat\n", "")
        parts = [text("whose is this?"), image(CAT), text("[notes.txt, kept as file:f7830605ce63]\nIt is mine.\n")]
        assert heard(model) == [parts]

    async def test_an_image_needs_no_words(self, run, model: ModelServer, cat: Path):
        model.play([Say("a cat")])
        assert await run("-m", "", "-f", "cat.png") == Ran(0, "a cat\n", "")
        assert heard(model) == [[image(CAT)]]

    @pytest.mark.parametrize(
        "arguments, says",
        [
            (("-m", "x", "-f", "none.png"), "none.png cannot be read (No such file or directory)"),
            (("-m", "x", "-f", "."), ". is not a file that can be read as a whole"),
            (
                ("-m", "x", "-f", "big.bin"),
                "big.bin is not kept: it has more than 1,000,000,000 bytes (files.max_bytes)",
            ),
        ],
    )
    async def test_what_cannot_be_kept_is_told_in_a_sentence(
        self, run, model: ModelServer, cat: Path, arguments: tuple[str, ...], says: str
    ):
        with open(cat.parent / "big.bin", "wb") as file:  # noqa: ASYNC230
            file.truncate(1_000_000_001)
        assert await run(*arguments) == Ran(1, "", f"everloop: {says}\n")
        assert model.calls == 0

    async def test_what_cannot_be_shown_is_kept_and_told_of(self, run, model: ModelServer, cat: Path):
        (cat.parent / "a.bin").write_bytes(b"\x7fELF\0")
        (cat.parent / "half.png").write_bytes(png()[:200])
        with open(cat.parent / "film.mp4", "wb") as file:  # noqa: ASYNC230
            file.write(b"\0\0\0\x18ftypisom")
            file.truncate(20_000_001)  # more than is ever read at once
        model.play([Say("noted")])
        ran = await run("-m", "x", "-f", "a.bin", "-f", "half.png", "-f", "film.mp4")
        assert ran == Ran(0, "noted\n", "")
        told = heard(model)[0].splitlines()
        use = "load_file brings it into the workspace]"
        assert [re.sub("file:[0-9a-f]{12}", "file:…", each) for each in told] == [
            "x",
            f"[a.bin, kept as file:…: application/x-executable, 5 bytes; {use}",
            f"[half.png, kept as file:…: image/png that cannot be shown (the image is cut off), 200 bytes; {use}",
            f"[film.mp4, kept as file:…: video/mp4, 20,000,001 bytes; {use}",
        ]

    async def test_an_image_without_a_message_is_a_wrong_use(self, run, model: ModelServer, cat: Path):
        sentence = "-f needs -m: say with -m what the file is shown for"
        assert await run("-f", "cat.png") == Ran(2, "", f"everloop: {sentence}\n")
        assert model.calls == 0

    async def test_a_model_that_cannot_see_is_told_in_a_sentence(self, run, model: ModelServer, cat: Path):
        model.play([BLIND])
        ran = await run("-m", "what is this?", "-f", "cat.png")
        assert (ran.status, ran.out, ran.err.count("\n")) == (1, "", 1)
        assert ran.err.startswith(f"everloop: {REFUSED}. Choose a model that can with /model, or say it in words.")
