"""`everloop agent`: one answer with -m, or a conversation. What either needs is loaded when it is known which."""

import argparse
import os
import sys
from importlib.util import find_spec

from .session_key import DIRECT

NEEDED = ("prompt_toolkit", "pygments", "markdown_it")  # the extra `chat`
HELP = "talk with the agent: one answer with -m, else a chat"
MORE = "The answer alone goes to stdout, everything else to stderr. What was cut off is finished first."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-m", "--message", metavar="TEXT", help="say this, print the answer and leave ('-': read stdin)"
    )
    parser.add_argument(
        "-f",
        "--file",
        dest="files",
        action="append",
        default=[],
        metavar="PATH",
        help="with -m: send this file, too, of any kind (may be given several times)",
    )
    parser.add_argument("-s", "--session", metavar="KEY", help=f"the session, as channel:chat (default {DIRECT})")
    parser.add_argument(
        "--continue",
        dest="resume",
        action="store_true",
        help="go on with the session that was active last (instead of -s)",
    )
    parser.add_argument(
        "--approvals",
        choices=("ask", "allow", "deny"),
        help="what becomes of calls that need your permission: ask here, or without a terminal wait for `everloop "
        "approvals`; allow all; deny all (default: ask at a terminal, else deny)",
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="the chat without colours and without an area of its own at the bottom, as on a terminal that has neither",
    )
    parser.add_argument("--json", action="store_true", help="with -m: print one JSON object instead of the answer")


async def run(arguments: argparse.Namespace) -> int:
    if _is_rich(arguments):
        from .chat.opening import run_rich

        return await run_rich(arguments)
    from .chat.plain import run_plain

    return await run_plain(arguments)


def _is_rich(arguments: argparse.Namespace) -> bool:
    """Whether this is a chat, at a terminal that can be drawn on, with what draws there installed."""
    wanted = arguments.message is None and not (arguments.plain or arguments.json or arguments.files)
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
    return bool(wanted and at_terminal and all(map(find_spec, NEEDED)))
