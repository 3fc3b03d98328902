"""With a real TLS server, and with the oldest and the newest asyncpg that we allow."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from everloop.errors import StoreUnreachable
from everloop.store.postgres import PostgresStore

from . import matrix
from .conftest import PostgresHome, cannot
from .debian import Debian, debian, programs
from .test_wire import over_tcp

ROOT = Path(__file__).parents[2]
OLDEST = Path(sys.prefix) / "asyncpg-oldest"  # the Makefile puts it there


@pytest.fixture(scope="module")
def server() -> Iterator[Debian]:
    if programs() is None:
        cannot("Debian's postgresql, or openssl, is not installed")
    with debian() as server:
        yield server


async def test_a_server_whose_authority_and_name_are_right_is_trusted(server: Debian):
    connection = await asyncpg.connect(server.verified)
    query = (
        "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'everloop'"
    )
    store: Any = await PostgresStore.connect(server.verified)
    await store.receive(matrix.letter("e1"))
    assert await connection.fetchval(query) is True
    await store.close()
    await connection.close()


async def refusal(url: str) -> str:
    with pytest.raises(StoreUnreachable) as caught:
        await PostgresStore.connect(url)
    return str(caught.value)


async def test_a_stranger_is_not_trusted(server: Debian):
    url = server.url("localhost", sslmode="verify-full", sslrootcert=str(server.stranger))
    said = await refusal(url)
    assert "is not trusted (" in said
    assert said.endswith("check sslrootcert, and that the host in the url is a name of its certificate")


async def test_a_server_of_another_name_is_not_trusted(server: Debian):
    url = server.url("127.0.0.1", sslmode="verify-full", sslrootcert=str(server.authority))
    assert "is not trusted (IP address mismatch, certificate is not valid for '127.0.0.1'.)" in await refusal(url)


async def test_files_that_are_not_there_or_hold_no_certificate_are_told(server: Debian, tmp_path: Path):
    path = tmp_path / "authority.pem"
    url = server.url("localhost", sslmode="verify-full", sslrootcert=str(path))
    assert await refusal(url) == f"the url of the database says sslrootcert={path}, and there is no such file"
    path.write_text("nothing")
    assert (await refusal(url)).startswith(f"there is no TLS with the database server {name_of(server)} (")


async def test_tls_that_cannot_be_had_is_told(server: Debian):
    said = await refusal(server.url("localhost", sslmode="perhaps"))
    assert said.startswith("the url of the database asks for what cannot be had: `sslmode` parameter must be one of")


async def test_a_server_that_wants_tls_says_so(server: Debian):
    assert "no encryption" in await refusal(server.url("localhost", sslmode="disable"))


async def test_a_server_without_tls_is_told_of(postgres_home: PostgresHome):
    async with over_tcp(postgres_home) as url:
        said = await refusal(f"{url}&sslmode=require")
    assert said.endswith("has no TLS, and the url asks for it: check sslmode")


def name_of(server: Debian) -> str:
    return server.verified.partition("@")[2].partition("?")[0]


def walked(version: str, servers: int) -> list[str]:
    return [
        f"{version} {number} {loop} {kind.__name__}"
        for number in range(servers)
        for loop in matrix.LOOPS
        for kind in matrix.WIRES
    ]


def walk(addresses: list[str], path: str = "") -> list[str]:
    command = [sys.executable, "-m", "tests.store.matrix", *addresses]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_newest_asyncpg_works_on_both_loops_by_both_ways_plain_and_encrypted(postgres: str, server: Debian):
    assert walk([postgres, server.verified]) == walked(asyncpg.__version__, 2)


def test_the_oldest_asyncpg_works_on_both_loops_by_both_ways_plain_and_encrypted(postgres: str, server: Debian):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [floor] = re.findall(r"asyncpg>=([\d.]+)", " ".join(extras["postgres"]))
    if not OLDEST.is_dir():
        cannot(f"asyncpg {floor} is not in {OLDEST.name} of the virtual environment: `make test` puts it there")
    assert walk([postgres, server.verified], str(OLDEST)) == walked(f"{floor}.0", 2)
