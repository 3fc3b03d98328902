"""A world with nothing outside: a network namespace in which every address there is leads to one canary.

Run by `caged`, which gives the result of `main`. All addresses are routed to loopback, so whatever a request is aimed
at, the canary sees it arrive and says at which address; and if a guard fails, nothing leaves this machine. Names come
from a small DNS server, which may change its mind.
"""

import asyncio
import json
import os
import shutil
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from tests.net.ssrf import FORMS, NAMED, ODD_PORTS

import everloop
from everloop.errors import EverloopError, ToolError
from everloop.net.open import OpenHttp
from everloop.net.resolver import resolve
from everloop.ports import SocketTerms
from everloop.ports.tools import CallContext
from everloop.tools.web_fetch import web_fetch_tool

PUBLIC, PUBLIC_6 = "93.184.216.34", "2606:4700:4700::1111"
OWN, OWN_6, NEIGHBOURS_6 = "93.184.216.99", "2606:4700:1::5", "2606:4700:1::/64"
AT_HOME = (f"http://{OWN}/", f"http://[{OWN_6}]/", "http://[2606:4700:1::77]/", "http://printer.test/")
REBINDINGS = 1000
PORTS = (80, 443, 8080, 8443, *ODD_PORTS)
EVERYTHING = ("0.0.0.0/0", "::/0")
CONTEXT = CallContext(key="t:1:0", thread="t", session="cli:direct", user="ann")

