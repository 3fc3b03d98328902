"""Whether a refusal that comes before the whole request was sent is heard, from servers that nobody here wrote.

    python bench/servers.py --servers PYTHON [--times 10] [SERVER …]

PYTHON is an interpreter that has hypercorn, granian and uvicorn; they are no dependencies of ours. Each server answers
413 to a POST of 8 MB before it has read it, and closes; plain and over TLS, asked on asyncio and on uvloop, each time
over a new connection. Needs openssl.
"""

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop

from everloop.errors import ProviderError
from everloop.net.trusted import TrustedHttp

BODY = b"x" * 8_000_000
APP = """
async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"9")]})
        await send({"type": "http.response.body", "body": b"too large"})
"""
SERVERS = {
    "hypercorn": (["-m", "hypercorn", "app:app", "--bind", "127.0.0.1:{port}"], ["--certfile", "--keyfile"]),
    "granian": (
        ["-m", "granian", "app:app", "--interface", "asgi", "--host", "127.0.0.1", "--port", "{port}", "--no-ws"],
        ["--ssl-certificate", "--ssl-keyfile"],
    ),
    "uvicorn": (
        ["-m", "uvicorn", "app:app", "--port", "{port}", "--lifespan", "off"],
        ["--ssl-certfile", "--ssl-keyfile"],
    ),
}


def make_certificate(folder: Path) -> list[str]:
    """The files of a certificate for this machine, which is its own authority, and of its key."""
    files = [str(folder / "certificate.pem"), str(folder / "key.pem")]
    made = [
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=127.0.0.1",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    ]
    command = ["openssl", "req", *made, "-out", files[0], "-keyout", files[1]]
    subprocess.run(command, check=True, capture_output=True)
    return files


@contextmanager
def serving(python: str, name: str, folder: Path, tls: list[str]) -> Iterator[str]:
    """The address of such a server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command, options = SERVERS[name]
    secure = [word for pair in zip(options, tls, strict=True) for word in pair] if tls else []
    words = [word.format(port=port) for word in command]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([python, *words, *secure], cwd=folder, stdout=log, stderr=log)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.05)
        yield f"http{'s' if tls else ''}://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait()


async def ask(url: str, authority: str | None, times: int) -> Counter[str]:
    """What became of so many requests."""
    told: Counter[str] = Counter()
    for _ in range(times):
        http = TrustedHttp(ca_file=authority)
        try:
            async with http.request("POST", url, body=BODY, seconds=30) as answer:
                told[f"{answer.status} {(await answer.read()).decode()}"] += 1
        except ProviderError as error:
            told[type(error).__name__] += 1
        await http.close()
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="SERVER", help=f"of {', '.join(SERVERS)}; the first two by default")
    parser.add_argument("--servers", default=sys.executable, help="the interpreter that has them")
    parser.add_argument("--times", type=int, default=10)
    chosen = parser.parse_args()
    python = os.path.abspath(chosen.servers)
    heard = asked = 0
    print("| server | loop | heard | else |\n|---|---|---|---|")
    for name in chosen.names or [*SERVERS][:2]:
        for securely in (False, True):
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                (folder / "app.py").write_text(APP)
                tls = make_certificate(folder) if securely else []
                with serving(python, name, folder, tls) as url:
                    for loop, run in (("asyncio", asyncio.run), ("uvloop", uvloop.run)):
                        told = run(ask(url, tls[0] if tls else None, chosen.times))
                        good = sum(told[what] for what in told if what.startswith("413"))
                        del told["413 too large"]  # what is left was heard in part, or not at all
                        heard, asked = heard + good, asked + chosen.times
                        print(f"| {name}{', TLS' if tls else ''} | {loop} | {good} of {chosen.times} | {dict(told)} |")
    print(f"\nheard {heard} of {asked}")


if __name__ == "__main__":
    main()
