"""`everloop mcp serve`: everloop as an MCP server, for a client on this machine that starts it (stdin and stdout)."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from typing import BinaryIO

from ..app.mcp_stdio import serve_mcp
from ..errors import EverloopError
from ..ports.audit import THE_PROGRAM, acting
from ..settings import home_of

LONGEST = 4_000_000  # bytes of one message


async def serve() -> int:
    """Until stdin ends. stdout is the protocol's: nothing else may be written there."""
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    acting.set(THE_PROGRAM)

    async def write(data: bytes) -> None:
        await asyncio.to_thread(_put, out, data)

    await serve_mcp(home_of(os.environ), _lines(), write)
    return 0


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
