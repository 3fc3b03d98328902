"""`everloop mcp serve`: everloop as an MCP server, for a client on this machine that starts it (stdin and stdout)."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from typing import BinaryIO

from ..app.mcp_stdio import serve_mcp
from ..errors import EverloopError
from ..ports.audit import THE_PROGRAM, acting
from ..settings import home_of
from .terminal import Terminal

LONGEST = 4_000_000  # bytes of one message
NO_CLIENT = (
    "a client starts this and speaks with it through a pipe, and its stdin is none; what a client's settings say "
    "stands in docs/mcp-server.md"
)
AT_TERMINAL = "A client starts this and speaks with it. Ctrl-C ends it."


async def serve(terminal: Terminal) -> int:
    """Until stdin ends. stdout is the protocol's: nothing else may be written there. Raises EverloopError."""
    _check_stdin(terminal)
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    acting.set(THE_PROGRAM)

    async def write(data: bytes) -> None:
        await asyncio.to_thread(_put, out, data)

    await serve_mcp(home_of(os.environ), _lines(), write)
    return 0


def _check_stdin(terminal: Terminal) -> None:
    """The loop cannot wait for a file, or for nothing. Raises EverloopError."""
    if sys.stdin is not None and sys.stdin.isatty():
        terminal.tell(AT_TERMINAL)
        return
    mode = 0 if sys.stdin is None else os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        raise EverloopError(NO_CLIENT)


def _put(out: BinaryIO, data: bytes) -> None:
    out.write(data)
    out.flush()


async def _lines() -> AsyncIterator[bytes]:
    """What the client says. Raises EverloopError for a line that is too long: nobody can tell where the next begins."""
    reader = asyncio.StreamReader(LONGEST)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    try:
        while line := await reader.readline():
            yield line
    except ValueError as error:
        raise EverloopError(f"a message has more than {LONGEST:,} bytes") from error
    finally:
        transport.close()
