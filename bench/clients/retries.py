"""Clients that ask again by themselves, against a gateway whose turn has paid and then fails.

    python bench/clients/retries.py [--clients FOLDER] [--only NAME …] [--verbose]

Real clients, with their own retry settings and two that are told to retry after anything, ask `everloop gateway` over
both of OpenAI's dialects, whole and streamed. The model has one line written to a ledger and then fails, or the gateway
is killed and started again, or the client has no patience. A client that gives up and has heard nothing of the house is
asked to do the same again, as a person would. The ledger must hold one line, and what the client says in the end must
name the session, or be the answer.

The last column is the negative control: a bare server that pays and answers 500. What is there more than 1 is what
these clients would do to a gateway without a guard.

The clients are installed into FOLDER (a temporary one by default), from PyPI and npm.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from msgspec import Struct

from everloop.errors import HostUnreachable
from everloop.testing import Call, Fail, Http, Pause, Say, Shown
from everloop.testing.model_server import ModelServer

PYPI = ("openai", "litellm", "langchain-openai", "mcp")  # litellm.responses does not start without mcp
NPM = ("openai", "ai", "@ai-sdk/openai-compatible", "@ai-sdk/openai")
HERE = Path(__file__).resolve().parent
BOTH = ("chat", "responses")
PATIENCE = 2.0  # seconds of a client that has little
SESSION = re.compile(r"session openai:[0-9a-f]+")
TOLD = ("named", "answered")
PERSISTENCE = 3  # times that a person asks again


class Client(Struct, frozen=True):
    title: str
    program: str
    name: str
    doors: tuple[str, ...] = BOTH


CLIENTS = (
    Client("openai-python", "ask.py", "openai"),
    Client("litellm", "ask.py", "litellm"),
    Client("litellm, num_retries", "ask.py", "litellm_persistent"),
    Client("langchain-openai", "ask.py", "langchain"),
    Client("langchain-openai, with_retry", "ask.py", "langchain_persistent"),
    Client("openai-node", "ask.mjs", "openai"),
    Client("ai, openai-compatible", "ask.mjs", "compatible", ("chat",)),
    Client("ai, @ai-sdk/openai", "ask.mjs", "sdk"),
)


class Failure(Struct, frozen=True):
    title: str
    name: str
    then: Callable[[], Any]  # what the model says when it has paid
    slow: int = 0  # seconds that paying takes
    killed: str = ""  # while what happens
    seconds: float = 0.0  # of the client's patience


FAILURES = (
    Failure("500", "500", lambda: Http(500, {"error": {"message": "broken"}})),
    Failure("hangs up", "gone", lambda: Fail(HostUnreachable("hung up"))),
    Failure("429", "429", lambda: Http(429, {"error": {"message": "slow down"}})),
    Failure("killed in the tool", "tool", lambda: Http(500, {"error": {"message": "broken"}}), slow=3, killed="tool"),
    Failure("killed in the answer", "answer", lambda: Http(500, {"error": {"message": "broken"}}), killed="answer"),
    Failure("client's time limit", "limit", lambda: Say("all paid"), slow=4, seconds=PATIENCE),
)


class Case(Struct, frozen=True):
    """One request of one client. Its name is what the client says, and what the ledger is called."""

    client: Client
    door: str
    stream: bool
    failure: Failure

    @property
    def name(self) -> str:
        how = "streamed" if self.stream else "whole"
        return f"{CLIENTS.index(self.client)}-{self.door}-{how}-{self.failure.name}"


class Seen(Struct):
    paid: int
    told: str  # "named", "answered", or what the client said instead
    by_hand: bool  # whether somebody had to ask once more

    @property
    def held(self) -> bool:
        return self.paid == 1 and self.told in TOLD

    def __str__(self) -> str:
        words = f"{self.told}{'*' if self.by_hand else ''}"
        return words if self.held else f"**{self.paid} paid; {words}**"


class Model:
    """What the model says: first that the bill be paid, then as its case wants it."""

    def __init__(self) -> None:
        self.after: defaultdict[str, int] = defaultdict(int)  # how often it was asked after it had paid
        self.killed: set[str] = set()
        self.failures = {failure.name: failure for failure in FAILURES}

    def line(self, shown: Shown) -> Any:
        case = shown.asked.split()[0]
        failure = self.failures[case.rpartition("-")[2]]
        if shown.step == 0:
            return Call("exec", {"command": f"echo paid >> {case}.ledger; sleep {failure.slow}"})
        self.after[case] += 1
        if failure.killed == "answer" and case not in self.killed:
            return [Pause(60), Say("never said")]
        return failure.then()


class Program:
    """A process that asks with one client."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ask(self, base: str, key: str, case: Case) -> dict[str, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        wish = {"base": base, "key": key, "door": case.door, "stream": case.stream, "text": case.name}
        self._process.stdin.write(json.dumps(wish | {"seconds": case.failure.seconds}).encode() + b"\n")
        line = await self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{case.client.title} has ended; run with --verbose to see why")
        return dict(json.loads(line))


