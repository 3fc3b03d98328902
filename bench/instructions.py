"""Instructions of a turn in user space, which hardly depend on what else the machine does. Needs valgrind.

    python bench/instructions.py [--src DIR] [--kind NAME] [SYSTEM …]
    python bench/instructions.py [--src DIR] --postgres [SYSTEM …]    the same, of a client of PostgreSQL
    python bench/instructions.py [--src DIR] --clients COUNT     of a server, for WebSocket clients that speak at once
    python bench/instructions.py [--src DIR] --doors             of a server, for one client at /v1 and at /ws

A process that makes some turns is counted, and one that makes more; the difference is what the turns took. With
`--src` the turns are those of another checkout: its src/, measured by this script. SYSTEM is one of one.py's.
"""

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from run import HERE, HOMES, ONE_CHUNK, floor_server, gateway_server, load_of, model, postgres_stores

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


UNDER = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
FEW, MANY = 1, 5  # rounds, in each of which every client says something
SERVERS = {"floor": floor_server, "everloop gateway": gateway_server}


def count_served(system: str, base: str, *clients: str) -> int:
    """The instructions of a server to which these clients have come, beginning with its start."""
    with tempfile.NamedTemporaryFile("r") as log:
        serving = partial(SERVERS[system], under=[*UNDER, f"--log-file={log.name}"])
        load_of(serving, base, *clients)
        return _counted(log.read(), system)


def _counted(said: str, system: str) -> int:
    found = re.search(r"I\s+refs:\s+([\d,]+)", said)
    if not found:
        raise SystemExit(f"{system} failed:\n{said}")
    return int(found[1].replace(",", ""))


def count(system: str, turns: int, base: str, src: str, *store: str) -> int:
    """The instructions of a process that makes so many turns."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", **({"PYTHONPATH": src} if src else {})}
    done = subprocess.run(
        [*UNDER, sys.executable, str(HERE / "one.py"), system, f"turns={turns}", base, *store],
        capture_output=True,
        text=True,
        env=environment,
        timeout=1800,
    )
    if done.returncode:
        raise SystemExit(f"{system} failed:\n{done.stderr}")
    return _counted(done.stderr, system)


def _tell_served(name: str, few: Sequence[str], many: Sequence[str], turns: int) -> None:
    """`few` and `many` are clients, of which the latter make so many turns more."""
    with model(ONE_CHUNK) as base:
        for system in SERVERS:
            each = (count_served(system, base, *many) - count_served(system, base, *few)) / turns / 1e3
            print(f"| {name} | {system} | {each:,.0f} |", flush=True)


def _tell_turns(kind: Kind, system: str, src: str, store: Callable[[], Sequence[str]] = tuple) -> None:
    with kind.host() as base:
        few, many = (count(system, turns, base, src, *store()) for turns in (kind.few, kind.many))
    print(f"| {kind.name} | {system} | {(many - few) / (kind.many - kind.few) / 1e3:,.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=f"of {', '.join(SYSTEMS)}; the first by default")
    parser.add_argument("--src", default="", help="the src folder of another checkout")
    parser.add_argument(
        "--kind", default="", help="the beginning of the name of the only kind of turns that is counted"
    )
    parser.add_argument("--clients", type=int, default=0, help="so many at a server, in place of turns in a process")
    parser.add_argument("--doors", action="store_true", help="the same of one client at each door")
    parser.add_argument("--postgres", action="store_true", help="a turn of one chunk that is kept in PostgreSQL")
    chosen = parser.parse_args()
    src = str(Path(chosen.src).resolve()) if chosen.src else ""
    os.environ |= {"PYTHONHASHSEED": "0", **({"PYTHONPATH": src} if src else {})}
    HOMES.mkdir(exist_ok=True)
    print("| turn | system | thousand instructions |\n|---|---|---|", flush=True)
    systems = chosen.systems or SYSTEMS[:1]
    if chosen.clients:
        few, many = (("clients", str(chosen.clients), str(rounds)) for rounds in (FEW, MANY))
        _tell_served(f"{chosen.clients} WebSocket clients at once", few, many, turns=(MANY - FEW) * chosen.clients)
    elif chosen.doors:
        for door in ("v1", "ws"):
            _tell_served(f"through /{door}", ("one", door, "40"), ("one", door, "240"), turns=200)
    elif chosen.postgres:
        with postgres_stores() as new_store:
            for system in systems:
                _tell_turns(KINDS[0], system, src, lambda: [new_store()])
    else:
        for kind in (each for each in KINDS if each.name.startswith(chosen.kind)):
            for system in systems:
                _tell_turns(kind, system, src)


if __name__ == "__main__":
    main()
