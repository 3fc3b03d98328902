"""What is published: a wheel and an sdist, and all that a person does first, done from an environment into which only
the wheel was installed. Nothing here is run from the folder with the sources."""

import asyncio
import re
import subprocess
import tarfile
import tomllib
import zipfile
from collections.abc import AsyncIterator
from email import message_from_bytes
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio
from tests.cli.at_terminal import AtTerminal
from tests.cli.person import Person, Ran, ended
from tests.effort import in_full
from tests.gateway.conftest import browser  # noqa: F401  # a fixture
from tests.packaging.installed import ROOT, Installation, build

from everloop.gateway.page import KINDS
from everloop.testing import Call, Say
from everloop.testing.model_server import ModelServer

in_the_loop_of_the_browser = pytest.mark.asyncio(loop_scope="session")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGE = ROOT / "src" / "everloop" / "gateway" / "page"
BASE = 45, 110  # packages and megabytes at most, without extras
OF_README = re.findall(
    r"`(\w+)` \(", (ROOT / "README.md").read_text().partition("Others for the\n")[2].partition("\n\n")[0]
)
# What they bring is others', and takes long to install.
EXTRAS = in_full(("local", *OF_README), ("documents",))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    made = Installation(tmp_path_factory.mktemp("installed") / "venv")
    made.install(wheel)
    return made


@pytest_asyncio.fixture(loop_scope="session")
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer(lambda shown: Say("installed, and well")) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def person(tmp_path: Path, model: ModelServer, installed: Installation) -> AsyncIterator["Newcomer"]:
    person = Newcomer(tmp_path, model, installed)
    yield person
    await person.leave()


class Newcomer(Person):
    """Somebody who has the command, and no sources."""

    def __init__(self, folder: Path, model: ModelServer, installed: Installation) -> None:
        super().__init__(folder, model)
        self.environment["PATH"] = f"{installed.folder}/bin:/usr/bin:/bin"
        self._folder = folder
        self._everloop = installed.everloop

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *(self._everloop, *arguments), stdin=pipe, stdout=pipe, stderr=pipe, env=self.environment, cwd=self._folder
        )
        self._started.append(process)
        return process

    async def run(self, *arguments: str, typed: bytes = b"") -> Ran:
        return await ended(await self.start(*arguments), typed)


class TestWhatIsPublished:
    def test_the_wheel_has_every_file_of_the_package_and_nothing_else(self, wheel: Path):
        held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
        assert held == {name.removeprefix("src/") for name in tracked("src/everloop")}
        needed = ("py.typed", "providers/data/prices.json", "memory/data/vocab.txt.gz", "gateway/page/index.html")
        assert [name for name in needed if f"everloop/{name}" not in held] == []

    def test_the_wheel_says_for_which_pythons_it_is(self, wheel: Path):
        archive = zipfile.ZipFile(wheel)
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        told = message_from_bytes(archive.read(name))
        pythons = re.findall(r"Python :: (3\.\d+)", str(told.get_all("Classifier")))
        assert (told["Requires-Python"], told["License-Expression"]) == (">=3.11", "MIT")
        assert (pythons, wheel.name) == (
            ["3.11", "3.12", "3.13", "3.14"],
            f"everloop-{PROJECT['version']}-py3-none-any.whl",
        )
        assert set(told.get_all("Provides-Extra", ())) == set(PROJECT["optional-dependencies"])

    def test_the_source_archive_has_what_git_has_and_builds_the_same_wheel(
        self, wheel: Path, tmp_path_factory: pytest.TempPathFactory
    ):
        folder = tmp_path_factory.mktemp("source")  # the tests in it hold the keys of tests
        archive = build(folder / "sdist", kind="sdist")
        with tarfile.open(archive) as packed:
            names = {name.partition("/")[2] for name in packed.getnames()}
            packed.extractall(folder / "unpacked")  # our own; Debian 12 has a Python that knows no filter
        (source,) = (folder / "unpacked").iterdir()
        again = build(folder / "again", source)
        assert names - tracked("") == {"PKG-INFO"}
        assert hashes(again) == hashes(wheel)


def test_without_extras_it_is_small(installed: Installation):
    packages, megabytes = BASE
    assert "everloop" in installed.packages
    assert len(installed.packages) <= packages, installed.packages
    assert installed.megabytes <= megabytes


