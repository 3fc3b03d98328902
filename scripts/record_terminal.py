"""Draw docs/terminal.svg and docs/terminal-tools.svg: a chat at a pseudo-terminal with a scripted model, as its screen
shows it.

python scripts/record_terminal.py
"""

import asyncio
import sys
import tempfile
from html import escape
from pathlib import Path

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
WIDE, HIGH, LEFT, TOP = 8.4, 18, 12, 24
ANSWER = """The report is **done**: `report.md` has three lines.

```python
def total(rows: list[int]) -> int:
    return sum(rows)
```

| month | sum |
|---|---|
| May | 120 |
| June | 95 |
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
            person = Person(Path(folder), model)
            write = Call("write_file", {"path": "report.md", "content": "# Report\n\nMay 120, June 95\n"})
            model.play([[Think("First the file."), write], Say(ANSWER)])
            async with RichTerminal(person, columns=84, rows=30) as terminal:
                await terminal.shows("everloop, custom/scripted")
                terminal.send("write the report\r")
                await terminal.shows("June")
                terminal.send("/mo")
                await terminal.shows("Show the model")
                return drawn(terminal)


async def record_tools() -> str:
    with tempfile.TemporaryDirectory() as folder:
        async with ModelServer() as model:
            person = Person(Path(folder), model)
            (person.home / "workspace").mkdir(parents=True)
            person.home.chmod(0o700)
            (person.home / "workspace" / "prices.py").write_text(BEFORE)
            edit = {"path": "prices.py", "old_text": OLD, "new_text": NEW}
            model.play(
                [
                    [Say("The tax is added twice: once in the loop, and again at the end."), Call("edit_file", edit)],
                    Call("exec", {"command": "python3 -c 'import prices; print(prices.total([100, 50]))'"}),
                    Call("exec", {"command": "sudo systemctl restart shop"}),
                ]
            )
            async with RichTerminal(person, columns=84, rows=31) as terminal:
                await terminal.shows("everloop, custom/scripted")
                terminal.send("fix the total in prices.py, try it, and restart the shop\r")
                await terminal.shows("Allow it?")
                await terminal.until(lambda: any(line.startswith(" y here") for line in terminal.screen))
                return drawn(terminal)


def drawn(terminal: RichTerminal) -> str:
    screen = terminal._screen
    width, height = screen.columns * WIDE + 2 * LEFT, screen.lines * HIGH + 2 * TOP
    rows = [_row(screen.buffer[row], row, screen.columns) for row in range(screen.lines)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-family="monospace" '
        f'font-size="14" fill="#dcdfe4" xml:space="preserve"><rect width="100%" height="100%" rx="8" fill="#1e2127"/>'
        f"{''.join(rows)}</svg>\n"
    )


def _row(cells, row: int, columns: int) -> str:  # type: ignore[no-untyped-def]
    spans, y = [], TOP + row * HIGH + 12
    for at in range(columns):
        cell = cells[at]
        if cell.data.strip():
            colour = COLOURS.get(cell.fg, f"#{cell.fg}" if len(cell.fg) == 6 and cell.fg != "default" else "")
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
