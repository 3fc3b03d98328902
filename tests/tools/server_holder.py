"""Holds servers in a sandbox until somebody kills it: `python -m tests.tools.server_holder WAY BASE SCRIPT ONCE`.

It begins one after the other, so that whoever kills it meets one that begins, runs or ends; with ONCE it holds one.
"""

import asyncio
import sys
from pathlib import Path

from tests.tools.servers_world import job_in, way_called

from everloop.tools.sandbox.servers import SandboxedServers


async def hold(way: str, base: Path, script: str, once: str) -> None:
    servers = SandboxedServers(base / "home" / "spool")
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    while True:
        async with servers.open(job_in(base, script), way_called(way)) as process:
            line = await process.stdout.readline()
            if once:
                sys.stdout.write(line.decode())
                sys.stdout.flush()
                await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(hold(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]))