RECORDS = {
    "public.test": [PUBLIC],
    "public-six.test": [PUBLIC_6],
    "printer.test": ["2606:4700:1::88"],
    "inside.test": ["10.0.0.5"],
    "metadata.test": ["169.254.169.254"],
    "loop.test": ["127.0.0.1"],
    "six.test": ["::1"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "translated.test": ["64:ff9b::7f00:1"],
    "mixed.test": [PUBLIC, "127.0.0.1"],
    "mixed-six.test": [PUBLIC, "::1"],
    "many.test": [*(f"93.184.216.{n}" for n in range(1, 25)), "192.168.1.1"],
    "alias.test": ["localhost", "127.0.0.1"],
    "zero.test": ["0.0.0.0"],
    "linklocal.test": ["fe80::1"],
    "ulalocal.test": ["fd00::1"],
    "broadcast.test": ["255.255.255.255"],
}

_SETUP = """
ip link set lo up
ip addr add $OWN/32 dev lo
ip -6 addr add $OWN_6/128 dev lo nodad
ip -6 route add local $NEIGHBOURS_6 dev lo src $OWN_6
ip route add local 0.0.0.0/0 dev lo src 127.0.0.1
ip -6 route add local ::/0 dev lo src ::1
mount --bind "$1/resolv.conf" /etc/resolv.conf
mount --bind "$1/hosts" /etc/hosts
exec "$2" -m "$3"
"""


def missing() -> str:
    """What this machine lacks for a cage, if anything."""
    for tool in ("unshare", "ip", "mount"):
        if not shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
            return f"{tool} is not installed"
    tried = subprocess.run(["unshare", "-rnm", "true"], capture_output=True, text=True)
    return "" if tried.returncode == 0 else f"network namespaces cannot be made ({tried.stderr.strip()})"


def caged(folder: Path, module: str = "tests.net.cage") -> dict:
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:30 attempts:1\n")
    (folder / "hosts").write_text("127.0.0.1 localhost\n::1 localhost ip6-localhost\n")
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        ["unshare", "-rnm", "sh", "-ec", _SETUP, "sh", str(folder), sys.executable, module],
        cwd=root,
        env={
            "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin",
            "PYTHONPATH": f"{Path(everloop.__file__).parents[1]}:{root}",
            "OWN": OWN,
            "OWN_6": OWN_6,
            "NEIGHBOURS_6": NEIGHBOURS_6,
            "http_proxy": "http://10.9.9.9:80",  # which nobody may ask
            "HTTPS_PROXY": "http://10.9.9.9:80",
        },
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


class Canary:
    """Listens at every address, counts who was reached, and redirects whom it is told to."""

    def __init__(self) -> None:
        self.reached: Counter[str] = Counter()
        self._servers: list[asyncio.Server] = []

    async def listen(self) -> None:
        for port in PORTS:
            for host in ("0.0.0.0", "::"):
                self._servers.append(await asyncio.start_server(self._answer, host, port, backlog=1024))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reached[writer.get_extra_info("sockname")[0]] += 1
        asked = (await reader.readline()).decode("latin-1").split(" ")
        wanted = parse_qs(urlsplit(asked[1]).query).get("to") if len(asked) > 1 else None
        if wanted:
            place = wanted[0].encode("utf-8", "surrogateescape")
            writer.write(b"HTTP/1.1 302 Found\r\nLocation: " + place + b"\r\nContent-Length: 0\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\ncanary")
        writer.close()

    def take(self) -> dict[str, int]:
        """Who was reached since the last time."""
        reached, self.reached = self.reached, Counter()
        return dict(reached)


_CNAME = 5
_QUESTION = b"\xc0\x0c"  # the name that was asked for


class Names(asyncio.DatagramProtocol):
    """Answers from RECORDS. `rebind-N.test` is public when it is first asked for, and loopback from then on."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self._transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple) -> None:
        end = data.index(b"\0", 12)
        labels, at = [], 12
        while at < end:
            labels.append(data[at + 1 : at + 1 + data[at]].decode())
            at += 1 + data[at]
        (kind,) = struct.unpack_from("!H", data, end + 1)
        answers = [self._record(each) for each in self._find(".".join(labels).lower(), kind)]
        answers = [each for each in answers if each[0] in (kind, _CNAME)]
        owner, body = _QUESTION, b""
        for sort, value in answers:
            body += owner + struct.pack("!HHIH", sort, 1, 0, len(value)) + value
            owner = value if sort == _CNAME else owner
        header = data[:2] + struct.pack("!HHHHH", 0x8580, 1, len(answers), 0, 0)
        self._transport.sendto(header + data[12 : end + 5] + body, addr)

    def _find(self, name: str, kind: int) -> list[str]:
        if name.startswith("rebind") and kind == 1:
            self.asked[name] += 1
            return [PUBLIC if self.asked[name] == 1 else "127.0.0.1"]
        return RECORDS.get(name, [])

    def _record(self, value: str) -> tuple[int, bytes]:
        if value == "localhost":
            return _CNAME, b"\x09localhost\0"
        return {4: 1, 6: 28}[ip_address(value).version], ip_address(value).packed


Ask = Callable[[str], Awaitable[object]]


def through(http: OpenHttp) -> Ask:
    async def ask(url: str) -> object:
        async with http.request("GET", url, seconds=5) as answer:
            return await answer.read()

    return ask


def through_websockets(http: OpenHttp) -> Ask:
    async def ask(url: str) -> object:
        async with http.websocket(url, terms=SocketTerms(seconds=5)) as wire:
            return await wire.receive()

    return ask


async def outcome(ask: Ask, url: str) -> str:
    try:
        await ask(url)
    except EverloopError as error:
        return f"ToolError: {error}" if isinstance(error, ToolError) else type(error).__name__
    return "answered"


def carelessly(url: str) -> None:
    """As a client without a guard does: it also reads the forms of numbers that ours refuses to."""
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=1).close()
    except (OSError, ValueError, urllib.error.URLError, UnicodeError, ArithmeticError):
        pass
    except Exception:  # http.client raises what it likes
        pass


async def main() -> None:
    loop = asyncio.get_running_loop()
    canary, names = Canary(), Names()
    await canary.listen()
    await loop.create_datagram_endpoint(lambda: names, ("127.0.0.1", 53))
    guarded, trusting = OpenHttp(), OpenHttp(EVERYTHING)
    said: dict[str, object] = {"names": await resolve("mixed-six.test", 80)}

    async def table(key: str, ask: Ask, urls: tuple[str, ...]) -> None:
        outcomes = {url: await outcome(ask, url) for url in urls}
        said[key] = {"outcomes": [[ascii(url), each] for url, each in outcomes.items()], "reached": canary.take()}

    fetch = web_fetch_tool(guarded)
    await table("public", through(guarded), ("http://public.test/", f"http://{PUBLIC}/", f"http://[{PUBLIC_6}]:8080/"))
    await table("guarded", through(guarded), FORMS + NAMED)
    await table("fetched", lambda url: fetch.run({"url": url}, CONTEXT), FORMS + NAMED)
    await table("trusting", through(trusting), FORMS + NAMED)
    await table("at home", through(guarded), AT_HOME)
    await table("at home, trusting", through(trusting), AT_HOME)
    aimed = tuple(
        f"http://public.test/?to={quote(url, errors='surrogateescape')}" for url in FORMS + NAMED if url.strip()
    )
    await table("redirected", through(guarded), aimed)
    await table("redirected, trusting", through(trusting), aimed)
    aimed = tuple(f"ws{url[4:]}" for url in FORMS + NAMED if url.startswith("http"))
    await table("websockets", through_websockets(guarded), aimed)
    await table("websockets, trusting", through_websockets(trusting), aimed)
    await table("websockets, public", through_websockets(guarded), ("ws://public.test/", "ws://rebind-ws.test/"))
    await table("websockets, rebound", through_websockets(guarded), ("ws://rebind-ws.test/",))
    for url in FORMS + NAMED:
        await asyncio.to_thread(carelessly, url)
    said["careless"] = {"reached": canary.take()}

    rebound = tuple(f"http://rebind-{n}.test/" for n in range(REBINDINGS))
    await table("rebound", through(guarded), rebound)
    await table("rebound, asked again", through(guarded), rebound[:50])
    for n in range(20):  # looks first and asks then, as many guards do
        if await resolve(f"rebind-late-{n}.test", 80) == [PUBLIC]:
            await asyncio.to_thread(carelessly, f"http://rebind-late-{n}.test/")
    said["rebound, careless"] = {"reached": canary.take()}
    await guarded.close()
    await trusting.close()
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
