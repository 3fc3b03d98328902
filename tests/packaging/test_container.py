"""The Containerfile, step by step: a wheel is built, installed into an empty environment, and tried from there, as the
user that the image has and with secrets from files."""

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import asyncpg
import psutil
import pytest
from tests.effort import in_full
from tests.packaging.composed import database
from tests.packaging.containerfile import ROOT, Image, instructions
from tests.ports import free_port
from tests.processes import kill
from tests.store.debian import programs

from everloop.providers.catalog import HOSTS
from everloop.settings import load
from everloop.testing import Say
from everloop.testing.model_server import ModelServer

# All of them in full: what they bring is others' and takes long to install.
EXTRAS = {} if in_full(True, False) else {"EXTRAS": "gateway,postgres"}
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


async def answer(image: Image, model: ModelServer, **environment: str) -> tuple[int | None, bytes, bytes]:
    command = image.inside([*image.entrypoint, "-m", "hello"], **secrets_of(model), **environment)
    ran = await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=-1, stdin=-3)
    out, err = await ran.communicate()
    return ran.returncode, out, err


@pytest.mark.shortened
async def test_the_chat_answers_from_there(image: Image):
    async with ModelServer(lambda shown: Say("from the image")) as model:
        answered = await answer(image, model)
        key = model.requests[-1].headers["Authorization"]
    assert answered == (0, b"from the image\n", b"")
    assert key == f"Bearer {KEY}"


async def test_beside_postgres_as_compose_sets_it_all_is_kept_there(image: Image):
    if programs() is None:
        cannot("Debian's postgresql, or openssl, is not installed")
    with database(KEY) as place:
        composed = {name: value.replace("db:5432", place) for name, value in of_gateway().items()}
        composed["PGPASSWORD_FILE"] = "/app/key"  # as db_password is mounted
        chosen = {name: composed[name] for name in ("EVERLOOP_STORE__URL", "PGPASSWORD_FILE")}
        async with ModelServer(lambda shown: Say("kept")) as model:
            answered = await answer(image, model, **chosen, EVERLOOP_HOME="/data/beside")
        connection = await asyncpg.connect(composed["EVERLOOP_STORE__URL"], password=KEY)
        kept = await connection.fetchval("SELECT count(*) FROM threads")
        await connection.close()
    assert (answered, kept) == ((0, b"kept\n", b""), 1)
    assert not list((image.folder / "data" / "beside").glob("*.db"))


async def test_the_gateway_serves_the_page_from_there_is_healthy_and_stops(image: Image):
    port = free_port()
    async with ModelServer(lambda shown: Say("hi")) as model, serving(image, model, port) as process:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
            page, script = await client.get("/"), await client.get("/page/app.js")
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


class TestSecretsByFile:
    """What the entrypoint does before it becomes everloop; without an image it then finds none."""

    @staticmethod
    def enter(**environment: str) -> tuple[int, str]:
        path = {"PATH": os.environ["PATH"]}
        words = ["sh", str(ROOT / "scripts" / "container-entrypoint.sh"), "--version"]
        ran = subprocess.run(words, env=path | environment, capture_output=True, text=True)
        return ran.returncode, ran.stderr

    @pytest.mark.parametrize("name", sorted({name for host in HOSTS.values() for name in host.key_variables}))
    def test_every_key_of_a_provider_may_be_in_one(self, name: str):
        status, said = self.enter(**{f"{name}_FILE": "/nowhere"})
        assert (status, said.partition(", which")[0]) == (2, f"everloop: {name}_FILE is /nowhere")

    @pytest.mark.parametrize("name", ["EVERLOOP_TOOLS__WEB__SEARCH__API_KEY", "EVERLOOP_CHANNELS__TELEGRAM__TOKEN"])
    def test_so_may_any_setting(self, name: str):
        assert self.enter(**{f"{name}_FILE": "/nowhere"})[0] == 2

    @pytest.mark.parametrize(
        "name",
        ["SSL_CERT", "AWS_WEB_IDENTITY_TOKEN", "EVERLOOP_PROVIDERS__CUSTOM__API_KEY", "EVERLOOP_NET__CA"],
    )
    def test_what_is_a_file_for_others_or_for_everloop_itself_is_left_to_them(self, name: str):
        assert self.enter(**{f"{name}_FILE": "/nowhere"})[0] == 127  # on to everloop, which is not here

    def test_a_secret_that_is_given_twice_is_refused(self):
        told = "everloop: PGPASSWORD and PGPASSWORD_FILE are both set: set one of them\n"
        assert self.enter(PGPASSWORD="x", PGPASSWORD_FILE="/etc/hostname") == (2, told)


def test_what_compose_sets_are_settings_and_secrets_that_it_mounts(tmp_path: Path):
    text = (ROOT / "compose.yaml").read_text()
    environment = of_gateway()
    store = load(tmp_path, environment).store.url
    files = {value.removeprefix("/run/secrets/") for name, value in environment.items() if name.endswith("_FILE")}
    declared = set(re.findall(r"^  (\w+): \{ file: ", text, re.MULTILINE))
    assert store == "postgresql://everloop@db:5432/everloop"
    assert files == declared == set(re.findall(r"\w+", re.findall(r"    secrets: \[(.+)\]", text)[0]))


def test_no_secret_comes_into_the_image_or_the_repository():
    ignored = [(ROOT / name).read_text().split() for name in (".dockerignore", ".gitignore")]
    assert ["secrets" in names or "/secrets/" in names for names in ignored] == [True, True]


def of_gateway() -> dict[str, str]:
    """What compose.yaml puts into its environment."""
    gateway = (ROOT / "compose.yaml").read_text().partition("  gateway:\n")[2].partition("\n  db:\n")[0]
    return dict(re.findall(r"^      ([A-Z_]+): (\S+)", gateway, re.MULTILINE))


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
