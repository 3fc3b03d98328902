"""A real S3 server on loopback: SeaweedFS, one for all tests of a process."""

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from tests.ports import free_port

WEED = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
KEY, SECRET = "weed-id", "weed-key"
_QUIET = (
    *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3", "-s3.port.iceberg=0", "-s3.port.lance=0"),
    *("-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-volume.max=20"),
)
_USER = {"name": "a", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}


@contextmanager
def weed(folder: Path) -> Iterator[str]:
    """The address of a server that keeps its data there."""
    assert WEED
    (folder / "data").mkdir()
    (folder / "s3.json").write_text(json.dumps({"identities": [_USER]}))
    ports = {name: free_port() for name in ("master", "volume", "filer", "s3")}
    chosen = [f"-{name}.port={port}" for name, port in ports.items()]
    with open(folder / "log", "wb") as log:
        server = subprocess.Popen(
            [WEED, "server", f"-dir={folder}/data", f"-s3.config={folder}/s3.json", *_QUIET, *chosen],
            stdout=log,
            stderr=log,
        )
    try:
        address = f"http://127.0.0.1:{ports['s3']}"
        _wait(address, server)
        yield address
    finally:
        server.kill()  # what it would still write, nobody reads
        server.wait()


def _wait(address: str, server: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + 60
    while server.poll() is None and time.monotonic() < until:
        try:
            urlopen(address, timeout=5)
        except HTTPError as error:
            if error.code == 403:  # it asks who is there, so it is
                return
        except (URLError, OSError):
            pass
        asyncio.run(asyncio.sleep(0.05))
    raise AssertionError("weed has not begun")
