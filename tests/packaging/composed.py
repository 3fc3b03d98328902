"""The database of compose.yaml, by Debian's PostgreSQL: a user and a database of that name, and a password."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.ports import free_port
from tests.store.debian import programs

SETTINGS = (
    "listen_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = ''\nfsync = off\nmax_connections = 40\n"
)


@contextmanager
def database(password: str) -> Iterator[str]:
    """Its host and port. It does not run as root, so it is given to Debian's own user for it."""
    bin, port = programs(), free_port()
    assert bin is not None
    folder = Path(tempfile.mkdtemp(prefix="everloop-db-", dir="/tmp"))
    data, secret = folder / "data", folder / "password"
    secret.write_text(password)
    who: Any = {}
    if os.getuid() == 0:
        user = pwd.getpwnam("postgres")
        who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
        for path in (folder, secret):
            os.chown(path, user.pw_uid, user.pw_gid)
    try:
        wanted = ["-U", "everloop", "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync", "--no-locale"]
        _run([bin / "initdb", "-D", data, *wanted, "-E", "UTF8"], who)
        (data / "postgresql.conf").write_text(SETTINGS.format(port))
        _run([bin / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "start"], who)
        there = ["-h", "127.0.0.1", "-p", str(port), "-U", "everloop"]
        _run([bin / "createdb", *there, "everloop"], {**who, "env": {"PGPASSWORD": password}})
        yield f"127.0.0.1:{port}"
    finally:
        subprocess.run([bin / "pg_ctl", "-D", data, "-m", "immediate", "stop"], cwd="/", capture_output=True, **who)
        shutil.rmtree(folder)


def _run(command: list[Any], who: Any) -> None:
    done = subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, **who)
    assert done.returncode == 0, f"{command[0]} failed: {done.stderr.decode()[-500:]}"
