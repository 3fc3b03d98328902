"""`everloop gateway`: one process with the page, the APIs, the WebSocket, lanes, timers and channels.

`everloop gateway password` sets the page's password, also while it runs.
"""

import argparse
import asyncio
import getpass
import logging
import os
import resource
import signal
import sys
from collections.abc import Coroutine
from typing import Any

from ..app import serve
from ..app.access import remove_password, set_password
from ..app.recall import how_recalled
from ..app.records import open_records
from ..errors import EverloopError
from ..ports.audit import THE_PROGRAM, acting
from ..settings import home_of, load
from .terminal import Terminal

_log = logging.getLogger("everloop.gateway")

MORE = (
    "Without one of these words, `run` is meant: `everloop gateway --port 8080`. It stops at Ctrl-C or SIGTERM, after "
    "what runs has ended or its time is over. Without a password, each start prints a link to log in with, once."
)
FILES = 8192  # that may be open at once
OWNER = "owner"


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) <= 65535):
        raise argparse.ArgumentTypeError("it must be a number from 0 to 65535")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="COMMAND", required=True)
    running = words.add_parser("run", help="run it, until Ctrl-C or SIGTERM")
    running.add_argument("--host", metavar="HOST", help="listen there instead of at gateway.host")
    running.add_argument("--port", metavar="PORT", type=_port, help="listen there instead of at gateway.port")
    password = words.add_parser(
        "password", help="set the password of the page; it is read from stdin, or asked for without being shown"
    )
    password.add_argument("--remove", action="store_true", help="have none any more: each start prints a link again")


def run(arguments: argparse.Namespace) -> Coroutine[Any, Any, int]:
    """Not itself async: a password is asked for before the event loop runs, in which a prompt would not hear Ctrl-C."""
    if arguments.word == "password":
        return _remove_password() if arguments.remove else _set_password(_read_password())
    return _serve(arguments)


async def _set_password(password: str) -> int:
    async with open_records() as records:
        await set_password(records.store, OWNER, password)
    _terminal().tell("The password is set. All browsers are logged out.")
    return 0


async def _remove_password() -> int:
    async with open_records() as records:
        if not await remove_password(records.store, OWNER):
            raise EverloopError("there is no password")
    _terminal().tell("There is no password any more. The next start of the gateway prints a link.")
    return 0


def _read_password() -> str:
    """The first line of stdin, or what someone types unseen, twice. Raises EverloopError."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    try:
        password = getpass.getpass("The new password: ")
        if getpass.getpass("Once more: ") != password:
            raise EverloopError("these are two different ones; nothing was changed")
    except EOFError:
        raise EverloopError("no password was given; nothing was changed") from None
    return password


async def _serve(arguments: argparse.Namespace) -> int:
    given = {name: getattr(arguments, name) for name in ("host", "port") if getattr(arguments, name) is not None}
    settings: dict[str, Any] = {"gateway": given} if given else {}
    stopping = _stop_signals()
    acting.set(THE_PROGRAM)  # from here on nobody sits at the terminal
    _take_room()
    async with serve(settings=settings) as gateway:
        terminal = _terminal()
        terminal.tell(f"everloop gateway: {gateway.url}")
        if gateway.link:
            terminal.tell(f"Log in, once, with: {gateway.link}")
        if gateway.listening:
            terminal.tell(f"Open channels: {', '.join(gateway.listening)}. See: everloop channels status")
        _log.info(how_recalled(load(home_of(os.environ), os.environ, settings)))
        for sentence in gateway.unused:
            _log.warning(sentence)
            terminal.tell(sentence)
        _log.info("the gateway listens at %s", gateway.url)
        await stopping.wait()
        _log.info("the gateway stops")
        terminal.tell("everloop gateway: stopping")
    return 0


def _terminal() -> Terminal:
    return Terminal(sys.stdout, sys.stderr)


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
