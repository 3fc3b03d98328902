"""A homeserver of our own: Synapse, from a virtual environment beside ours, on a port of the loopback.

It is under the AGPL and nothing of ours: the tests run it as a program, in a folder that goes with them.
"""

import contextlib
import hashlib
import hmac
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_port

PYTHON = Path(sys.prefix) / "synapse" / "bin" / "python"  # the Makefile puts it there
SECRET = "who knows this makes accounts"
PASSWORD = "a password of somebody"
PATIENCE = 90.0  # seconds for it to start
_FREELY = {"per_second": 10_000, "burst_count": 10_000}
_names = count()


class Account:
    def __init__(self, user: str, token: str, device: str) -> None:
        self.user = user
        self.token = token
        self.device = device


class Synapse:
    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.log = folder / "log"

    def has_stored(self, text: str) -> bool:
        """Whether it lies anywhere in its database, or among its files, as it was said."""
        kept = [path for path in self.folder.rglob("*") if path.is_file() and path != self.log]
        return any(text.encode() in path.read_bytes() for path in kept)

    def register(self, name: str) -> Account:
        """An account with a name that nobody else has."""
        name = f"{name}{next(_names)}-{os.getpid()}"
        nonce = self._ask("/_synapse/admin/v1/register")["nonce"]
        mac = hmac.new(SECRET.encode(), "\0".join((nonce, name, PASSWORD, "notadmin")).encode(), hashlib.sha1)
        asked = {"nonce": nonce, "username": name, "password": PASSWORD, "admin": False, "mac": mac.hexdigest()}
        made = self._ask("/_synapse/admin/v1/register", asked)
        return Account(made["user_id"], made["access_token"], made["device_id"])

    def _ask(self, path: str, body: Any = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data), timeout=30) as answer:
            return json.load(answer)


def _settings(folder: Path, port: int) -> dict[str, Any]:
    return {
        "server_name": "test.local",
        "public_baseurl": f"http://127.0.0.1:{port}/",
        "pid_file": str(folder / "pid"),
        "listeners": [
            {
                "port": port,
                "type": "http",
                "bind_addresses": ["127.0.0.1"],
                "resources": [{"names": ["client", "media"], "compress": False}],
            }
        ],
        "database": {"name": "sqlite3", "args": {"database": str(folder / "homeserver.db")}},
        "media_store_path": str(folder / "media"),
        "signing_key_path": str(folder / "signing.key"),
        "registration_shared_secret": SECRET,
        "macaroon_secret_key": "m" * 40,
        "form_secret": "f" * 40,
        "report_stats": False,
        "trusted_key_servers": [],
        "federation_domain_whitelist": [],
        "bcrypt_rounds": 4,
        "caches": {"sync_response_cache_duration": "0s"},  # else a first sync is the same for two minutes
        "max_upload_size": "1M",
        "rc_message": _FREELY,
        "rc_login": {"address": _FREELY, "account": _FREELY, "failed_attempts": _FREELY},
        "rc_joins": {"local": _FREELY, "remote": _FREELY},
        "rc_invites": {"per_room": _FREELY, "per_user": _FREELY, "per_issuer": _FREELY},
        "rc_room_creation": _FREELY,
    }


@contextlib.contextmanager
def running() -> Iterator[Synapse]:
    """Skips where it is not installed, which CI does not accept."""
    if not PYTHON.exists():
        pytest.skip("Synapse is not installed: `make test` puts it into .venv/synapse where pip can have it")
    with tempfile.TemporaryDirectory(prefix="everloop-synapse-") as name:
        folder, port = Path(name), free_port()
        (folder / "homeserver.yaml").write_text(json.dumps(_settings(folder, port)))  # JSON is YAML
        key = f"ed25519 a_test {'A' * 43}\n"
        (folder / "signing.key").write_text(key)
        command = [str(PYTHON), "-m", "synapse.app.homeserver", "-c", str(folder / "homeserver.yaml")]
        server = Synapse(f"http://127.0.0.1:{port}", folder)
        with server.log.open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=folder)
        try:
            _wait(server, process)
            yield server
        finally:
            process.kill()
            process.wait()


def _wait(server: Synapse, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        assert process.poll() is None, server.log.read_text()[-2000:]
        with contextlib.suppress(OSError):
            server._ask("/_matrix/client/versions")
            return
        time.sleep(0.05)
    raise AssertionError(f"Synapse did not start within {PATIENCE:g} s: {server.log.read_text()[-2000:]}")
