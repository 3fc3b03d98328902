"""A home in which nothing is wrong, and what puts faults into it: real ones, by the means of whoever would."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
from aiohttp import web

from everloop.app.doctor import examine, patient_of
from everloop.ports.doctor import Diagnosis
from everloop.store.sqlite import SqliteStore
from everloop.store.vault import EncryptedVault, KeyFile
from tests.ports import free_port
from tests.processes import kill

CONFIG = """
[agents.defaults]
model = "custom/little"
context_window = 32000

[providers.custom]
api_base = "{base}"
api_key = "sk-canary-doctor"

[prices."little"]
input = 0.1
output = 0.2

[gateway]
port = {port}
"""


class ModelHost:
    """Lists one model, to whoever; unless it refuses the key, or its clock is another."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self.models = ["little"]

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        if self.status != 200:
            return web.json_response({"error": {"message": "no"}}, status=self.status, headers=self.headers)
        return web.json_response({"data": [{"id": name} for name in self.models]}, headers=self.headers)


@asynccontextmanager
async def model_host() -> AsyncIterator[tuple[ModelHost, str]]:
    host = ModelHost()
    runner = web.ServerRunner(web.Server(host))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield host, f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


class DoctoredHome:
    """A home that was used, and is well."""

    def __init__(self, path: Path, base: str) -> None:
        self.path = path
        self.port = free_port()
        self.base = base
        self.config = path / "config.toml"
        self.database = path / "everloop.db"
        self.workspace = path / "workspace"

    async def make(self) -> "DoctoredHome":
        self.path.mkdir(mode=0o700)
        self.write_config()
        store = await SqliteStore.connect(self.path)
        await EncryptedVault(store, KeyFile(self.path / "vault.key")).set("secret:webhook.token", "sk-canary-kept")
        await store.close()
        for folder in (self.workspace, self.workspace / "memory"):
            folder.mkdir()
        (self.workspace / "memory" / "MEMORY.md").write_text("# Memory\n")
        return self

    def write_config(self, more: str = "", **changes: str) -> None:
        text = CONFIG.format(base=self.base, port=self.port)
        for old, new in changes.items():
            text = text.replace(old, new)
        self.config.write_text(text + more)
        self.config.chmod(0o600)

    async def do(self, work: Callable[[SqliteStore], Awaitable[Any]]) -> None:
        """As a process that uses it, and ends."""
        store = await SqliteStore.connect(self.path)
        try:
            await work(store)
        finally:
            await store.close()

    def sql(self, statement: str, *values: object) -> None:
        connection = apsw.Connection(str(self.database))
        connection.execute(statement, values)
        connection.close()

    async def examine(self, **how: Any) -> list[Diagnosis]:
        async with patient_of(self.path, **how) as patient:
            return await examine(patient)

    def listing(self) -> dict[str, tuple[int, int, int]]:
        """Every file with its size, mode and time."""
        found = {}
        for folder, names, files in os.walk(self.path):
            for name in (*names, *files):
                status = os.lstat(Path(folder, name))
                found[str(Path(folder, name).relative_to(self.path))] = (
                    status.st_size,
                    status.st_mode,
                    status.st_mtime_ns,
                )
        return found

    def copy(self, to: Path) -> "DoctoredHome":
        shutil.copytree(self.path, to)
        to.chmod(0o700)
        return DoctoredHome(to, self.base)


HOLDS = """
import asyncio, sys
from pathlib import Path
from everloop.store.sqlite import SqliteStore

async def main():
    store = await SqliteStore.connect(Path(sys.argv[1]))
    if sys.argv[2] == "lock":
        store._connection.execute("BEGIN IMMEDIATE")
    print("ready", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


@asynccontextmanager
async def process_with(home: Path, what: str = "") -> AsyncIterator[asyncio.subprocess.Process]:
    """Another process that has the store open; with `lock`, it is in the middle of writing."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOLDS, str(home), what), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        yield process
    finally:
        await kill(process)


def freeze(process: asyncio.subprocess.Process) -> None:
    """When this returns, it is: a signal is heard when its turn comes."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


def grave(findings: list[Diagnosis]) -> list[Diagnosis]:
    return [each for each in findings if each.verdict in ("broken", "advice")]
