"""Registries of our own with one small server each: an npm registry on the loopback, and a folder of wheels for pip."""

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from tests.tools.mcp.lines import LINES

NODE_SERVER = """#!/usr/bin/env node
const fs = require("fs")
const say = (id, result) => process.stdout.write(JSON.stringify({jsonrpc: "2.0", id, result}) + "\\n")
const write = path => { try { fs.writeFileSync(path, "x"); return "written" } catch (error) { return error.code } }
require("readline").createInterface({input: process.stdin}).on("line", line => {
  const {id, method} = JSON.parse(line)
  if (method === "initialize") say(id, {protocolVersion: "2025-06-18", capabilities: {tools: {}},
    serverInfo: {name: "small", version: "1"}})
  else if (method === "tools/list") say(id, {tools: [{name: "it", inputSchema: {type: "object"}}]})
  else if (method === "tools/call") say(id, {content: [{type: "text", text: write(__filename)}]})
  else if (id !== undefined) say(id, {})
})
"""
PYTHON_SERVER = f"""{LINES}
def write(path):
    try:
        open(path, "a").close()
        return "written"
    except OSError as error:
        return type(error).__name__
def main():
    serve(lambda request: text(request, write(__file__)))
"""


@contextmanager
def npm_registry(trap: Path, code: str = NODE_SERVER) -> Iterator[str]:
    """The address of one that has `@somebody/small` 1.2.3, whose script would make `trap` when it is installed."""
    about = {
        "name": "@somebody/small",
        "version": "1.2.3",
        "bin": {"small-server": "./server.js"},
        "scripts": {"postinstall": f"touch {trap}", "preinstall": f"touch {trap}"},
    }
    tarball = _tarball({"package/package.json": json.dumps(about), "package/server.js": code})

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith(".tgz"):
                self._answer(200, tarball)
            elif unquote(self.path) == "/@somebody/small":
                self._answer(200, json.dumps(_packument(about, tarball, self.headers["Host"])).encode())
            else:
                self._answer(404, b"{}")

        def _answer(self, code: int, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _packument(about: dict[str, object], tarball: bytes, host: str) -> dict[str, object]:
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    dist = {"integrity": integrity, "tarball": f"http://{host}/small.tgz"}
    return {"name": about["name"], "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": {**about, "dist": dist}}}


def _tarball(files: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


def make_wheel(folder: Path) -> None:
    """One of `small-server` 1.2.3, with a program of that name."""
    about = "small_server-1.2.3.dist-info"
    files = {
        "small_server.py": PYTHON_SERVER,
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: small-server\nVersion: 1.2.3\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "[console_scripts]\nsmall-server = small_server:main\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{about}/RECORD"))
    with zipfile.ZipFile(folder / "small_server-1.2.3-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def make_source(folder: Path, trap: Path) -> None:
    """One of `only-source` 1.0 without a wheel: who builds it makes `trap`."""
    setup = (
        f"open({str(trap)!r}, 'w').close()\nfrom setuptools import setup\nsetup(name='only-source', version='1.0')\n"
    )
    files = {"only-source-1.0/setup.py": setup, "only-source-1.0/PKG-INFO": "Name: only-source\nVersion: 1.0\n"}
    (folder / "only-source-1.0.tar.gz").write_bytes(_tarball(files))
