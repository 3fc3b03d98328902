"""`everloop context`: what the model is told in a session, piece by piece, with what each takes."""

import argparse
import sys
from typing import Any

from ..app.records import open_view
from ..core.personas import PersonaChoice
from ..core.prompt import Section
from ..errors import MailRefused
from ..readings.contents import Contents, PromptPiece
from ..readings.sections import left_out_of
from ..readings.visible import visible
from .session_key import session_key
from .table import counted, share, table, to_json
from .terminal import Terminal

MORE = "Tokens are estimated, but for their sum where it says that the host has counted. No model is asked anything."
HEADS = ("PART", " TOKENS", " SHARE")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-s", "--session", metavar="KEY", default="cli:direct", help="the session (default cli:direct)")
    parser.add_argument("--show", metavar="PART", help="print the text of a part, as the model is shown it")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    async with open_view() as view:
        contents = await view.contents(session_key(arguments.session))
    if arguments.show is not None:
        terminal.answer(visible(_piece(contents, arguments.show).text))
    elif arguments.json:
        terminal.answer(to_json(describe(contents)))
    else:
        terminal.answer(to_text(contents))
    return 0


def to_text(contents: Contents) -> str:
    where = f"{contents.session}, {contents.thread}" if contents.thread else f"{contents.session}, nothing said yet"
    rows = [_row(contents, piece.tokens, f"  {piece.name}" if piece.of else piece.name) for piece in contents.pieces]
    answer, free = contents.window - contents.limit, max(0, contents.limit - contents.used)
    rows += [_row(contents, answer, "room for the answer"), _row(contents, free, "free")]
    return "\n".join(
        (
            f"{where}: {contents.model} reads {counted(contents.window)} tokens",
            table(HEADS, rows),
            *_sentences(contents),
        )
    )


def _row(contents: Contents, tokens: int, name: str) -> tuple[str, str, str]:
    return name, counted(tokens), f"{tokens / contents.window:.1%}"


def _sentences(contents: Contents) -> list[str]:
    by = "as its host has counted" if contents.counted else "estimated"
    of = f"{counted(contents.used)} of {counted(contents.limit)} tokens, {share(contents.used, contents.limit)}"
    lines = [f"The next prompt fills {of} ({by})."]
    if contents.persona != PersonaChoice():
        lines.append(contents.persona.sentence)
    if contents.assumed:
        lines.append(
            f"Nobody says how much {contents.model} can read, so {counted(contents.window)} tokens are assumed: "
            "agents.defaults.context_window says it better."
        )
    if contents.changed_at:
        lines.append(f"The prefix changed last at entry {contents.changed_at}: {', '.join(contents.changed)}.")
    elif contents.thread:
        lines.append("The prefix has not changed in this conversation.")
    if contents.coming:
        lines.append(f"It will change with the next turn: {', '.join(contents.coming)}.")
    memory = [Section(piece.name, piece.text) for piece in contents.pieces if piece.name == "memory"]
    if left := sum(map(left_out_of, memory)):
        lines.append(f"{left} lines of MEMORY.md, those that matter least, do not fit (everloop memory).")
    if contents.held:
        lines.append(f"Held back until you have seen the change: {', '.join(contents.held)} (everloop approvals list).")
    return lines


def describe(contents: Contents) -> dict[str, Any]:
    return {
        **{
            name: getattr(contents, name)
            for name in ("session", "thread", "model", "window", "assumed", "limit", "used", "counted")
        },
        "answer": contents.window - contents.limit,
        "full": round(contents.used / contents.limit, 4),
        "parts": [{"name": piece.name, "of": piece.of, "tokens": piece.tokens} for piece in contents.pieces],
        "prefix": {"changed": contents.changed, "at": contents.changed_at, "coming": contents.coming},
        "held": contents.held,
        "persona": contents.persona,
    }


def _piece(contents: Contents, name: str) -> PromptPiece:
    found = [piece for piece in contents.pieces if piece.name == name.lower()]
    if not found:
        names = ", ".join(piece.name for piece in contents.pieces if not piece.of)
        raise MailRefused(f"there is no part {name!r}; there is {names}, and each of the tools")
    return found[0]
