"""Instructions of a turn in user space, which hardly depend on what else the machine does. Needs valgrind.

    python bench/instructions.py [--src DIR] [--kind NAME] [SYSTEM …]

A process that makes some turns is counted, and one that makes more; the difference is what the turns took. With
`--src` the turns are those of another checkout: its src/, measured by this script. SYSTEM is one of one.py's.
"""

import argparse
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from run import HERE, ONE_CHUNK, model

SYSTEMS = ["everloop-own", "everloop", "floor"]


class Kind(NamedTuple):
    name: str
    host: Callable[[], AbstractContextManager[str]]
    few: int
    many: int


# So far apart that even a client that runs 50 times slower has read one before the next one comes.
AWAITED: Any = {"by": "conversation", "lines": [{"say": ["word "] * 100}], "between": 0.02}


def _piece(said: str) -> bytes:
    data = b'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n' % said.encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@contextmanager
def at_once() -> Iterator[str]:
    """A host that sends a hundred pieces, each a chunk of its own, in one go: so they are read in one go as well."""
    last = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    answer = _HEAD + _piece("word ") * 100 + b"%x\r\n%s\r\n0\r\n\r\n" % (len(last), last)

    def talk(guest: socket.socket) -> None:
        heard = b""
        while data := guest.recv(2**16):
            heard += data
            head, _, body = heard.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            if length and len(body) >= int(length[1]):
                guest.sendall(answer)
                heard = b""

    def serve() -> None:
        while True:
            threading.Thread(target=talk, args=(door.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{door.getsockname()[1]}/v1"


KINDS = [
    Kind("1 chunk", lambda: model(ONE_CHUNK), 60, 260),
    Kind("100 pieces, read in one go", at_once, 20, 100),
    Kind("100 pieces, each awaited", lambda: model(AWAITED), 5, 25),
]


def count(system: str, turns: int, base: str, src: str) -> int:
    """The instructions of a process that makes so many turns."""
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", sys.executable]
    environment = {**os.environ, "PYTHONHASHSEED": "0", **({"PYTHONPATH": src} if src else {})}
    done = subprocess.run(
        [*command, str(HERE / "one.py"), system, f"turns={turns}", base],
        capture_output=True,
        text=True,
        env=environment,
        timeout=1800,
    )
    counted = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or not counted:
        raise SystemExit(f"{system} failed:\n{done.stderr}")
    return int(counted[1].replace(",", ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=f"of {', '.join(SYSTEMS)}; the first by default")
    parser.add_argument("--src", default="", help="the src folder of another checkout")
    parser.add_argument(
        "--kind", default="", help="the beginning of the name of the only kind of turns that is counted"
    )
    chosen = parser.parse_args()
    src = str(Path(chosen.src).resolve()) if chosen.src else ""
    print("| turn | system | thousand instructions |\n|---|---|---|", flush=True)
    for kind in (each for each in KINDS if each.name.startswith(chosen.kind)):
        for system in chosen.systems or SYSTEMS[:1]:
            with kind.host() as base:
                few, many = (count(system, turns, base, src) for turns in (kind.few, kind.many))
            print(f"| {kind.name} | {system} | {(many - few) / (kind.many - kind.few) / 1e3:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
