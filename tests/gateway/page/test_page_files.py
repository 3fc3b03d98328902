"""The page's files are plain and keep to themselves: read from the source. Each rule is tried where it fails, too."""

import gzip
import re
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

from everloop.gateway import page
from tests.gateway.guarded import guarded

FILES = sorted(
    path for path in page.FOLDER.iterdir() if path.suffix in (".html", ".css", ".js", ".svg", ".webmanifest", ".png")
)
TEXTS = [path for path in FILES if path.suffix != ".png"]
NAMESPACE = "http://www.w3.org/2000/svg"  # a name, not an address: nobody fetches it
# Whatever turns text into markup or code, or a string into a script.
PARSERS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|setHTML|srcdoc"
    r"|\beval\(|new Function|javascript:|setTimeout\(\s*[\"'`]"
)
REMOTE = re.compile(r"""(?:src|href)\s*=\s*["'](?:https?:)?//|url\(\s*["']?(?:https?:)?//|@import|from\s+["']https?:""")


def remote_in(text: str) -> list[str]:
    return REMOTE.findall(text.replace(NAMESPACE, ""))


def inline_in(text: str) -> list[str]:
    """Scripts and styles in the HTML itself, which the policy would refuse."""
    return re.findall(r"<style|<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=", text)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_nothing_is_parsed_as_markup_and_nothing_comes_from_elsewhere(path: Path):
    text = path.read_text()
    assert (PARSERS.findall(text), remote_in(text)) == ([], [])


@pytest.mark.parametrize(
    "text",
    ["node.innerHTML = text", "new Function(text)", "eval(text)", 'setTimeout("go()", 1)', "document.write(text)"],
)
def test_a_file_that_parses_markup_is_caught(text: str):
    assert len(PARSERS.findall(text)) == 1


@pytest.mark.parametrize(
    "text",
    ['<script src="https://cdn.example/x.js">', "url(//fonts.example/a.woff2)", '@import "a.css"', 'from "https://x"'],
)
def test_a_file_that_fetches_from_elsewhere_is_caught(text: str):
    assert len(remote_in(text)) == 1


def test_the_html_has_no_scripts_or_styles_of_its_own():
    assert inline_in((page.FOLDER / "index.html").read_text()) == []
    assert len(inline_in('<p style="x"><script>go()</script><b onclick="go()">')) == 3


NAMED = re.compile(r'(?:from "\./|import\("\./|styled\("|(?:src|href)="/page/|"src": "/page/)([\w.-]+)"')


def test_every_file_that_is_named_is_there_and_every_file_is_named():
    wanted = {name for path in TEXTS for name in NAMED.findall(path.read_text())}
    assert wanted == {path.name for path in FILES} - {"index.html"}


def modules_of(name: str, known: tuple[str, ...] = ()) -> tuple[str, ...]:
    """A module and all that are loaded with it."""
    for each in re.findall(r'from "\./([\w.-]+)"', (page.FOLDER / name).read_text()):
        known = known if each in known else modules_of(each, (*known, each))
    return known if name in known else (*known, name)


def test_the_modules_of_the_first_load_are_asked_for_at_once():
    named = re.findall(r'modulepreload" href="/page/([\w.-]+)"', (page.FOLDER / "index.html").read_text())
    assert named == sorted(modules_of("app.js"))


def test_the_style_of_a_view_dresses_nothing_of_a_conversation():
    """For it stays when the view is left."""
    texts = [(page.FOLDER / name).read_text() for name in modules_of("app.js")]
    made = [each.split(".") for text in texts for each in re.findall(r'h\(["`]([\w.-]+)', text)]
    assert loose(".back, .pane .back, .said p, a.said { top: 0 }", made) == [".back", ".said p"]
    found = {path.name: loose(path.read_text(), made) for path in page.FOLDER.glob("*.css") if path.name != "style.css"}
    assert {name: selectors for name, selectors in found.items() if selectors} == {}


def loose(css: str, made: list[list[str]]) -> list[str]:
    """The selectors that name nothing which a conversation has not, too."""
    plain = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    rules = [rule for rule in re.findall(r"([^{};]+)\{", plain) if "@" not in rule]
    return [each.strip() for rule in rules for each in rule.split(",") if dresses(each, made)]


def dresses(selector: str, made: list[list[str]]) -> bool:
    parts = re.findall(r"([a-z][\w-]*)?((?:\.[\w-]+)+)", selector)
    worn = [
        any({*classes[1:].split(".")} <= {*each[1:]} and tag in ("", each[0]) for each in made)
        for tag, classes in parts
    ]
    return bool(worn) and all(worn)


