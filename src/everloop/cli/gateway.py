"""`everloop gateway`: one process with the page, the APIs, the WebSocket, lanes, timers and channels."""

import argparse
import asyncio
import logging
import resource
import signal
import sys
from typing import Any

from ..app import serve

_log = logging.getLogger("everloop.gateway")

MORE = (
    "It stops at Ctrl-C or SIGTERM, after what runs has ended or its time is over. Without a password, each start "
    "prints a link to log in with, once."
)
FILES = 8192  # that may be open at once


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", metavar="HOST", help="listen there instead of at gateway.host")
    parser.add_argument("--port", metavar="PORT", type=int, help="listen there instead of at gateway.port")


async def run(arguments: argparse.Namespace) -> int:
    given = {name: getattr(arguments, name) for name in ("host", "port") if getattr(arguments, name) is not None}
    settings: dict[str, Any] = {"gateway": given} if given else {}
    stopping = _stop_signals()
    _take_room()
    async with serve(settings=settings) as gateway:
        print(f"everloop gateway: {gateway.url}", file=sys.stderr)
        if gateway.link:
            print(f"Log in, once, with: {gateway.link}", file=sys.stderr)
        sys.stderr.flush()
        _log.info("the gateway listens at %s", gateway.url)
        await stopping.wait()
        _log.info("the gateway stops")
        print("everloop gateway: stopping", file=sys.stderr)
    return 0


def _take_room() -> None:
    """Every connection is an open file, of which a shell often allows fewer than the system does."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _stop_signals() -> asyncio.Event:
    """Set at the first request to end; a second Ctrl-C ends it at once."""
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()

    def stop(number: int) -> None:
        stopping.set()
        loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    return stopping
