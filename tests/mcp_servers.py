"""Where `make` has put the MCP servers that others wrote, and the Node that runs some of them."""

import sys
from pathlib import Path

import pytest

_HOME = Path(sys.prefix)
PYTHON_SERVERS = _HOME / "mcp-servers"
NODE_SERVERS = _HOME / "mcp-node"
NODE = NODE_SERVERS / "bin" / "node"


def python_server(name: str) -> str:
    """The program of `mcp-server-time`, `-git` or `-fetch`. Skips where it could not be had."""
    return _present(PYTHON_SERVERS / "bin" / name)


def node_server(name: str) -> tuple[str, str]:
    """What runs `mcp-server-everything`, `mcp-server-filesystem` or `conformance`. Skips where it could not be had."""
    return _present(NODE), _present(NODE_SERVERS / "node_modules" / ".bin" / name)


def _present(program: Path) -> str:
    if not program.exists():
        pytest.skip(f"{program.name} is not installed")
    return str(program)