class Gateway:
    def __init__(self, home: Path, model: ModelServer) -> None:
        self.home = home
        self.port = free_port()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home.parent),
            "EVERLOOP_HOME": str(home),
            "EVERLOOP_AGENTS__DEFAULTS__MODEL": "custom/scripted",
            "EVERLOOP_PROVIDERS__CUSTOM__API_BASE": model.url,
            "EVERLOOP_PROVIDERS__CUSTOM__API_KEY": "sk-none",
        }
        self.process: asyncio.subprocess.Process | None = None

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def start(self) -> None:
        log = (self.home.parent / "gateway.log").open("ab")
        command = (sys.executable, "-m", "everloop", "gateway", "--port", str(self.port))
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(
            *command, stdout=pipe, stderr=log, stdin=asyncio.subprocess.DEVNULL, env=self.environment
        )
        await until(lambda: is_open(self.port))

    async def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        await self.process.wait()

    async def token(self) -> str:
        command = (sys.executable, "-m", "everloop", "tokens", "create", "clients")
        made = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, env=self.environment)
        out, _ = await made.communicate()
        return out.decode().strip()

    def paid(self, case: Case) -> int:
        ledger = self.home / "workspace" / f"{case.name}.ledger"
        return len(ledger.read_text().splitlines()) if ledger.exists() else 0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


async def until(there: Callable[[], bool]) -> None:
    while not there():  # noqa: ASYNC110 (other processes do it)
        await asyncio.sleep(0.02)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Bench:
    def __init__(self, gateway: Gateway, key: str, model: Model, programs: dict[Client, Program]) -> None:
        self._gateway = gateway
        self._key = key
        self._model = model
        self._programs = programs
        self.seen: dict[str, Seen] = {}

    async def play(self, case: Case) -> None:
        """Ask, and once more by hand when the client has given up and knows nothing."""
        told = await self._ask(case)
        by_hand = 0
        while told not in TOLD and by_hand < PERSISTENCE and (case.failure.killed or case.failure.seconds):
            await until(lambda: is_open(self._gateway.port))
            told = await self._ask(case)
            by_hand += 1
        self.seen[case.name] = Seen(self._gateway.paid(case), told, by_hand > 0)
        print(f"{case.name}: {self.seen[case.name]}", file=sys.stderr, flush=True)

    async def _ask(self, case: Case) -> str:
        told = await self._programs[case.client].ask(self._gateway.base, self._key, case)
        words = told.get("error") or told.get("said") or ""
        if SESSION.search(words) and "error" in told:
            return "named"
        return "answered" if told.get("said") == "all paid" else words

    async def play_and_kill(self, cases: Sequence[Case]) -> None:
        """All of them at once, and one kill when all are where it hurts."""
        async with asyncio.TaskGroup() as group:
            for case in cases:
                group.create_task(self.play(case))
            await until(lambda: all(self._is_there(case) for case in cases))
            await self._gateway.kill()
            self._model.killed.update(case.name for case in cases)
            await self._gateway.start()

    def _is_there(self, case: Case) -> bool:
        if case.name in self.seen:  # it has failed before it came to that
            return True
        if case.failure.killed == "tool":
            return self._gateway.paid(case) == 1
        return self._model.after[case.name] > 0


