"""Debian's PostgreSQL with TLS, for the one in the wheel has none: a server, its authority, and another one."""

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


class Debian:
    """Known by its certificate as localhost, and not by its number."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._port = port
        self.authority = folder / "authority.pem"
        self.stranger = folder / "stranger.pem"
        self.verified = self.url("localhost", sslmode="verify-full", sslrootcert=str(self.authority))

    def url(self, host: str, **options: str) -> str:
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"postgresql://postgres@{host}:{self._port}/postgres?{query}"


def programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[4]))
    return found[-1].parent if found and shutil.which("openssl") else None


@contextmanager
def debian() -> Iterator[Debian]:
    """It does not run as root, so it is given to Debian's own user for it."""
    bin = programs()
    assert bin is not None
    folder = Path(tempfile.mkdtemp(prefix="everloop-tls-", dir="/tmp"))
    _make_certificates(folder)
    who: Any = {}
    if os.getuid() == 0:
        user = pwd.getpwnam("postgres")
        who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
        for path in (folder, *folder.iterdir()):
            os.chown(path, user.pw_uid, user.pw_gid)
        folder.chmod(0o755)
    data = folder / "data"
    _run([bin / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8"], who)
    port = free_port()
    (data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 trust\n")
    (data / "postgresql.conf").write_text(
        f"listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = ''\nfsync = off\nssl = on\n"
        f"ssl_cert_file = '{folder}/server.pem'\nssl_key_file = '{folder}/server.key'\nmax_connections = 40\n"
    )
    _run([bin / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "start"], who)
    try:
        yield Debian(folder, port)
    finally:
        _run([bin / "pg_ctl", "-D", data, "-m", "immediate", "stop"], who)
        shutil.rmtree(folder)


def _make_certificates(folder: Path) -> None:
    new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes"]
    for name in ("authority", "stranger"):
        files = ["-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem"]
        _run([*new, "-x509", "-subj", f"/CN={name}", *files], {})
    _run([*new, "-subj", "/CN=server", "-keyout", folder / "server.key", "-out", folder / "server.csr"], {})
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    sign = ["openssl", "x509", "-req", "-CA", folder / "authority.pem", "-CAkey", folder / "authority.key"]
    request = ["-CAcreateserial", "-extfile", folder / "names", "-in", folder / "server.csr"]
    _run([*sign, *request, "-out", folder / "server.pem"], {})
    (folder / "server.key").chmod(0o600)


def _run(command: list[Any], who: Any) -> None:
    done = subprocess.run(
        command, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **who
    )
    assert done.returncode == 0, f"{command[0]} failed"