async def test_the_first_load_is_small_and_is_kept():
    first = [*modules_of("app.js"), "style.css", "icon.svg", "manifest.webmanifest"]
    async with TestClient(TestServer(guarded(page.routes(), nobody)), auto_decompress=False) as client:
        index = await client.get("/", headers={"Accept-Encoding": "gzip"})
        (version,) = set(re.findall(r'"/page/([0-9a-f]{12})/', gzip.decompress(await index.read()).decode()))
        answers = [await client.get(f"/page/{version}/{name}", headers={"Accept-Encoding": "gzip"}) for name in first]
        size = sum([len(await each.read()) for each in [index, *answers]])
        kept = {each.headers["Cache-Control"] for each in answers}
        plain = await client.get(f"/page/{version}/app.js", headers={"Accept-Encoding": "identity"})
        whole = await plain.read()
        statuses = [(await client.get(path)).status for path in ("/page/000000000000/app.js", "/page/app.js")]
    assert size <= 60_000
    assert (kept, index.headers["Cache-Control"]) == ({page.FOREVER}, "no-cache")
    assert (whole, plain.headers.get("Content-Encoding")) == ((page.FOLDER / "app.js").read_bytes(), None)
    assert statuses == [401, 200]  # what is not there is told nobody


def nobody(token: str) -> None:
    """Whoever comes has not logged in."""


async def test_each_file_is_served_with_a_strict_policy():
    async with TestClient(TestServer(guarded(page.routes(), nobody))) as client:
        for address, kind in [("/", "text/html"), ("/page/app.js", "text/javascript"), ("/page/style.css", "text/css")]:
            answer = await client.get(address)
            told = {name: answer.headers[name] for name in page.HEADERS}
            assert (answer.status, answer.content_type, told) == (200, kind, page.HEADERS)
    assert "unsafe" not in page.CSP
    assert "default-src 'none'" in page.CSP
    assert "media-src blob:;" in page.CSP  # an answer that is read aloud, which the page itself has fetched
    policy = "microphone=(self), camera=(), geolocation=(), display-capture=()"
    assert page.HEADERS["Permissions-Policy"] == policy


async def test_a_file_that_has_not_changed_is_not_sent_again_and_no_other_is_served():
    async with TestClient(TestServer(guarded(page.routes(), nobody))) as client:
        tag = (await client.get("/page/app.js")).headers["ETag"]
        statuses = [
            (await client.get("/page/app.js", headers={"If-None-Match": tag})).status,
            (await client.get("/page/app.js", headers={"If-None-Match": '"another"'})).status,
            (await client.get("/page/__init__.py")).status,
            (await client.get("/page/..%2f__init__.py")).status,
        ]
    assert statuses == [304, 200, 401, 401]


# Contrast, as WCAG 2 works it out.

PAIRS = [
    *((text, ground) for text in ("text", "soft", "faint") for ground in ("ground", "raised", "sunk")),
    *((text, "hover") for text in ("text", "soft")),
    *((text, ground) for text in ("accent", "bad", "warn") for ground in ("ground", "raised")),
    *(("text", ground) for ground in ("accent-ground", "warn-ground", "bad-ground")),
    *(("on-accent", ground) for ground in ("accent", "accent-strong")),
    *((f"c-{name}", "sunk") for name in ("comment", "string", "number", "word")),
    *(("bad", "bad-ground"), ("warn", "warn-ground"), ("soft", "warn-ground")),
]


def colours(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


def contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def themes() -> dict[str, dict[str, str]]:
    css = (page.FOLDER / "style.css").read_text()
    blocks = re.findall(r"(:root[^{]*) \{([^}]*)\}", css)
    return {selector: colours(block) for selector, block in blocks}


def test_text_can_be_read_in_both_themes():
    faint = {
        f"{theme}: {text} on {ground}": round(contrast(found[text], found[ground]), 2)
        for theme, found in themes().items()
        for text, ground in PAIRS
        if contrast(found[text], found[ground]) < 4.5
    }
    assert faint == {}
    assert round(contrast("#767676", "#ffffff"), 2) == 4.54  # the known border, so that the arithmetic is right


def test_dark_by_choice_is_dark_by_system():
    found = themes()
    assert len(found) == 3
    assert found[':root:not([data-theme="light"])'] == found[':root[data-theme="dark"]']
