"""A command reaches the hosts of its list through the proxy, and nothing by any other way.

The proxy is the real one; its names and machines are not: a `Net` leads every address to a server of the test's own,
on loopback, and notes who was asked. What goes past the proxy could only meet listeners that watch.
"""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from everloop.errors import ToolError
from everloop.net.proxy import Proxy
from everloop.tools.exec import Shell, exec_tools, reachable
from everloop.tools.run_python import run_python_tool
from everloop.tools.sandbox.choose import Landlock
from everloop.tools.sandbox.commands import SandboxedCommands
from everloop.tools.sandbox.outlet import Outlet, outlet_folder
from everloop.tools.sandbox.port import CommandLimits, CommandSpec, CommandView

from .sandbox_helpers import NOBODY, Listeners, World, context, run_once, world

PUBLIC, OTHER, PRIVATE = "93.184.216.34", "93.184.216.35", "10.0.0.7"
USERS = [pytest.param(os.geteuid(), id="self"), pytest.param(NOBODY, id="nobody")]
LISTED = ("ok.example", "*.wide.example", "rebound.example", "inward.example")
MARK = f"MARK=network-{os.getpid()}"  # in the environment of all that is started here
BIG = 3_000_000


class Net:
    """Names, and one server behind all addresses, which answers with what it was asked."""

    def __init__(self) -> None:
        self.names = {
            "ok.example": [[PUBLIC]],
            "a.wide.example": [[OTHER]],
            "inward.example": [[PRIVATE]],
            "evil.example": [[PUBLIC]],
            "rebound.example": [[PUBLIC], [PRIVATE]],
        }
        self.asked: list[str] = []
        self.dialled: list[tuple[str, int]] = []
        self._server: asyncio.Server | None = None

    async def lookup(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        answers = self.names[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def dial(self, address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.dialled.append((address, port))
        assert self._server is not None
        return await asyncio.open_connection(*self._server.sockets[0].getsockname())

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)

    def close(self) -> None:
        assert self._server is not None
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """As a web server does; a request for /big is answered with much, and a body comes back as it was."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n"))}
        body = await reader.readexactly(int(fields.get("content-length", "0")))
        path = head.split(" ")[1]
        told = b"x" * BIG if path == "/big" else body or f"{path} of {fields['host']}\n".encode()
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(told)}\r\nConnection: close\r\n\r\n".encode() + told)
        await writer.drain()
        writer.close()


class House:
    """A world whose commands may reach some hosts."""

    def __init__(self, place: World, net: Net, hosts: tuple[str, ...], number: int = 0) -> None:
        self.place, self.net, self.hosts = place, net, hosts
        self.folder = outlet_folder(place.spool, hosts)
        self.outlet = Outlet(Proxy(hosts, net.lookup, net.dial).serve)
        self.commands = place.commands(outlet=self.outlet)
        self._number = number

    async def open(self) -> None:
        await self.outlet.open(self.folder)
        self.place.own(self.place.spool)  # in life the runner and the worker are one user

    def job(self, command: str) -> CommandSpec:
        job = self.place.job("/bin/bash", "-c", command, network=self.hosts, limits=CommandLimits(seconds=30))
        return structs.replace(job, env={**job.env, "MARK": MARK.removeprefix("MARK=")})

    async def run(self, command: str) -> str:
        self._number += 1
        outcome = await self.commands.run(context(self._number), self.job(command))
        assert outcome.status == "exited", outcome
        return outcome.output

    async def python(self, code: str) -> str:
        (self.place.workspace / "code.py").write_text(code)
        return await self.run("python3 code.py 2>&1")


def marked() -> list[str]:
    """The processes of our sandboxes, forwarders too."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if MARK.encode() in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(Path(f"/proc/{pid}/cmdline").read_text())
    return found


@asynccontextmanager
async def opened(uid: int = os.geteuid(), hosts: tuple[str, ...] = LISTED) -> AsyncIterator[House]:
    net = Net()
    with world("bwrap", uid) as place:
        await net.open()
        house = House(place, net, hosts)
        await house.open()
        try:
            yield house
        finally:
            await house.commands.close()
            net.close()
        assert marked() == []
        assert os.listdir(house.folder) == []


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with opened() as house:
        yield house


URLLIB = """
import urllib.request
print(urllib.request.urlopen("http://ok.example/u").read().decode(), end="")
"""
TUNNEL = """
import http.client, os, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
connection = http.client.HTTPConnection(proxy.hostname, proxy.port)
connection.set_tunnel("{host}", {port})
connection.request("GET", "/t")
print(connection.getresponse().read().decode(), end="")
"""


class TestReaching:
    @pytest.mark.parametrize("uid", USERS)
    async def test_a_host_of_the_list_is_reached(self, uid: int) -> None:
        async with opened(uid) as house:
            assert await house.run("curl -sS http://ok.example/c") == "/c of ok.example\n"
            assert await house.run("curl -sS --proxytunnel http://a.wide.example/p") == "/p of a.wide.example\n"
            assert await house.python(URLLIB) == "/u of ok.example\n"
            assert await house.python(TUNNEL.format(host="a.wide.example", port=443)) == "/t of a.wide.example:443\n"
            assert house.net.dialled == [(PUBLIC, 80), (OTHER, 80), (PUBLIC, 80), (OTHER, 443)]

    async def test_much_is_carried_both_ways(self, house: House) -> None:
        (house.place.workspace / "up").write_bytes(os.urandom(BIG))
        for option in ("", "--proxytunnel"):
            curl = f"curl -sS -H Expect: {option}"
            assert await house.run(f"{curl} --data-binary @up http://ok.example/ | cmp - up && echo same") == "same\n"
            assert await house.run(f"{curl} http://ok.example/big | wc -c") == f"{BIG}\n"

    async def test_many_connections_at_once(self, house: House) -> None:
        curl = "curl -sS http://ok.example/{}"
        said = await house.run(f"seq 30 | xargs -P 10 -I {{}} {curl} | sort -V")
        assert said == "".join(f"/{n} of ok.example\n" for n in range(1, 31))

    async def test_the_proxy_on_the_other_hand_is_not_used_for_servers_in_the_sandbox(self, house: House) -> None:
        serve = "python3 -m http.server 8123 --bind 127.0.0.1 > /dev/null 2>&1 &"
        wait = "until curl -sS -o /dev/null http://localhost:8123/ 2> /dev/null; do sleep 0.05; done; echo reached"
        assert await house.run(f"{serve} {wait}") == "reached\n"
        assert house.net.asked == []

    async def test_the_command_is_as_it_would_be_without(self, house: House) -> None:
        assert await house.run("yes | head -n 1; echo ${PIPESTATUS[0]}; ls /proc/self/fd | wc -l") == "y\n141\n4\n"
        outcome = await house.commands.run(context(9), house.job("cat; exit 5"))
        assert (outcome.status, outcome.code, outcome.output) == ("exited", 5, "")
        assert await house.run("wait; echo $$; jobs; cat < /dev/null; env | grep -i _proxy | sort | head -n 1") == (
            "2\nALL_PROXY=http://127.0.0.1:18128\n"
        )


class TestRefusing:
    async def test_a_host_that_is_not_on_the_list_is_refused_with_a_sentence(self, house: House) -> None:
        sentence = "evil.example:80 is not among the hosts that commands may reach (ok.example, *.wide.example, "
        assert (await house.run("curl -sS http://evil.example/")).startswith(sentence)
        said = await house.python(TUNNEL.format(host="evil.example", port=443))
        assert "Tunnel connection failed: 403 evil.example:443 is not among the hosts" in said
        assert (house.net.asked, house.net.dialled) == ([], [])

    async def test_a_host_that_leads_inside_is_refused(self, house: House) -> None:
        assert "leads to 10.0.0.7, which belongs to a private network" in await house.run(
            "curl -sS http://inward.example/"
        )
        assert house.net.dialled == []

    async def test_a_name_is_asked_once_and_goes_where_it_was_checked(self, house: House) -> None:
        assert await house.run("curl -sS http://rebound.example/r") == "/r of rebound.example\n"
        assert "which belongs to a private network" in await house.run("curl -sS http://rebound.example/r")
        assert (house.net.asked, house.net.dialled) == (["rebound.example"] * 2, [(PUBLIC, 80)])

    async def test_only_bubblewrap_can_do_it(self, tmp_path: Path) -> None:
        job = CommandSpec(("true",), CommandView(tmp_path, network=("ok.example",)), tmp_path)
        with pytest.raises(ToolError, match=r"tools\.exec\.network .* install bubblewrap, or make the list empty"):
            Landlock().order(job, tmp_path)


AROUND = """
import json, os, socket, sys
# To connect a socket for datagrams sends nothing, and fails where there is no way to go.
tcp, tcp6, udp = json.loads(sys.argv[1])
def tried(name, do):
    try: do()
    except OSError as error: print(name, "failed")
    else: print(name, "GOT OUT")
def connect(family, address, kind=socket.SOCK_STREAM):
    def do():
        with socket.socket(family, kind) as sock:
            sock.settimeout(2)
            sock.connect(address)
    return do
def answer(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.5)
        sock.sendto(b"x", address)
        sock.recv(10)
tried("loopback", connect(socket.AF_INET, ("127.0.0.1", tcp)))
tried("loopback6", connect(socket.AF_INET6, ("::1", tcp6)))
tried("datagram", lambda: answer(("127.0.0.1", udp)))
tried("public", connect(socket.AF_INET, ("93.184.216.34", 53), socket.SOCK_DGRAM))
tried("public6", connect(socket.AF_INET6, ("2606:2800:220:1::1", 53), socket.SOCK_DGRAM))
tried("neighbour", connect(socket.AF_INET, ("192.168.0.1", 53), socket.SOCK_DGRAM))
tried("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
tried("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
tried("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
tried("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
tried("abstract", connect(socket.AF_UNIX, sys.argv[2].replace("@", chr(0))))
"""
WAYS = ("loopback", "loopback6", "datagram", "public", "public6", "neighbour", "raw", "packet", "netlink", "vsock",
        "abstract")  # fmt: skip


@contextmanager
def listening(folder: Path) -> Iterator[Listeners]:
    listeners = Listeners(folder)
    try:
        yield listeners
    finally:
        listeners.close()


class TestAround:
    @pytest.mark.parametrize("uid", USERS)
    async def test_there_is_no_way_around_the_proxy(self, uid: int) -> None:
        async with opened(uid) as house:
            with listening(house.place.outside) as listeners:
                ports = json.dumps([listeners.port(name) for name in ("tcp", "tcp6", "udp")])
                (house.place.workspace / "code.py").write_text(AROUND)
                said = await house.run(f"python3 code.py '{ports}' {listeners.abstract.replace(chr(0), '@')} 2>&1")
                assert said == "".join(f"{way} failed\n" for way in WAYS)
                said = await house.run("mv /run/everloop /run/mine 2>&1; touch /run/everloop/x 2>&1")
                assert said.count("Read-only file system") == 2
                for url in (f"http://127.0.0.1:{listeners.port('tcp')}/", "http://[::1]/", "http://169.254.169.254/"):
                    assert "is not among the hosts" in await house.run(f"curl -sS --noproxy '' {url}")
                assert listeners.heard() == []
            assert (house.net.asked, house.net.dialled) == ([], [])

    async def test_without_a_sandbox_the_ways_around_lead_out(self) -> None:
        with world("none", os.geteuid()) as place, listening(place.outside) as listeners:
            ports = json.dumps([listeners.port(name) for name in ("tcp", "tcp6", "udp")])
            code = ("/usr/bin/python3", "-c", AROUND, ports, listeners.abstract.replace(chr(0), "@"))
            said = (await run_once(place.commands(), place.job(*code))).output.splitlines()
            assert {f"{way} GOT OUT" for way in ("loopback", "loopback6", "abstract")} <= {*said}
            assert listeners.heard() == ["tcp", "tcp6", "udp", "abstract"]

    async def test_and_through_the_proxy_those_who_watch_are_reached(self) -> None:
        with world("bwrap", os.geteuid()) as place, listening(place.outside) as listeners:
            hosts = (f"127.0.0.1:{listeners.port('tcp')}",)
            commands = place.commands(outlet=Outlet(Proxy(hosts).serve))
            curl = f"curl -sS --noproxy '' http://{hosts[0]}/"  # which nobody answers
            asking = asyncio.create_task(commands.run(context(1), place.job("/bin/sh", "-c", curl, network=hosts)))
            while not (heard := listeners.heard()) and not asking.done():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            asking.cancel()
            await asyncio.wait({asking})
            await commands.close()
            assert heard == ["tcp"]

    async def test_a_list_of_another_worker_is_not_in_reach(self, house: House) -> None:
        async with another(house, ("evil.example",)) as other:
            assert "is not among the hosts" in await house.run("curl -sS http://evil.example/")
            assert await other.run("curl -sS http://evil.example/") == "/ of evil.example\n"


@asynccontextmanager
async def another(house: House, hosts: tuple[str, ...]) -> AsyncIterator[House]:
    """Another worker of the same home."""
    other = House(house.place, house.net, hosts, number=50)
    await other.open()
    try:
        yield other
    finally:
        await other.commands.close()


class TestWorkers:
    LOOP = "while read path; do curl -s -w '%{http_code}' http://ok.example/$path; echo; done"

    async def test_a_command_in_the_background_goes_on_with_another_worker(self, house: House) -> None:
        first = House(house.place, house.net, house.hosts)
        job = CommandSpec(
            ("/bin/bash", "-c", self.LOOP), house.job("").view, house.place.workspace, background=True,
            env=house.job("").env, limits=CommandLimits(seconds=60),
        )  # fmt: skip
        await first.commands.run(context(5), job)
        for number, (worker, path) in enumerate(((first, "a"), (house, "b"))):
            offset = number * len("/a of ok.example\n200\n")
            await worker.commands.input("t", "b5-0", f"{path}\n")
            assert await said_by(worker.commands, offset) == f"/{path} of ok.example\n200\n"
            assert len(marked()) >= 2  # the command and the forwarder: were one left, it would be seen
            await worker.commands.close()
        await house.commands.input("t", "b5-0", "c\n")
        assert await said_by(house.commands, 2 * offset) == "503\n"
        assert await house.commands.stop("t") == 1

    async def test_what_dead_workers_have_left_is_removed(self, house: House) -> None:
        folder = os.open(house.folder, os.O_RDONLY)
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(f"/proc/self/fd/{folder}/dead")
            dead.listen()
        os.close(folder)
        assert "dead" in os.listdir(house.folder)
        async with another(house, house.hosts):
            assert len(os.listdir(house.folder)) == 2
            assert "dead" not in os.listdir(house.folder)


async def said_by(commands: SandboxedCommands, offset: int) -> str:
    """What a command says from there on, up to the end of its second line, or its first if that is a number."""
    text = ""
    while not text.endswith(("200\n", "503\n")):
        outcome, offset = await commands.output("t", "b5-0", offset, 1000, 20)
        text += outcome.output
    return text


class TestTelling:
    def shell(self, folder: Path, hosts: tuple[str, ...] = (), free: bool = False) -> Shell:
        return Shell(SandboxedCommands(folder), CommandView(folder, network=hosts), {"PATH": "x"}, free=free)

    def test_the_model_is_told_what_commands_reach(self, tmp_path: Path) -> None:
        assert reachable(()) == "It has no network."
        proxy = "through the proxy that its environment names."
        assert (
            reachable(("a.example", "*.b.example"))
            == f"Over HTTP and HTTPS it reaches only a.example, *.b.example, {proxy}"
        )
        assert reachable(("*",)) == f"Over HTTP and HTTPS it reaches all public hosts, {proxy}"
        assert len(reachable(tuple(f"{n}.example" for n in range(1000)))) < 300
        shell = self.shell(tmp_path, ("a.example",))
        for tool in (exec_tools(shell)[0], run_python_tool(shell)):
            assert tool.spec.description.endswith(reachable(("a.example",)))

    @pytest.mark.parametrize(
        "hosts, leaves",
        [((), False), (("a.example", "*.b.example"), False), (("a.example", "*"), True), (("*:443",), True),
         (("*.com",), True), (("10.0.0.0/8",), False)],
    )  # fmt: skip
    def test_a_command_leaves_the_sandbox_if_it_reaches_everything(
        self, tmp_path: Path, hosts: tuple[str, ...], leaves: bool
    ) -> None:
        shell = self.shell(tmp_path, hosts)
        situation: Any = None
        assert shell.risk_of_command({"command": "ls"}, situation).leaves is leaves
        assert shell.risk_of_input({}, situation).leaves is leaves

    def test_a_permission_holds_for_one_list_only(self, tmp_path: Path) -> None:
        scenes = {self.shell(tmp_path, hosts).scene for hosts in ((), ("a.example",), ("b.example",))}
        assert scenes == {f"{tmp_path} PATH confined{more}" for more in ("", " a.example", " b.example")}


def test_the_forwarder_imports_the_standard_library_alone() -> None:
    import everloop.tools.sandbox.forward as forward

    lines = Path(forward.__file__).read_text().splitlines()
    imported = {line.split()[1] for line in lines if line.startswith(("import ", "from "))}
    assert imported <= sys.stdlib_module_names
