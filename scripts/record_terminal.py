"""Draw docs/terminal.svg and docs/terminal-tools.svg: a chat at a pseudo-terminal with a scripted model, as its screen
shows it.

python scripts/record_terminal.py
"""

import asyncio
import sys
import tempfile
from html import escape
from pathlib import Path

import pyte.graphics

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.cli.person import Person  # noqa: E402
from tests.cli.rich_terminal import RichTerminal  # noqa: E402

from everloop.testing import Call, Say, Think  # noqa: E402
from everloop.testing.model_server import ModelServer  # noqa: E402

COLOURS = {
    "red": "#e06c75", "green": "#98c379", "brown": "#e5c07b", "blue": "#61afef", "magenta": "#c678dd",
    "cyan": "#56b6c2",
}  # fmt: skip
pyte.graphics.TEXT[2] = "+blink"  # the emulator knows nothing dim, and nothing here blinks
WIDE, HIGH, LEFT, TOP = 8.4, 18, 12, 24
DIM = "#8b919c"
SCRIPT = """#!/bin/sh
set -e
tar -czf "/backup/home-$(date +%F).tgz" /home
"""
LOG = """Nov 15 02:00 home-11-15.tgz done
Nov 16 02:00 tar: /backup/home-11-16.tgz: No space left on device
Nov 17 02:00 tar: /backup/home-11-17.tgz: No space left on device
"""
LAST = 'tar -czf "/backup/home-$(date +%F).tgz" /home\n'
KEEPS = f"ls -t /backup/home-*.tgz | tail -n +8 | xargs -r rm\n{LAST}"
ANSWER = """It fails since **Monday**: the disk is full, for `backup.sh` never deleted anything.

| night | backup |
|---|---|
| Nov 15 | done |
| Nov 16 and 17 | no space left |

- What is older than the last seven goes *before* the next one is written.
- Nothing is deleted yet: it runs at 2:00.

Shall I look on Friday whether it held?
"""
SETTINGS = """[prices."custom/scripted"]
input = 3.0
output = 15.0
"""


BEFORE = """TAX = 0.2


def total(prices):
    sum = 0
    for price in prices:
        sum += price * (1 + TAX)
    return sum * (1 + TAX)
"""
OLD, NEW = "        sum += price * (1 + TAX)\n", "        sum += price\n"


async def record() -> str:
    with tempfile.TemporaryDirectory() as folder:
        async with ModelServer() as model:
            person = someone(Path(folder), model, {"backup.sh": SCRIPT, "backup.log": LOG})
            edit = Call("edit_file", {"path": "backup.sh", "old_text": LAST, "new_text": KEEPS})
            model.play(
                [
                    [Think("The log first."), Call("exec", {"command": "tail -n 3 backup.log"})],
                    [Say("The disk is full. I have it keep the last seven."), edit],
                    Say(ANSWER),
                ]
            )
            async with RichTerminal(person, columns=84, rows=40) as terminal:
                await terminal.shows("everloop, custom/scripted")
                terminal.send("the nightly backup fails: find out why, and mend it\r")
                await terminal.shows("whether it held?")
                await terminal.shows("$0")  # the status line, when the turn is over
                terminal.send("yes, at nine")
                await terminal.shows("yes, at nine")
                return drawn(terminal)


async def record_tools() -> str:
    with tempfile.TemporaryDirectory() as folder:
        async with ModelServer() as model:
            person = someone(Path(folder), model, {"prices.py": BEFORE})
            edit = {"path": "prices.py", "old_text": OLD, "new_text": NEW}
            model.play(
                [
                    [Say("The tax is added twice: once in the loop, and again at the end."), Call("edit_file", edit)],
                    Call("exec", {"command": "python3 -c 'import prices; print(prices.total([100, 50]))'"}),
                    Call("exec", {"command": "sudo systemctl restart shop"}),
                ]
            )
            async with RichTerminal(person, columns=84, rows=40) as terminal:
                await terminal.shows("everloop, custom/scripted")
                terminal.send("fix the total in prices.py, try it, and restart the shop\r")
                await terminal.shows("May I run exec")
                await terminal.shows("Allow it?")
                await terminal.until(lambda: any(line.startswith(" y here") for line in terminal.screen))
                return drawn(terminal)


def someone(folder: Path, model: ModelServer, files: dict[str, str]) -> Person:
    """A person with these files in the workspace, and settings: nobody greets them as a newcomer."""
    person = Person(folder, model)
    (person.home / "workspace").mkdir(parents=True)
    person.home.chmod(0o700)
    (person.home / "config.toml").write_text(SETTINGS)
    for name, text in files.items():
        (person.home / "workspace" / name).write_text(text)
    return person


def drawn(terminal: RichTerminal) -> str:
    screen, cursor = terminal._screen, terminal._screen.cursor
    last = max(row for row in range(screen.lines) if terminal.screen[row].strip())
    width, height = screen.columns * WIDE + 2 * LEFT, (last + 1) * HIGH + 2 * TOP
    rows = [_row(screen.buffer[row], row, screen.columns) for row in range(last + 1)]
    at = f'x="{LEFT + cursor.x * WIDE:.1f}" y="{TOP + cursor.y * HIGH - 1}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-family="monospace" '
        f'font-size="14" fill="#dcdfe4" xml:space="preserve"><rect width="100%" height="100%" rx="8" fill="#1e2127"/>'
        f'<rect {at} width="{WIDE}" height="{HIGH - 2}" fill="#dcdfe4"/>'
        f"{''.join(rows)}</svg>\n"
    )


def _row(cells, row: int, columns: int) -> str:  # type: ignore[no-untyped-def]
    spans, y = [], TOP + row * HIGH + 12
    for at in range(columns):
        cell = cells[at]
        if cell.data.strip():
            colour = COLOURS.get(cell.fg, f"#{cell.fg}" if len(cell.fg) == 6 and cell.fg != "default" else "")
            colour = colour or (DIM if cell.blink else "")
            style = "".join(
                (
                    f' fill="{colour}"' if colour else "",
                    ' font-weight="bold"' if cell.bold else "",
                    ' font-style="italic"' if cell.italics else "",
                )
            )
            spans.append(f'<tspan x="{LEFT + at * WIDE:.1f}"{style}>{escape(cell.data)}</tspan>')
    return f'<text y="{y}">{"".join(spans)}</text>' if spans else ""


if __name__ == "__main__":
    (ROOT / "docs" / "terminal.svg").write_text(asyncio.run(record()))
    (ROOT / "docs" / "terminal-tools.svg").write_text(asyncio.run(record_tools()))
