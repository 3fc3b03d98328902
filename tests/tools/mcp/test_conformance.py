"""The official conformance suite (npm: @modelcontextprotocol/conformance): all of its client scenarios but those named
here, against our HTTP wire and logins."""

import asyncio
import re
import shlex
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from mcp import MCPError
from tests.mcp_servers import node_server
from tests.tools.mcp.conformance_client import run

from everloop.errors import McpDown

DO_NOT_APPLY = {
    "auth/2025-03-26-oauth-metadata-backcompat": "its metadata names another issuer than the address it was fetched "
    "from; the SDK refuses that (RFC 8414, section 3.3), and so do we",
    "auth/client-credentials-jwt": "an extension for programs without a person; everloop logs in as a person does",
    "auth/client-credentials-basic": "an extension for programs without a person; a key is set in `headers`",
    "auth/cross-app-access-complete-flow": "an extension for an enterprise's identity provider, which everloop has not",
}
TIMED = {"sse-retry"}  # has a test of its own
_OUTCOME = re.compile(r"^(✓|✗) (\S+): (\d+) passed, (\d+) failed", re.MULTILINE)
# What the suite starts for each scenario: it hands over to this process, which has loaded the SDK already.
_HAND_OVER = (
    "import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
    "s.sendall('\\0'.join((sys.argv[-1], os.environ.get('MCP_CONFORMANCE_SCENARIO', ''), "
    "os.environ.get('MCP_CONFORMANCE_CONTEXT', ''))).encode() + b'\\n'); sys.exit(s.recv(1) != b'+')"
)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    url, scenario, context = (await reader.readline()).decode().strip("\n").split("\0")
    try:
        await run(url, scenario, context)
        writer.write(b"+")
    except (McpDown, MCPError):
        writer.write(b"-")
    finally:
        await writer.drain()
        writer.close()


@asynccontextmanager
async def suite(folder: Path, which: tuple[str, str], command: tuple[str, ...]):
    program = await asyncio.create_subprocess_exec(
        *node_server("conformance"),
        "client",
        "--command",
        shlex.join(command),
        *which,
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield program
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()


async def outcomes(folder: Path, *command: str) -> dict[str, bool]:
    async with suite(folder, ("--suite", "all"), command) as program:
        said, _ = await program.communicate()
    return {name: passed != "0" and failed == "0" for _, name, passed, failed in _OUTCOME.findall(said.decode())}


async def test_every_scenario_that_applies_is_passed(tmp_path: Path):
    place = tmp_path / "client"
    async with await asyncio.start_unix_server(_answer, place):
        passed = await outcomes(tmp_path, sys.executable, "-SIc", _HAND_OVER, str(place))
    assert len(passed) == 26
    assert {name for name, good in passed.items() if not good} - TIMED == set(DO_NOT_APPLY)


async def test_a_stream_that_broke_off_is_taken_up_again_when_the_server_says(tmp_path: Path):
    """The suite holds a stopwatch to this one: it is given some tries on a machine that has much else to do."""
    place, said = tmp_path / "client", ""
    async with await asyncio.start_unix_server(_answer, place):
        for _ in range(5):
            command = (sys.executable, "-SIc", _HAND_OVER, str(place))
            async with suite(tmp_path, ("--scenario", "sse-retry"), command) as program:
                said = (await program.communicate())[0].decode()
            if "Passed: 3/3, 0 failed" in said:
                return
    raise AssertionError(said)


async def test_a_client_that_does_nothing_passes_none_but_the_one_that_wants_a_refusal(tmp_path: Path):
    passed = await outcomes(tmp_path, "true")
    assert len(passed) == 26
    assert {name for name, good in passed.items() if good} <= {"auth/resource-mismatch"}


def test_the_documentation_names_those_that_do_not_apply():
    text = (Path(__file__).parents[3] / "docs" / "mcp-http.md").read_text()
    assert [name for name in DO_NOT_APPLY if f"`{name}`" not in text] == []
