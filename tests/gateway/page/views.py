"""Every view of the page, in a table, and a home in which each has something to show. A new view is a line in `VIEWS`:
axe looks at it (`test_page_access.py`), and so do you (`python -m tests.gateway.page.screenshots FOLDER`)."""

import asyncio
import struct
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from everloop.app.records import open_records
from everloop.core.log import (
    AgentTold,
    Answered,
    Asked,
    CallReturned,
    CallStarted,
    Compacted,
    Entry,
    GaveUp,
    ModelCalled,
    ModelChosen,
    ModelFailed,
    ModelSaid,
    PersonaChosen,
    Resumed,
    Stopped,
    TakenBack,
    Undoing,
    UserSaid,
)
from everloop.core.message import said
from everloop.core.prompt import Usage
from everloop.core.tool import FileChange, Risk, ToolCall
from everloop.ports import Store
from everloop.ports.conversation import Branch
from everloop.ports.memory import MEMORY, Fact, FactEnd, FactSource, MemoryChange, MemoryDocument
from everloop.testing import ScriptedModel
from tests.fake_mcp import FakeMcp, described, offering, reading
from tests.gateway.page.walk import BrokenChannel, Stage, look, send, staged, tell
from tests.moving.foreign_homes import FIXTURES

THREAD = "00000000000000aa"
TEXT = r"""# How the invoices were sorted

There are **three** of them, and one is *late*; see [the rules](https://example.org/) and `invoices/2026`.

| Invoice | From | Due | Amount |
|---|---|---|---:|
| 2026-014 | Baker & Sons | 3 November | 1,240.00 € |
| 2026-015 | Water works | 12 November | 86.40 € |
| 2026-016 | `a8f5f167f44f4964e6c998dee827110c` | 30 November | 12,003.99 € |

## What is left to do

- [x] sort them
- [ ] pay the late one
  1. ask the baker
  2. pay

> It is not known whether the baker is there on Mondays.

```python
def due(invoices: list[Invoice]) -> list[Invoice]:
    # The late ones first, and of these the dearest.
    return sorted(invoices, key=lambda each: (each.day, -each.amount))[:3]
```

The sum is \(\sum_{i=1}^{3} a_i = 13330.39\), H<sub>2</sub>O, press <kbd>Ctrl</kbd>.

\[ x = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a} \]

الفواتير مرتبة الآن

---

<details><summary>How it was counted</summary>

By hand.

</details>
"""
CALLS = (
    ToolCall("1", "exec", '{"command": "ls -la invoices && wc -l invoices/*.csv"}'),
    ToolCall("2", "edit_file", '{"path": "due.py", "old_text": "return 1\\n", "new_text": "return 2\\n"}'),
    ToolCall("3", "write_file", '{"path": "notes.md", "content": "# Notes\\n\\nThree invoices.\\n"}'),
    ToolCall(
        "4", "fetch", '{"url": "https://example.org/a/very/long/address/that/does/not/end?with=much&more=to&say=here"}'
    ),
    ToolCall("5", "send", '{"to": "somebody@example.org"}'),
)


def every_entry() -> list[Entry]:
    """A conversation with every kind of entry."""
    spent = Usage(input=12_400, output=890)
    entries: list[Entry] = [
        AgentTold("Lunch is at one.", sender="page:kitchen"),
        UserSaid(said("Please sort the invoices, and tell me which of them are due this month."), "owner"),
        ModelCalled("good"),
        ModelSaid(
            "I look at them first.", CALLS, spent, reasoning="There are **three**.\nI should look.", model="good"
        ),
    ]
    answer = len(entries)
    for place in range(4):
        entries.append(CallStarted(answer, place))
    entries += [
        CallReturned(answer, 0, "total 12\n-rw-r--r-- 1 ann ann 120 invoices/one.csv\n" * 4),
        CallReturned(answer, 1, "changed", changes=(FileChange("due.py", "new", "abc"),)),
        CallReturned(answer, 2, "there is no room left on the disk", "failed"),
        CallReturned(answer, 3, "Nobody knows.", "unknown", origin="example.org"),
        Asked(answer, 4, until=4_000_000_000, risk=Risk("high", leaves=True, mutates=True, why="it speaks to others")),
        Answered(answer, 4, "denied"),
        CallReturned(answer, 4, "The user did not allow this.", "denied"),
        ModelCalled("good"),
        Resumed(),
        ModelSaid(TEXT, usage=spent, model="good", cost=0.0123),
        UserSaid(said("And the next year?\nאם אפשר"), "owner"),
        ModelCalled("good"),
        Stopped("owner", "The next year has not", "I think about it."),
        ModelChosen("better", "owner"),
        PersonaChosen("tutor", "owner"),
        UserSaid(said("Go on."), "owner"),
        ModelCalled("better"),
        ModelFailed("busy", "better is busy; try again in a minute"),
        ModelCalled("better"),
        GaveUp("key", "better refuses the key (401). Check the key.", "7f3a", "The next year has"),
        Compacted("They spoke of **invoices**."),
        UserSaid(said("Undo that."), "owner"),
        ModelCalled("better"),
        ModelSaid("It ends in the middle of", usage=spent, finish="length", model="better"),
        Undoing("Write it down.", (FileChange("due.py", "new", "abc"),), ("sent to somebody@example.org",)),
        TakenBack(0, "due.py has been changed since"),
        UserSaid(said("Which of them is the late one?"), "owner"),
        ModelCalled("better"),
        ModelSaid("The baker's.", usage=spent, model="better", cost=0.002),
    ]
    return entries


