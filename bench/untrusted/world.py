"""A world without a network: pages, a search engine and a model that does what its script says, whatever that costs.

The model is fully obedient: the script is what a page, a letter or a file would order it to do. What counts is what
everloop lets it do unasked. In attacks nobody is there to allow anything; in honest tasks a person says yes.
"""

import asyncio
import io
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

import everloop
from everloop.core.log import Asked, CallReturned, ModelSaid
from everloop.core.tool import ToolCall
from everloop.errors import TurnFailed
from everloop.testing import Call, Line, Say, ScriptedModel
from everloop.tools.web_fetch import web_fetch_tool
from everloop.tools.web_search import SearchResult, web_search_tool

Find = list[tuple[str, str, str]]
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d494844520000000100000001080600000 01f15c4890000000d49444154789c6360f8cfc0f01f0005000201"
    "1d3b1c5d0000000049454e44ae426082".replace(" ", "")
)


def S(query: str) -> Call:
    return Call("web_search", {"query": query})


def F(url: str, offset: int = 0) -> Call:
    return Call("web_fetch", {"url": url, **({"offset": offset} if offset else {})})


def R(path: str) -> Call:
    return Call("read_file", {"path": path})


def W(path: str, content: str) -> Call:
    return Call("write_file", {"path": path, "content": content})


def X(command: str, **more: Any) -> Call:
    return Call("exec", {"command": command, **more})


class Turn:
    """What a person says, and what the model then does: each step is one answer, with a call or several."""

    def __init__(
        self, text: str, *steps: Sequence[Call], attached: Mapping[str, str] = {}, session: str = "api:default"
    ) -> None:
        self.text = text
        self.steps = steps
        self.attached = attached
        self.session = session


class Task(Struct, frozen=True):
    """`files` lie in the workspace from the beginning. `finds` is what the searches find, in order."""

    name: str
    turns: list[Turn]
    files: dict[str, str] = {}
    pages: dict[str, str] = {}
    finds: list[Find] = []
    settings: dict[str, Any] = {}


class Web:
    """Answers whatever is asked, and remembers it. A page that is `-> address` redirects there."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        self._pages = pages
        self.urls: list[str] = []

    @asynccontextmanager
    async def request(self, method: str, url: str, **_: Any) -> AsyncIterator["Answer"]:
        self.urls.append(url)
        text = self._pages.get(url, "ok")
        while text.startswith("-> "):
            url = text[3:]
            self.urls.append(url)
            text = self._pages.get(url, "ok")
        yield Answer(url, content_of(url, text))


class Answer:
    status = 200

    def __init__(self, url: str, body: bytes) -> None:
        self.url = url
        self.headers = {"Content-Type": "application/pdf" if body.startswith(b"%PDF") else "text/plain"}
        self._body = body

    async def read(self, limit: int = 0) -> bytes:
        return self._body


class Engine:
    name = "test"

    def __init__(self, finds: Sequence[Find]) -> None:
        self._finds = list(finds)
        self.queries: list[str] = []

    async def find(self, query: str, count: int) -> list[SearchResult]:
        self.queries.append(query)
        rows = self._finds.pop(0) if self._finds else []
        return [SearchResult(*row) for row in rows]


class Seen(Struct):
    """What came of a task: `asked` are the calls about which a person was asked, with why; `ran` those that ran."""

    asked: list[tuple[ToolCall, str]]
    ran: list[ToolCall]
    systems: list[str]  # what the model was told first, call by call
    urls: list[str]
    queries: list[str]


def content_of(name: str, text: str) -> bytes:
    """A file as its kind wants it."""
    kind, _, words = text.partition(": ")
    if text == "png":
        return PNG
    if kind == "pdf":
        return pdf(words)
    if kind == "xlsx":
        import openpyxl

        book, out = openpyxl.Workbook(), io.BytesIO()
        book.active.append([words])
        book.save(out)
        return out.getvalue()
    if kind == "docx":
        import docx

        letter, out = docx.Document(), io.BytesIO()
        letter.add_paragraph(words)
        letter.save(out)
        return out.getvalue()
    return text.encode()


def pdf(words: str) -> bytes:
    """A document of one page."""
    content = f"BT /F1 12 Tf 20 100 Td ({words}) Tj ET".encode()
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    made, table = b"%PDF-1.4\n", b"xref\n0 6\n0000000000 65535 f \n"
    for number, each in enumerate(objects, 1):
        table += b"%010d 00000 n \n" % len(made)
        made += b"%d 0 obj%s endobj\n" % (number, each)
    return made + table + b"trailer<</Root 1 0 R/Size 6>>\nstartxref\n%d\n%%%%EOF\n" % len(made)


def lines_of(turns: Sequence[Turn]) -> list[Line]:
    return [line for turn in turns for line in (*(tuple(step) for step in turn.steps), Say("Done."))]


async def play(task: Task, *, allows: bool) -> Seen:
    """Do what a task says in a new home. `allows`: a person is there and says yes to everything."""
    with tempfile.TemporaryDirectory(prefix="everloop-untrusted-") as folder:
        home = Path(folder) / "home"
        workspace = home / "workspace"
        workspace.mkdir(parents=True)
        for name, text in task.files.items():
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_bytes(content_of(name, text))
        # A command spoken to everloop (/new, /session …) is no turn: no line is said for it.
        model = ScriptedModel(lines_of([turn for turn in task.turns if not turn.text.startswith("/")]))
        web, engine = Web(task.pages), Engine(task.finds)
        settings = {"tools": {"disabled": ["web_*"]}, **task.settings}
        tools = [web_fetch_tool(web), web_search_tool(engine)]
        async with everloop.open(home, settings, provider=model, tools=tools) as agent:
            yes = asyncio.create_task(_say_yes(agent)) if allows else None
            for turn in task.turns:
                files = []
                for name, text in turn.attached.items():
                    files.append(Path(folder) / name)
                    files[-1].write_bytes(content_of(name, text))
                with suppress(TurnFailed):  # it went in circles, because nobody allows anything
                    await agent.ask(turn.text, turn.session, files=files, attended=allows)
            if yes:
                yes.cancel()
            asked, ran = await _told(agent)
        return Seen(asked, ran, [shown.system for shown in model.prompts], web.urls, engine.queries)


async def _say_yes(agent: everloop.Agent) -> None:
    with agent.events() as events:
        async for event in events:
            if event.name == "approval_asked":
                for approval in event.data["approvals"]:
                    await agent.decide(approval.id, True)


async def _told(agent: everloop.Agent) -> tuple[list[tuple[ToolCall, str]], list[ToolCall]]:
    asked: list[tuple[ToolCall, str]] = []
    ran: list[ToolCall] = []
    seen: set[tuple[str, int, int]] = set()
    for row in await agent.store.conversations("owner", limit=50):
        answers: dict[int, ModelSaid] = {}
        for seq, entry in enumerate(await agent.store.read(row.id), 1):
            match entry:
                case ModelSaid():
                    answers[seq] = entry
                case Asked(answer=answer, place=place):
                    asked.append((answers[answer].calls[place], entry.risk.why))
                case CallReturned(answer=answer, place=place, outcome="done" | "failed"):
                    call = answers[answer].calls[place]
                    if (call.args, answer, place) not in seen:  # a branch begins with what its parent did
                        seen.add((call.args, answer, place))
                        ran.append(call)
    return asked, ran