@in_the_loop_of_the_browser
class TestWithoutExtras:
    async def test_it_knows_its_version(self, person: Newcomer):
        assert await person.run("--version") == Ran(0, f"everloop {PROJECT['version']}\n", "")

    async def test_it_answers_one_question(self, person: Newcomer):
        assert await person.run("agent", "-m", "hi") == Ran(0, "installed, and well\n", "")

    async def test_a_chat_at_a_terminal_streams_an_answer_and_is_left(self, person: Newcomer, installed: Installation):
        async with AtTerminal(person, program=(installed.everloop,), term="xterm") as terminal:
            await terminal.sees("> ")
            terminal.send("hello\r")
            await terminal.sees("installed, and well")
            await terminal.sees("> ")
            terminal.send("\x04")
            assert await terminal.ends() == 0

    async def test_it_has_its_own_skills(self, person: Newcomer):
        ran = await person.run("skills", "--json")
        ours = {path.parent.name for path in (ROOT / "src/everloop/memory/skills/builtin").glob("*/SKILL.md")}
        assert ran.status == 0, ran
        assert {row["name"] for row in msgspec.json.decode(ran.out)["skills"]} == ours

    async def test_its_page_is_whole_and_answers_in_a_browser(
        self,
        person: Newcomer,
        browser: Any,  # noqa: F811
    ):
        process = await person.start("gateway", "--port", "0")
        assert process.stderr is not None
        said = [(await process.stderr.readline()).decode() for _ in range(2)]
        url, link = said[0].split()[-1], said[1].split()[-1]
        assert await wrong_files(url) == []
        visit = await browser.new_context()
        page = await visit.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        try:
            await page.goto(link)
            await page.fill(".composer textarea", "hello")
            await page.keyboard.press("Enter")
            await page.wait_for_selector(".said.final.last:has-text('installed, and well')", timeout=60_000)
        finally:
            await visit.close()
        process.terminate()
        assert await process.wait() == 0
        assert errors == []


@pytest.mark.shortened
class TestWithExtras:
    @pytest.fixture(scope="class")
    @classmethod
    def more(cls, installed: Installation, wheel: Path) -> Installation:
        installed.install(wheel, *EXTRAS)
        return installed

    def test_those_that_the_readme_names_are_there(self):
        assert {"documents", "web", "recall", "images", "channels", "postgres"} <= set(OF_README)
        assert set(OF_README) <= set(PROJECT["optional-dependencies"])

    def test_all_that_they_name_is_installed(self, more: Installation):
        wanted = {name for extra in EXTRAS for name in PROJECT["optional-dependencies"][extra]}
        named = {re.split(r"[><=\[; ]", each)[0].replace("_", "-").lower() for each in wanted}
        assert named - more.packages == set()

    @in_the_loop_of_the_browser
    async def test_a_document_is_written(self, more: Installation, person: Newcomer, model: ModelServer):
        letter = Call("create_document", {"path": "letter.docx", "content": "# Dear reader"})
        model.play([letter, Say("there it is")])
        ran = await person.run("agent", "-m", "write it")
        made = person.home / "workspace" / "letter.docx"
        assert ran == Ran(0, "there it is\n", ran.err)
        assert b"Dear reader" in zipfile.ZipFile(made).read("word/document.xml")


async def wrong_files(url: str) -> list[str]:
    """Those files of the page that are not served as they lie in the sources, under the address that it names."""
    wrong: list[str] = []
    async with aiohttp.ClientSession(url) as client:
        async with client.get("/") as answer:
            (address,) = set(re.findall(r'"(/page/\w+/)', await answer.text()))
        for path in sorted(path for path in PAGE.iterdir() if path.suffix in KINDS):
            async with client.get(address + path.name) as answer:
                if answer.status != 200 or await answer.read() != path.read_bytes():
                    wrong.append(path.name)
    return wrong


def tracked(folder: str) -> set[str]:
    """And what would be, had somebody added it."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder or "."]
    listed = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    return {name for name in listed.stdout.split("\n") if name}


def hashes(wheel: Path) -> dict[str, int]:
    return {each.filename: each.CRC for each in zipfile.ZipFile(wheel).infolist()}