def kept_here(now: float) -> Branch:
    """The conversation, as if it had been held in the last minutes."""
    entries = every_entry()
    return Branch(THREAD, entries, times=[now - 5.0 * len(entries) + 4.7 * n for n in range(len(entries))])


def png(width: int, height: int) -> bytes:
    """A picture: a slope from one colour to another."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    row = b"\0" + b"".join(bytes((40 + 180 * x // width, 120, 110)) for x in range(width))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(*each) for each in ((b"IHDR", head), (b"IDAT", zlib.compress(row * height)), (b"IEND", b""))
    )


class View(NamedTuple):
    """Where it is, what is there when it has come, and what is opened in it then."""

    name: str
    place: str
    ready: str
    act: Callable[[Stage], Awaitable[object]] | None = None

    async def open(self, stage: Stage) -> None:
        await stage.page.evaluate("sessionStorage.clear()")  # drafts, and whatever is open of the view before
        await stage.page.goto("about:blank")
        await stage.page.goto(f"{stage.url}/{self.place}")
        await stage.page.wait_for_selector(self.ready)
        if self.act:
            await self.act(stage)

    async def open_from(self, stage: Stage) -> None:
        """As a link of the page does, from a view of another place in which nothing was opened."""
        await stage.page.evaluate(
            "([place, ready]) => { location.hash = place; "
            "for (const each of document.querySelectorAll(ready)) each.dataset.before = ''; }",
            [self.place, self.ready],
        )
        await stage.page.wait_for_selector("[data-before]", state="detached")  # what was there is not what will be
        await stage.page.wait_for_selector(self.ready)


async def unfold(stage: Stage) -> None:
    """All that is folded."""
    await stage.page.evaluate("for (const each of document.querySelectorAll('main details')) each.open = true")
    await stage.until("document.querySelector('.card .t-added')")
    await stage.page.evaluate("document.querySelector('.scroller').scrollTop = 0")


async def to_answer(stage: Stage) -> None:
    """Where the long answer begins."""
    await stage.page.evaluate("document.querySelector('.prose table').closest('.prose').scrollIntoView()")


async def to_tools(stage: Stage) -> None:
    """To the turn that did most."""
    await stage.page.evaluate("[...document.querySelectorAll('.turn')].at(-1).scrollIntoView()")


async def menu(stage: Stage) -> None:
    await stage.page.click(".tools [aria-label=More]")


async def models(stage: Stage) -> None:
    await stage.page.click("button.models")
    await stage.page.wait_for_selector(".model-list [role=option]")


async def draft(stage: Stage) -> None:
    files: Any = [
        {"name": "slope.png", "mimeType": "image/png", "buffer": png(64, 64)},
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"milk"},
    ]
    await stage.page.set_input_files("input[type=file]", files)
    await stage.page.wait_for_selector(".attached .chip:not(.busy):has-text('notes.txt')")
    await stage.page.locator(".composer textarea").press_sequentially("/mo")
    await stage.page.wait_for_selector(".completion li")


async def drawer(stage: Stage) -> None:
    await stage.page.evaluate("document.body.classList.add('drawer')")


async def search(stage: Stage) -> None:
    await drawer(stage)
    await stage.page.fill(".search input", "invoices")
    await stage.page.wait_for_selector(".hit")


async def keys(stage: Stage) -> None:
    await stage.page.evaluate("document.querySelector(\"[aria-label='Keyboard']\").click()")
    await stage.page.wait_for_selector("dialog[open]")


async def speech(stage: Stage) -> None:
    await stage.page.evaluate("document.querySelector('[aria-label=Speech]').click()")
    await stage.page.wait_for_selector("dialog[open] fieldset")


async def rename(stage: Stage) -> None:
    await stage.choose("Rename")
    await stage.page.wait_for_selector("dialog[open]")


async def enlarge(stage: Stage) -> None:
    await stage.until("document.querySelector('.picture')?.naturalWidth")
    await stage.page.click(".enlarge")
    await stage.page.wait_for_selector("dialog[open]")


async def edit(stage: Stage) -> None:
    await stage.page.locator("[aria-label='Edit and ask again']").last.click(force=True)


async def files(stage: Stage) -> None:
    await stage.until("document.querySelector('.picture')?.naturalWidth")
    await stage.page.click(".final .files .link >> nth=0")
    await stage.page.wait_for_selector(".preview:not([hidden])")


async def edit_persona(stage: Stage) -> None:
    await stage.page.click("[aria-label='Edit support']")
    await stage.page.click(".people .persona summary")


async def set_up_channel(stage: Stage) -> None:
    await stage.page.click("[aria-label^='Set up Webhook']")
    await stage.page.wait_for_selector("form[data-channel=webhook] input")


async def look_at_skill(stage: Stage) -> None:
    await stage.page.click("article[data-skill=weather] summary")
    await stage.page.wait_for_selector("article[data-skill=weather] pre")


async def look_at_task(stage: Stage) -> None:
    await stage.page.click("article.task summary")
    await stage.page.wait_for_selector("article.task .lines li.user")


async def look_at_mcp(stage: Stage) -> None:
    await stage.page.click("article[data-mcp=files] summary")
    await stage.page.wait_for_selector("[data-tool=list]")


async def allow_like(stage: Stage) -> None:
    await stage.page.click(".ahead summary")


async def to_facts(stage: Stage) -> None:
    await stage.page.click(".memory .segments button:has-text('Facts')")
    await stage.page.check(".memory input[type=checkbox]")
    await stage.page.wait_for_selector(".facts .ended")


async def to_versions(stage: Stage) -> None:
    await stage.page.click(".memory .segments button:has-text('Versions')")
    await stage.page.click("[aria-label='What version 2 changed']")
    await stage.page.wait_for_selector(".difference .added")


async def letters(stage: Stage) -> None:
    await stage.page.wait_for_selector("section[aria-label='Given up'] .letter")


async def look_at_import(stage: Stage) -> None:
    """What a home of nanobot would bring, unfolded."""
    page = stage.page
    await page.select_option("#import-kind", "nanobot")
    await page.fill("#import-path", str(FIXTURES / "nanobot"))
    await page.click("text=Look what would come")
    await page.wait_for_selector("[data-import]")
    await page.evaluate("document.querySelectorAll('.import details').forEach((each) => { each.open = true; })")


EVERY = f"#/c/{THREAD}"
VIEWS = (
    View("new", "#/", ".starter"),
    View("conversation", EVERY, ".said.final.last"),
    View("answer", EVERY, ".prose .t-comment", to_answer),
    View("unfolded", EVERY, ".said.final.last", unfold),
    View("menu", "#/c/{files}", ".said.final.last", menu),
    View("picker", "#/c/{files}", ".said.final.last", models),
    View("editing", "#/c/{files}", ".said.final.last", edit),
    View("rename", "#/c/{files}", ".said.final.last", rename),
    View("writing", "#/c/{files}", ".said.final.last", draft),
    View("drawer", "#/c/{files}", ".said.final.last", drawer),
    View("search", "#/", ".starter", search),
    View("keyboard", "#/c/{files}", ".said.final.last", keys),
    View("speech", "#/", ".starter", speech),
    View("files", "#/c/{files}", ".said.final.last", files),
    View("picture", "#/c/{files}", ".said.final.last", enlarge),
    View("question", "#/c/{asking}", ".asking .ahead", allow_like),
    View("waiting", "#/waiting", ".asking .ahead"),
    View("trace", f"#/t/{THREAD}", ".waterfall", to_tools),
    View("usage", "#/usage", ".tile"),
    View("outbox", "#/outbox", ".letter", letters),
    View("channels", "#/settings/channels", "article[data-channel=webhook]"),
    View("channel", "#/settings/channels", "article[data-channel=webhook]", set_up_channel),
    View("models", "#/settings/models", ".preset, .adding"),
    View("settings", "#/settings/all", ".setting"),
    View("access", "#/settings/access", "form.tile"),
    View("manage", "#/settings", ".pages .to"),
    View("behaviour", "#/settings/behaviour", ".setting"),
    View("tools", "#/settings/tools", ".setting"),
    View("server", "#/settings/server", ".setting"),
    View("audit", "#/settings/audit", ".deeds li"),
    View("backup", "#/settings/backup", ".empty h2"),
    View("import", "#/settings/import", ".import form", look_at_import),
    View("health", "#/settings/health", "table"),
    View("doctor", "#/settings/doctor", ".findings [data-verdict]"),
    View("own files", "#/settings/files", ".own-files li"),
    View("memory", "#/settings/memory", ".memory .document"),
    View("facts", "#/settings/memory", ".memory .document", to_facts),
    View("memory versions", "#/settings/memory", ".memory .document", to_versions),
    View("people", "#/settings/people", ".people article"),
    View("personas", "#/settings/personas", "article[data-persona]"),
    View("schedules", "#/settings/schedules", "form.tile select"),
    View("tasks", "#/settings/tasks", "article.task", look_at_task),
    View("persona", "#/settings/personas", "article[data-persona]", edit_persona),
    View("skills", "#/settings/skills", "article[data-skill]"),
    View("skill", "#/settings/skills", "article[data-skill]", look_at_skill),
    View("mcp", "#/settings/mcp", "article[data-mcp=files]", look_at_mcp),
    View("workspace", "#/files", ".entry"),
    View("preview", "#/files//b.txt", ".pane pre"),
    View("missing", "#/c/abcdef", ".empty h2"),
)


async def remember(store: Store, now: float) -> None:
    """Facts of every kind, and a correction of one."""
    said_here, before = FactSource(THREAD, 2, "owner", now - 90_000), "# Memory\n\n## Work\n\n- ships on Fridays\n"
    facts = (
        Fact("f1", "ships on Fridays", said_here, "Work", 4),
        Fact("f2", "The page says that the baker is closed on Mondays", said_here, marked=True),
        Fact("f3", "has three invoices a month", FactSource("f" * 32, 4, "owner", now - 9e6)),
    )
    first = MemoryChange("", "consolidated", facts=facts, documents=(MemoryDocument(MEMORY, before),))
    assert await store.change_memory("owner", first) == 1
    after = MemoryDocument(MEMORY, before.replace("Fridays", "Thursdays"), 1)
    new = Fact("f4", "ships on Thursdays", said_here, "Work", 4)
    second = MemoryChange("owner", "edited", facts=(new,), ended=(FactEnd("f1", now, "f4"),), documents=(after,))
    assert await store.change_memory("owner", second) == 2


@asynccontextmanager
async def furnished(browser: Any, home: Path) -> AsyncIterator[tuple[Stage, tuple[View, ...]]]:
    """Someone who has logged in where each view has something to show, and the views."""
    gate = asyncio.Event()
    channel = BrokenChannel()

    given = {"provider": ScriptedModel(lambda shown: tell(shown, gate)), "tools": (look, send), "channels": (channel,)}
    given["mcp"] = FakeMcp(files=offering(reading("list", "Lists what is there."), described("write", "Writes it.")))
    models = {"good": {"model": "scripted"}, "better": {"model": "scripted"}}
    support = {"prompt": "You answer customers of Acme.", "tools": ["web_*"], "places": ["channel:webhook"]}
    personas = {"support": support, "tutor": {"prompt": "You teach patiently.", "open_to": "user"}}
    servers = {"files": {"command": "files-server", "network": ["api.example.com"]}, "bad": {"comand": "x"}}
    defaults = {"agents": {"defaults": {"model": "good"}}, "models": models, "personas": personas}
    defaults["tools"] = {"mcp_servers": servers}
    async with staged(browser, home, 1440, 900, given=given, **defaults) as stage:
        async with open_records(home) as records:
            assert await records.store.perform("owner", "page:every", kept_here(time.time()))
            await remember(records.store, time.time())
        await stage.page.emulate_media(reduced_motion="reduce")
        await stage.log_in()
        await channel.hear("gone", "away")
        places = {"files": await with_files(stage), "asking": await with_a_question(stage)}
        yield stage, tuple(view._replace(place=view.place.format(**places)) for view in VIEWS)


async def with_files(stage: Stage) -> str:
    """A conversation into which files went and out of which others came."""
    picture: Any = [{"name": "slope.png", "mimeType": "image/png", "buffer": png(640, 360)}]
    await stage.page.set_input_files("input[type=file]", picture)
    await stage.page.wait_for_selector(".attached .chip:not(.busy)")
    await stage.say("write it")
    await stage.answer("write it")
    place = str(stage.page.url.rpartition("/")[2])
    await stage.say("/bg tell me a long story about invoices")
    await stage.page.wait_for_selector("text=Task 1 has begun")
    return place


async def with_a_question(stage: Stage) -> str:
    await stage.page.goto(f"{stage.url}/#/")
    await stage.page.wait_for_selector(".starter")
    await stage.say("send it")
    await stage.page.wait_for_selector(".asking .ahead")
    return str(stage.page.url.rpartition("/")[2])
