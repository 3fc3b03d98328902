"""Packages of servers: what a command would fetch, installed once, and run from there."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs
from tests.mcp_servers import NODE, node_server
from tests.tools.mcp.registries import make_source, make_wheel, npm_registry
from tests.tools.mcp.stdio_world import CONFINED, stdio_world

from everloop.errors import McpDown, ToolError
from everloop.tools.mcp.installing import install
from everloop.tools.mcp.packages import Installation, exact_command, installed, offline_command, plan, remove
from everloop.tools.mcp.stdio import folder_of

HERE = Path("/home/mcp/it")


def _planned(kind: str, package: str, version: str = "", program: str = "", args: tuple[str, ...] = ()) -> Installation:
    return Installation(kind=kind, package=package, version=version, program=program, args=args, folder=HERE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("command", "planned"),
    [
        ("npx -y @x/server-y /some -v", _planned("npm", "@x/server-y", args=("/some", "-v"))),
        ("npx --yes server@1.2.3-rc.1", _planned("npm", "server", "1.2.3-rc.1")),
        ("/usr/bin/npx -y server@latest", _planned("npm", "server")),
        ("npx -y --package=@x/y@2.0.0 tool --port 1", _planned("npm", "@x/y", "2.0.0", "tool", ("--port", "1"))),
        ("npm exec -y -- server a", _planned("npm", "server", args=("a",))),
        ("uvx mcp-server-time --tz UTC", _planned("pypi", "mcp-server-time", args=("--tz", "UTC"))),
        ("uvx server[extra]==1.0", _planned("pypi", "server[extra]", "1.0")),
        ("uvx server@1.0", _planned("pypi", "server", "1.0")),
        ("uvx --from server==1.0 tool", _planned("pypi", "server", "1.0", "tool")),
        ("uv tool run server", _planned("pypi", "server")),
        ("python -m server", None),
        ("/opt/server --npx", None),
    ],
)
def test_a_command_tells_what_it_would_fetch(command: str, planned: Installation | None):
    assert plan(command.split(), HERE) == planned


@pytest.mark.parametrize(
    "command",
    [
        "npx", "npx -y", "npx -c evil", "npx -y ../folder", "npx -y https://evil.example/x.tgz", "npx -y git+ssh://x",
        "npx -y server@^1.0", "npx -y server@file:x", "npx -y UPPER", "npx -y --registry=https://evil.example server",
        "uvx", "uvx --index-url https://evil.example server", "uvx git+https://x", "uvx ./server", "uvx server>=1",
        "uvx --with other server", "docker run x", "podman run x", "uv run server", "bunx server", "pnpm dlx server",
    ],
)  # fmt: skip
def test_what_is_no_package_of_a_registry_is_refused(command: str):
    with pytest.raises(ToolError):
        plan(command.split(), HERE)


def test_without_a_sandbox_a_container_is_run_as_it_is_written():
    assert plan(["docker", "run", "x"], HERE, sandbox=False) is None


def test_an_exact_command_names_its_version():
    found = [
        exact_command(_planned("npm", "@x/y", args=("a",)), "1.0"),
        exact_command(_planned("npm", "@x/y", program="tool"), "1.0"),
        exact_command(_planned("pypi", "y[z]", program="tool", args=("a",)), "1.0"),
    ]
    assert found == [
        ("npx", "-y", "@x/y@1.0", "a"),
        ("npx", "-y", "--package", "@x/y@1.0", "tool"),
        ("uvx", "--from", "y[z]==1.0", "tool", "a"),
    ]


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A registry as the user's npm may be set to one; the trap that its package sets."""
    node_server("conformance")
    monkeypatch.setenv("PATH", f"{NODE.parent}:/usr/bin:/bin")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    with npm_registry(tmp_path / "trap") as address:
        monkeypatch.setenv("npm_config_registry", address)
        yield tmp_path / "trap"


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "wheels").mkdir()
    make_wheel(tmp_path / "wheels")
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(tmp_path / "wheels"), "CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    return tmp_path / "wheels"


async def test_what_npx_would_fetch_is_installed_without_running_any_of_it(npm: Path, tmp_path: Path):
    folder, told = tmp_path / "it", []
    planned = plan(["npx", "-y", "@somebody/small", "--flag"], folder)
    assert planned
    done = await install(planned, told.append)
    assert done.command == ("npx", "-y", "@somebody/small@1.2.3", "--flag")
    assert [(each.name, each.version, each.hash[:7]) for each in done.packages] == [
        ("@somebody/small", "1.2.3", "sha512-")
    ]
    assert installed(done.command, folder) == done
    assert not os.path.lexists(npm)  # noqa: ASYNC240
    script = f"{folder}/package/node_modules/@somebody/small/server.js"
    assert offline_command(done.command, folder, done.digest, True) == ("node", script, "--flag")
    assert told


async def test_another_archive_of_the_same_version_is_another_digest(npm: Path, tmp_path: Path, monkeypatch):
    planned = plan(["npx", "-y", "@somebody/small"], tmp_path / "it")
    assert planned
    allowed = await install(planned)
    with npm_registry(npm, "// another") as address:
        monkeypatch.setenv("npm_config_registry", address)
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "other"))
        again = await install(planned)
    assert again.digest != allowed.digest
    with pytest.raises(McpDown, match="in another way than was allowed"):
        offline_command(allowed.command, tmp_path / "it", allowed.digest, True)


async def test_a_package_that_is_not_there_says_what_npm_said(npm: Path, tmp_path: Path):
    planned = plan(["npx", "-y", "no-such-server"], tmp_path / "it")
    assert planned
    with pytest.raises(ToolError, match=r"npm failed. See that the package is called so, (?s:.*)404"):
        await install(planned)
    assert installed(["npx", "-y", "no-such-server"], tmp_path / "it") is None


async def test_what_uvx_would_fetch_is_installed_with_its_hash(wheels: Path, tmp_path: Path):
    planned = plan(["uvx", "small-server"], tmp_path / "it")
    assert planned
    done = await install(planned)
    assert done.command == ("uvx", "small-server==1.2.3")
    assert [(each.name, len(each.hash)) for each in done.packages] == [("small-server", len("sha256:") + 64)]


async def test_a_package_without_a_wheel_is_not_built(wheels: Path, tmp_path: Path):
    make_source(wheels, tmp_path / "trap")
    planned = plan(["uvx", "only-source"], tmp_path / "it")
    assert planned
    with pytest.raises(ToolError, match="pip failed"):
        await install(planned)
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize("way", CONFINED)
@pytest.mark.parametrize("command", ["npx -y @somebody/small", "uvx small-server"])
async def test_a_server_runs_from_its_package_and_cannot_change_it(
    npm: Path, wheels: Path, tmp_path: Path, way: str, command: str
):
    async with stdio_world(tmp_path, way) as world:
        folder = folder_of(world.home, "it")
        planned = plan(command.split(), folder)
        assert planned
        done = await install(planned)
        server = structs.replace(world.server(*done.command), package=done.digest)
        async with world.connected(server) as client:
            result = await client.call_tool("it", {})
        assert result.content[0].text in ("EROFS", "EACCES", "OSError", "PermissionError")
        remove(folder)
        assert not folder.exists()
