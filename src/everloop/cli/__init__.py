"""The command line: one file per command, loaded when it is used. No traceback reaches a user."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any

from .. import __version__, process
from ..core.errors import EverloopError
from ..settings import home_of
from . import agent
from .logs import keep_logs

COMMANDS = {"agent": agent}


def run(argv: list[str]) -> int:
    parser = build_parser()
    if not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help")):
        argv = ["agent", *argv]  # `everloop` alone opens the chat
    arguments = parser.parse_args(argv)
    keep_logs(home_of(os.environ))
    try:
        return process.run(_until_ended(COMMANDS[arguments.command].run(arguments)))
    except EverloopError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python's last flush finds a reader
        return 141


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="everloop", description="A self-hosted AI agent that keeps its word.")
    parser.add_argument("--version", action="version", version=f"everloop {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.HELP, description=module.HELP, epilog=module.MORE)
        module.add_arguments(command)
    return parser


async def _until_ended(main: Coroutine[Any, Any, int]) -> int:
    """A polite request to end (SIGTERM) lets the running step finish and puts the turn down for the next start."""
    ended = False
    task = asyncio.ensure_future(main)

    def end() -> None:
        nonlocal ended
        ended = True
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    try:
        return await task
    except asyncio.CancelledError:
        if not ended:
            raise
        return 128 + signal.SIGTERM


def _complain(sentence: str) -> int:
    print(f"everloop: {sentence}", file=sys.stderr)
    return 1
