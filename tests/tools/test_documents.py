"""Documents are made from Markdown and tables, and read as text, within limits."""

import csv
import io
import json
import os
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from everloop.core.people import Role
from everloop.core.tool import FileChange
from everloop.errors import ToolError
from everloop.files.folder import Folder
from everloop.ports.tools import CallContext, Shown, Tool
from everloop.tools.document_worker import html_of
from everloop.tools.documents import can_make, can_use
from everloop.tools.files import workspace_tools
from everloop.tools.markup import Block, StyledText, blocks_of, spans_of

CONTEXT = CallContext(key="t:1:0", thread="t", session="cli:direct", user="ann", role=Role.USER)
needs = {
    kind: pytest.mark.skipif(not (can_use(kind) and can_make(kind)), reason="extra [documents]")
    for kind in ("pdf", "docx", "xlsx")
}

MARKDOWN = """\
# Trip

Go *by train*, **not** by `car`; see
[the map](https://example.org/map).

- first
  goes on
  - deeper
1. one

| city | days |
|------|-----:|
| Rome | 3 |
| a \\| b | |

```
x < y
```
> so be it
---
"""
BLOCKS = [
    Block("heading", "Trip", 1),
    Block("paragraph", "Go *by train*, **not** by `car`; see [the map](https://example.org/map)."),
    Block("bullet", "first goes on", 0),
    Block("bullet", "deeper", 1),
    Block("number", "one", 0),
    Block("table", rows=(("city", "days"), ("Rome", "3"), ("a | b", ""))),
    Block("code", "x < y"),
    Block("quote", "so be it"),
    Block("rule"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def tools(root: Path) -> dict[str, Tool]:
    return {tool.spec.name: tool for tool in workspace_tools(root, Folder(root.parent / "files"))}


async def refusal(tool: Tool, **args: object) -> str:
    with pytest.raises(ToolError) as caught:
        await tool.run(args, CONTEXT)
    return str(caught.value)


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text on each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for text in pages:
        stream = f"BT /F1 24 Tf 72 720 Td ({text}) Tj ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        page = f"<< /Type /Page /Parent 2 0 R /Contents {len(objects)} 0 R /MediaBox [0 0 612 792]"
        objects.append(f"{page} /Resources << /Font << /F1 3 0 R >> >> >>")
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(out)


def test_markdown_is_read_as_blocks():
    assert blocks_of(MARKDOWN) == BLOCKS


def test_a_line_is_read_as_spans():
    assert spans_of("a **b** _c_ `d*e*` [f](g) snake_case_name 2 * 3 * 4 **open") == [
        StyledText("a "),
        StyledText("b", bold=True),
        StyledText(" "),
        StyledText("c", italic=True),
        StyledText(" "),
        StyledText("d*e*", code=True),
        StyledText(" "),
        StyledText("f", link="g"),
        StyledText(" snake_case_name 2 * 3 * 4 **open"),
    ]


@pytest.mark.parametrize("piece", ["|-", "- ", "* ", "[", "_", "**", "`", "[a](", "#", "> ", "1. ", "~~~\n", "|\n|-\n"])
def test_no_text_is_slow(piece: str):
    blocks = blocks_of(piece * (300_000 // len(piece)) + "x")
    html_of(blocks, "")


class TestMaking:
    async def test_a_page_escapes_what_is_no_markdown(self, root: Path, tools: dict[str, Tool]):
        content = "# <b>Hi</b>\n\n<script>alert(1)</script> [x](javascript:alert) [y](https://a.b/?c=1&d) [z](d.html)"
        await tools["create_document"].run({"path": "a.html", "content": content}, CONTEXT)
        page = (root / "a.html").read_text()
        assert "<script" not in page
        assert "<h1>&lt;b&gt;Hi&lt;/b&gt;</h1>" in page
        assert 'href="javascript' not in page
        assert '<a href="https://a.b/?c=1&amp;d">y</a> <a href="d.html">z</a>' in page
        assert "<title>&lt;b&gt;Hi" in page

    async def test_a_whole_page_is_made(self, root: Path, tools: dict[str, Tool]):
        await tools["create_document"].run({"path": "a.html", "content": MARKDOWN}, CONTEXT)
        page = (root / "a.html").read_text()
        assert "<p>Go <em>by train</em>, <strong>not</strong> by <code>car</code>; see" in page
        assert "<ul>\n<li>first goes on</li>" in page
        assert "</ul>\n<ol>\n<li>one</li>\n</ol>" in page
        assert "<tr><th>city</th><th>days</th></tr>\n<tr><td>Rome</td><td>3</td></tr>" in page
        assert "<pre><code>x &lt; y</code></pre>" in page

    async def test_text_is_kept_as_it_is_and_tables_follow(self, root: Path, tools: dict[str, Tool]):
        create = tools["create_document"]
        await create.run({"path": "a.md", "content": "Hi\n"}, CONTEXT)
        assert (root / "a.md").read_text() == "Hi\n"
        await create.run({"path": "b.md", "content": "Hi", "sheets": {"T": [["a", "b|c"], [1, None]]}}, CONTEXT)
        assert blocks_of((root / "b.md").read_text()) == [
            Block("paragraph", "Hi"),
            Block("heading", "T", 2),
            Block("table", rows=(("a", "b|c"), ("1", ""))),
        ]

    async def test_a_csv_is_one_table(self, root: Path, tools: dict[str, Tool]):
        rows = [["a", 'say "hi", ok'], [1.5, None], [True, "two\nlines"]]
        create = tools["create_document"]
        await create.run({"path": "a.csv", "sheets": {"T": rows}}, CONTEXT)
        with open(root / "a.csv", newline="") as file:  # noqa: ASYNC230
            assert list(csv.reader(file)) == [["a", 'say "hi", ok'], ["1.5", ""], ["True", "two\nlines"]]
        await create.run({"path": "b.csv", "content": MARKDOWN}, CONTEXT)
        assert (root / "b.csv").read_text() == "city,days\nRome,3\na | b,\n"
        assert "a csv holds one table, and there are 2" in await refusal(
            create, path="c.csv", sheets={"A": [[1]], "B": [[2]]}
        )

    @needs["xlsx"]
    async def test_a_workbook_has_a_sheet_for_each_table(self, root: Path, tools: dict[str, Tool]):
        sheets = {"Costs": [["what", "cost"], ["bread", 2.5], ["sum", "=SUM(B2:B2)"]], "a/b:c" * 20: [], "COSTS": [[1]]}
        said = await tools["create_document"].run({"path": "a.xlsx", "sheets": sheets}, CONTEXT)
        data = (root / "a.xlsx").read_bytes()
        change = FileChange("a.xlsx", "new", sha256(data).hexdigest()[:12])
        assert said == Shown(f"Wrote {len(data)} bytes to a.xlsx.", changes=(change,))
        assert (await tools["read_file"].run({"path": "a.xlsx"}, CONTEXT)).text == (
            "[sheet Costs]\nwhat | cost\nbread | 2.5\nsum | =SUM(B2:B2)\n"
            "[sheet a_b_ca_b_ca_b_ca_b_ca_b_ca_b]\n[sheet COSTS_2]\n1\n"
        )

    @needs["docx"]
    async def test_a_letter_is_made_and_read(self, root: Path, tools: dict[str, Tool]):
        args = {"path": "a.docx", "content": MARKDOWN, "sheets": {"More": [["x"], [1]]}}
        await tools["create_document"].run(args, CONTEXT)
        assert (await tools["read_file"].run({"path": "a.docx"}, CONTEXT)).text == (
            "# Trip\n\nGo by train, not by car; see the map (https://example.org/map).\n\n"
            "- first goes on\n\n- deeper\n\n- one\n\n| city | days |\n| Rome | 3 |\n| a | b |  |\n\n"
            "x < y\n\nso be it\n\n⁂\n\n## More\n\n| x |\n| 1 |\n\n"
        )

    @needs["pdf"]
    async def test_a_pdf_is_made_and_read(self, root: Path, tools: dict[str, Tool]):
        args = {"path": "a.pdf", "content": MARKDOWN, "sheets": {"More": [["x"], [1]]}}
        await tools["create_document"].run(args, CONTEXT)
        read = await tools["read_file"].run({"path": "a.pdf"}, CONTEXT)
        assert isinstance(read, Shown)
        assert (root / "a.pdf").read_bytes().startswith(b"%PDF-")
        assert " ".join(read.text.partition("Its text:\n")[2].split()) == (
            "[page 1 of 1] Trip Go by train, not by car; see the map. • first goes on • deeper 1. one "
            "city days Rome 3 a | b x < y so be it More x 1"
        )

    @needs["pdf"]
    async def test_a_pdf_of_many_pages_and_odd_tables_is_made(self, root: Path, tools: dict[str, Tool]):
        sheets = {
            "Rows": [["n", "square"], *([n, n * n] for n in range(200))],
            "Ragged": [["a"], [1, 2, 3], []],
            "None": [],
        }
        args = {
            "path": "a.pdf",
            "content": f"{'word ' * 2000}\n\n{'x' * 3000}\n\n```\n{'y' * 3000}\n```",
            "sheets": sheets,
        }
        await tools["create_document"].run(args, CONTEXT)
        read = await tools["read_file"].run({"path": "a.pdf", "offset": 400}, CONTEXT)
        assert "39601" in (read.text if isinstance(read, Shown) else read)

    @needs["docx"]
    @needs["xlsx"]
    @needs["pdf"]
    @pytest.mark.parametrize("name", ["a.docx", "a.xlsx", "a.pdf"])
    async def test_a_second_run_makes_the_same(self, root: Path, tools: dict[str, Tool], name: str):
        args = {"path": name, "content": "# Hi", "sheets": {"T": [["a"], [1]]}}
        await tools["create_document"].run(args, CONTEXT)
        first = (root / name).read_bytes()
        (root / name).unlink()
        await tools["create_document"].run(args, CONTEXT)
        assert (root / name).read_bytes() == first

    @pytest.mark.parametrize(
        ("args", "sentence"),
        [
            (
                {"path": "a.odt", "content": "x"},
                "the kind 'odt' cannot be made, only md, txt, csv, html, docx, pdf, xlsx",
            ),
            (
                {"path": "a.pdf", "content": "a \U000f0000"},
                "no font of this machine has \U000f0000; install one that does",
            ),
            ({"path": "a", "content": "x"}, "the kind 'without an ending' cannot be made"),
            ({"path": "a.md"}, "there is nothing to put into the document"),
            ({"path": "a.csv", "content": "no table"}, "a csv is made of tables"),
            ({"path": "a.csv", "sheets": {"T": "x"}}, "sheets.T must be a list of rows"),
            ({"path": "a.csv", "sheets": {"T": [[{}]]}}, "sheets.T: a cell is text, a number"),
            ({"path": "a.csv", "sheets": {"T": [[1] * 1000] * 501}}, "the tables have 501,000 cells"),
            ({"path": "../a.md", "content": "x"}, "a path cannot hold '..'"),
        ],
    )
    async def test_what_cannot_be_made_is_refused(
        self, root: Path, tools: dict[str, Tool], args: dict[str, object], sentence: str
    ):
        assert sentence in await refusal(tools["create_document"], **args)
        assert os.listdir(root) == []

    def test_without_the_libraries_it_is_said_what_is_missing(self, root: Path):
        with zipfile.ZipFile(root / "b.docx", "w") as archive:
            archive.writestr("word/document.xml", "<x/>")
        (root / "c.pdf").write_bytes(pdf("Hello"))
        ran = subprocess.run([sys.executable, "-c", WITHOUT_LIBRARIES, str(root)], capture_output=True, text=True)
        hint = "it comes with: pip install 'everloop[documents]'"
        assert ran.stderr == ""
        assert json.loads(ran.stdout) == [
            f"'a.docx' needs a library for docx; {hint}",
            f"'a.xlsx' needs a library for xlsx; {hint}",
            "Wrote 1 bytes to a.md.",
            f"'b.docx' needs a library for docx; {hint}",
            f"c.pdf: application/pdf, {len(pdf('Hello'))} bytes",  # shown, but not read
        ]


# The same machine, but nothing finds the libraries.
WITHOUT_LIBRARIES = """
import asyncio, json, sys
from pathlib import Path
sys.modules.update(dict.fromkeys(("docx", "openpyxl", "pypdf")))
from everloop.errors import ToolError
from everloop.ports.tools import CallContext
from everloop.files.folder import Folder
from everloop.tools.files import workspace_tools
root = Path(sys.argv[1])
tools = {tool.spec.name: tool for tool in workspace_tools(root, Folder(root.parent / "files"))}
async def said(name, **args):
    try:
        result = await tools[name].run(args, CallContext(key="t:1:0", thread="t", session="s", user="ann", role=1))
    except ToolError as error:
        return str(error)
    return result if isinstance(result, str) else result.text
async def main():
    made = [await said("create_document", path=f"a.{kind}", content="x") for kind in ("docx", "xlsx", "md")]
    return [*made, *[await said("read_file", path=path) for path in ("b.docx", "c.pdf")]]
print(json.dumps(asyncio.run(main())))
"""


class TestReading:
    @needs["pdf"]
    async def test_a_pdf_is_shown_and_told(self, root: Path, tools: dict[str, Tool]):
        data = pdf("Hello there", "Second page")
        (root / "a.pdf").write_bytes(data)
        shown = await tools["read_file"].run({"path": "a.pdf"}, CONTEXT)
        assert isinstance(shown, Shown)
        assert shown.text == (
            f"a.pdf: application/pdf, {len(data):,} bytes. Its text:\n"
            "[page 1 of 2]\nHello there\n[page 2 of 2]\nSecond page\n"
        )
        assert [picture.data for picture in shown.pictures] == [data]
        rest = (await tools["read_file"].run({"path": "a.pdf", "offset": 3}, CONTEXT)).text
        assert rest == "[page 2 of 2]\nSecond page\n[the end]"

    @needs["pdf"]
    async def test_a_pdf_that_cannot_be_read_is_still_shown(self, root: Path, tools: dict[str, Tool]):
        (root / "a.pdf").write_bytes(b"%PDF-1.7\nnothing\n%%EOF\n")
        shown = await tools["read_file"].run({"path": "a.pdf"}, CONTEXT)
        assert isinstance(shown, Shown)
        assert "['a.pdf' cannot be read as pdf:" in shown.text
        assert len(shown.pictures) == 1

    @needs["xlsx"]
    async def test_an_answer_never_exceeds_its_limit_and_goes_on(self, root: Path, tools: dict[str, Tool]):
        rows = [[f"row {n}", "x" * 50] for n in range(1000)]
        await tools["create_document"].run({"path": "a.xlsx", "sheets": {"T": rows}}, CONTEXT)
        said = (await tools["read_file"].run({"path": "a.xlsx"}, CONTEXT)).text
        assert len(said) <= 8000
        offset = int(said.rpartition("offset=")[2].rstrip("]"))
        more = (await tools["read_file"].run({"path": "a.xlsx", "offset": offset, "limit": 1}, CONTEXT)).text
        assert more.startswith(f"row {offset - 2} | xxx")

    @needs["docx"]
    async def test_a_bomb_is_refused(self, root: Path, tools: dict[str, Tool]):
        for name, size in (("declared.docx", 400), ("large.docx", 250)):
            with zipfile.ZipFile(root / name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                archive.writestr("[Content_Types].xml", "<x/>")
                with archive.open("word/document.xml", "w", force_zip64=True) as part:
                    for _ in range(size):
                        part.write(b" " * 1_000_000)
        assert "unpacked it would have 400,000,004 bytes" in await refusal(tools["read_file"], path="declared.docx")
        assert "cannot be read as docx" in await refusal(tools["read_file"], path="large.docx")

    @needs["docx"]
    async def test_a_document_cannot_make_us_read_other_files(self, root: Path, tools: dict[str, Tool]):
        (root.parent / "canary.txt").write_text("canary-81c2")
        await tools["create_document"].run({"path": "a.docx", "content": "INSERT"}, CONTEXT)
        entity = f'<!DOCTYPE x [<!ENTITY c SYSTEM "file://{root.parent}/canary.txt">]>'
        bomb = '<!DOCTYPE x [<!ENTITY a "ha ha">' + "".join(
            f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 20}">' for n in range(12)
        ) + "]>"  # fmt: skip
        for head, use in ((entity, "&c;"), (bomb, "&m;")):
            (root / "b.docx").write_bytes(_with_head((root / "a.docx").read_bytes(), head, use))
            try:
                said = (await tools["read_file"].run({"path": "b.docx"}, CONTEXT)).text
            except ToolError as error:
                said = str(error)
            assert "canary-81c2" not in said
            assert len(said) < 8000

    async def test_another_archive_is_binary_data(self, root: Path, tools: dict[str, Tool]):
        with zipfile.ZipFile(root / "a.zip", "w") as archive:
            archive.writestr("a.txt", "x\0")
        assert "is not text but binary data" in await refusal(tools["read_file"], path="a.zip")
        (root / "b.zip").write_bytes(b"PK\3\4 and then\0 nothing")
        assert "is not text but binary data" in await refusal(tools["read_file"], path="b.zip")


def _with_head(document: bytes, head: str, use: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(document)) as before, zipfile.ZipFile(out, "w") as after:
        for name in before.namelist():
            text = before.read(name)
            if name == "word/document.xml":
                declaration, _, rest = text.decode().partition("?>")
                text = f"{declaration}?>{head}{rest.replace('INSERT', use)}".encode()
            after.writestr(name, text)
    return out.getvalue()