def install(folder: Path) -> None:
    """The clients, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "venv").exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        subprocess.run([folder / "venv/bin/pip", "install", "-q", *PYPI], check=True)
    if not (folder / "node_modules").exists():
        (folder / "package.json").write_text("{}")
        subprocess.run(["npm", "install", "--silent", *NPM], check=True, cwd=folder)


def versions(folder: Path) -> str:
    listed = subprocess.run([folder / "venv/bin/pip", "list", "--format=json"], check=True, capture_output=True)
    python = {row["name"]: row["version"] for row in json.loads(listed.stdout)}
    node = {name: json.loads((folder / "node_modules" / name / "package.json").read_text())["version"] for name in NPM}
    parts = [f"{name} {python[name]}" for name in PYPI[:3]] + [f"{name} {node[name]} (npm)" for name in NPM]
    return ", ".join(parts)


@asynccontextmanager
async def program(client: Client, folder: Path, verbose: bool) -> AsyncIterator[Program]:
    python = client.program.endswith(".py")
    command = [str(folder / "venv/bin/python") if python else "node", str(HERE / client.program), client.name]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, str(folder), stdin=pipe, stdout=pipe, stderr=None if verbose else asyncio.subprocess.DEVNULL
    )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def unguarded() -> AsyncIterator[tuple[str, defaultdict[str, int]]]:
    """A server that pays and fails, as often as it is asked."""
    paid: defaultdict[str, int] = defaultdict(int)

    async def pay(request: web.Request) -> web.Response:
        body = await request.json()
        said = body.get("input") or body["messages"][-1]["content"]
        while not isinstance(said, str):
            said = said[-1].get("text") or said[-1]["content"]
        paid[said] += 1
        return web.json_response({"error": {"message": "broken", "type": "server_error"}}, status=500)

    app = web.Application()
    app.router.add_post("/v1/{door:.*}", pay)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", paid
    finally:
        await runner.cleanup()


def ways(clients: Sequence[Client]) -> list[tuple[Client, str, bool]]:
    return [(client, door, stream) for client in clients for door in client.doors for stream in (False, True)]


async def run(clients: Sequence[Client], folder: Path, verbose: bool) -> int:
    model = Model()
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ModelServer(model.line))
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        programs = {each: await stack.enter_async_context(program(each, folder, verbose)) for each in clients}
        control = await controlled(clients, programs)
        gateway = Gateway(work / "home", server)
        await gateway.start()
        bench = Bench(gateway, await gateway.token(), model, programs)
        try:
            await play_all(bench, clients)
        finally:
            await gateway.kill()
        print(table(clients, bench.seen, control, versions(folder)))
    return 0 if all(seen.held for seen in bench.seen.values()) else 1


async def controlled(clients: Sequence[Client], programs: dict[Client, Program]) -> dict[str, int]:
    async with unguarded() as (base, paid):

        async def ask(client: Client) -> None:
            for each, door, stream in ways([client]):
                await programs[client].ask(base, "none", Case(each, door, stream, FAILURES[0]))

        await asyncio.gather(*map(ask, clients))
        return dict(paid)


async def play_all(bench: Bench, clients: Sequence[Client]) -> None:
    async def play(client: Client) -> None:
        for failure in FAILURES:
            for each, door, stream in ways([client]):
                if not failure.killed:
                    await bench.play(Case(each, door, stream, failure))

    await asyncio.gather(*map(play, clients))
    for failure in FAILURES:
        for wanted in [(door, stream) for door in BOTH for stream in (False, True)] if failure.killed else ():
            cases = [Case(each, *rest, failure) for each, *rest in ways(clients) if tuple(rest) == wanted]
            await bench.play_and_kill(cases)


def table(clients: Sequence[Client], seen: dict[str, Seen], control: dict[str, int], made_with: str) -> str:
    titles = ["client", "door", *(failure.title for failure in FAILURES), "control"]
    rows = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    for client, door, stream in ways(clients):
        cells = [str(seen[Case(client, door, stream, failure).name]) for failure in FAILURES]
        without = control[Case(client, door, stream, FAILURES[0]).name]
        rows.append(
            "| " + " | ".join([client.title, f"{door}{', streamed' if stream else ''}", *cells, str(without)]) + " |"
        )
    held = sum(each.held for each in seen.values())
    legend = "named: the error names the session; answered: with the first turn's answer; *: when asked again by hand."
    return "\n".join([made_with, "", *rows, "", f"{held} of {len(seen)} held: paid once. {legend}"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=Path, help="where the clients are, or are to be installed")
    parser.add_argument("--only", nargs="*", help="only these clients", choices=[each.title for each in CLIENTS])
    parser.add_argument("--verbose", action="store_true", help="show what the clients write to stderr")
    chosen = parser.parse_args()
    clients = [each for each in CLIENTS if not chosen.only or each.title in chosen.only]
    folder = chosen.clients or Path(tempfile.mkdtemp(prefix="everloop-clients-"))
    try:
        install(folder)
        return asyncio.run(run(clients, folder.resolve(), chosen.verbose))
    finally:
        if chosen.clients is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
