"""The Containerfile, step by step: a wheel is built, installed into an empty environment, and tried from there, as the
user that the image has and with secrets from files."""

import asyncio
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import psutil
import pytest
from tests.effort import in_full
from tests.packaging.containerfile import ROOT, Image, instructions
from tests.ports import free_port
from tests.processes import kill

from everloop.settings import load
from everloop.testing import Say
from everloop.testing.model_server import ModelServer

# All of them in full: what they bring is others' and takes long to install.
EXTRAS = {} if in_full(True, False) else {"EXTRAS": "gateway"}
KEY = "k-1234567890"


def cannot(why: str) -> None:
    if os.environ.get("EVERLOOP_NO_SKIPS") == "1":
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    if os.geteuid() or not shutil.which("bwrap"):
        cannot("the steps of an image need root and bubblewrap")
    folder = tmp_path_factory.mktemp("image")
    made = Image(folder, **EXTRAS)
    for step in instructions():
        made.take(step)
    (folder / "app" / "key").write_text(f"{KEY}\n")
    return made


@pytest.mark.shortened
def test_the_wheel_has_every_file_of_the_package_and_nothing_else(image: Image):
    (wheel,) = image.folder.glob("app/wheels/*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == {name.removeprefix("src/") for name in tracked("src/everloop")}


def test_the_source_archive_builds_the_same_wheel(image: Image):
    user, image.user = image.user, ""
    image.run(["/app/venv/bin/pip", "install", "--quiet", "--target", "/app/tools", "hatchling"])
    build = ["python", "-m", "hatchling", "build", "-t"]
    image.run(["sh", "-c", f"cd /src && {' '.join(build)} sdist -d /app/sdist"], PYTHONPATH="/app/tools")
    (archive,) = image.folder.glob("app/sdist/*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(image.folder / "app" / "unpacked", filter="data")
    (source,) = image.folder.glob("app/unpacked/*")
    image.run(
        ["sh", "-c", f"cd /app/unpacked/{source.name} && {' '.join(build)} wheel -d /app/again"],
        PYTHONPATH="/app/tools",
    )
    (first,), (again,) = image.folder.glob("app/wheels/*.whl"), image.folder.glob("app/again/*.whl")
    assert hashes(again) == hashes(first)
    image.user = user


async def test_the_chat_answers_from_there(image: Image):
    async with ModelServer(lambda shown: Say("from the image")) as model:
        command = image.inside([*image.entrypoint, "-m", "hello"], **secrets_of(model))
        ran = await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=-1, stdin=-3)
        out, err = await ran.communicate()
        key = model.requests[-1].headers["Authorization"]
    assert (ran.returncode, out, err) == (0, b"from the image\n", b"")
    assert key == f"Bearer {KEY}"


async def test_the_gateway_serves_the_page_from_there_is_healthy_and_stops(image: Image):
    port = free_port()
    async with ModelServer(lambda shown: Say("hi")) as model, serving(image, model, port) as process:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
            page, script = await client.get("/"), await client.get("/app.js")
            found = page.status, "everloop" in await page.text(), script.status
        healthy = [word.replace("18790", str(port)) for word in image.health]
        image.run(healthy)
        psutil.Process(process.pid).children(recursive=True)[
            -1
        ].terminate()  # as an engine does: bubblewrap tells nobody
        status = await process.wait()
        with pytest.raises(AssertionError, match="refused"):
            image.run(healthy)
    assert (found, status) == ((200, True, 200), 0)


async def test_a_secret_that_is_not_there_is_named(image: Image):
    command = image.inside([*image.entrypoint, "-m", "hello"], PGPASSWORD_FILE="/run/secrets/none")
    ran = await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=-1)
    _, err = await ran.communicate()
    assert ran.returncode == 2
    assert err.decode().startswith("everloop: PGPASSWORD_FILE is /run/secrets/none, which cannot be read")


def test_what_compose_sets_are_settings_and_secrets_that_it_mounts(tmp_path: Path):
    text = (ROOT / "compose.yaml").read_text()
    gateway = text.partition("  gateway:\n")[2].partition("\n  db:\n")[0]
    environment = dict(re.findall(r"^      ([A-Z_]+): (\S+)$", gateway, re.MULTILINE))
    store = load(tmp_path, environment).store.url
    files = {value.removeprefix("/run/secrets/") for name, value in environment.items() if name.endswith("_FILE")}
    declared = set(re.findall(r"^  (\w+): \{ file: ", text, re.MULTILINE))
    assert store == "postgresql://everloop@db:5432/everloop"
    assert files == declared == set(re.findall(r"\w+", re.findall(r"    secrets: \[(.+)\]", gateway)[0]))


def tracked(folder: str) -> set[str]:
    listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, check=True, capture_output=True, text=True)
    return {name for name in listed.stdout.split("\n") if name}


def hashes(wheel: Path) -> dict[str, int]:
    return {each.filename: each.CRC for each in zipfile.ZipFile(wheel).infolist()}


def secrets_of(model: ModelServer) -> dict[str, str]:
    return {
        "EVERLOOP_AGENTS__DEFAULTS__MODEL": "custom/scripted",
        "EVERLOOP_PROVIDERS__CUSTOM__API_BASE": model.url,
        "EVERLOOP_PROVIDERS__CUSTOM__API_KEY_FILE": "/app/key",
        "EVERLOOP_VAULT_PASSPHRASE_FILE": "/app/key",
    }


@asynccontextmanager
async def serving(image: Image, model: ModelServer, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """Until it says where it is."""
    words = image.inside([*image.entrypoint, *image.command], **secrets_of(model), EVERLOOP_GATEWAY__PORT=str(port))
    process = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    try:
        said = (await process.stderr.readline()).decode()
        assert said == f"everloop gateway: http://127.0.0.1:{port}\n"
        yield process
    finally:
        await kill(process)
