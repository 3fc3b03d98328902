"""Credentials that people keep for their tools: models know names, and values go where their person said."""

import base64
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web

import everloop
from everloop.core.log import CallReturned
from everloop.core.people import Role
from everloop.errors import AddressRefused, ToolError
from everloop.net.open import OpenHttp
from everloop.ports import BoundHeaders
from everloop.ports.credential import KeptCredential
from everloop.ports.events import AnswerGiven
from everloop.ports.tools import CallContext
from everloop.testing import Call, Line, Say, ScriptedModel, Shown
from everloop.tools.credentials import own_credential
from everloop.tools.redaction import redacted

ANNA, BERT = "web:anna", "web:bert"
ROLES = {ANNA: Role.USER, BERT: Role.USER, "web:ada": Role.ADMIN}
VALUE = "sk-canary-value/1+2"
FETCH, EXEC = "fetch_with_credential", "run_with_credential"


class Echo:
    """A host that tells whoever asks what it was sent, in several ways; or sends them on."""

    def __init__(self) -> None:
        self.url = self.moved_to = ""
        self.sent: list[tuple[str, str]] = []

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        sent = request.headers.get("Authorization", "") or request.headers.get("X-Api-Key", "")
        self.sent.append((request.path, sent))
        if request.path == "/moved":
            return web.Response(status=302, headers={"Location": self.moved_to})
        if request.path == "/picture":
            return web.Response(body=b"\x89PNG\r\n\x1a\n" + sent.encode(), content_type="image/png")
        word = sent.removeprefix("Bearer ")
        told = [word, quote(word, safe=""), base64.b64encode(f"x:{word}".encode()).decode(), word.encode().hex()]
        return web.Response(
            text=f"you sent {' '.join(told)}, and this is the rest", status=500 if request.path == "/broken" else 200
        )


@asynccontextmanager
async def echo() -> AsyncIterator[Echo]:
    host = Echo()
    runner = web.ServerRunner(web.Server(host, access_log=None))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield host
    finally:
        await runner.cleanup()


@pytest.fixture
async def hosts() -> AsyncIterator[tuple[Echo, Echo]]:
    async with echo() as mine, echo() as other:
        yield mine, other


class Once:
    """A model that makes each of these calls in a turn of its own, and remembers what it was shown."""

    def __init__(self, *calls: Call) -> None:
        self.calls = list(calls)
        self.tools: list[tuple[str, ...]] = []
        self.model = ScriptedModel(self.answer)

    def answer(self, shown: Shown) -> Line:
        if shown.step == 0:
            self.tools.append(shown.tools)
        return self.calls.pop(0) if self.calls and shown.step == 0 else Say("done")


@asynccontextmanager
async def opened(home: Path, model: Once, *hosts: Echo) -> AsyncIterator[everloop.Agent]:
    settings = {"tools": {"web": {"allow": [host.url.removeprefix("http://") for host in hosts]}}}
    async with everloop.open(home, settings, provider=model.model, roles=ROLES) as agent:
        yield agent


async def results(agent: everloop.Agent, session: str) -> list[tuple[str, str]]:
    row = await agent.store.session(session)
    assert row is not None
    return [(each.outcome, each.text) for each in await agent.store.read(row.id) if isinstance(each, CallReturned)]


def fetch(url: str, name: str = "api") -> Call:
    return Call(FETCH, {"url": url, "credential": name})


async def test_a_credential_is_sent_to_its_host_and_comes_back_in_no_form(tmp_path: Path, hosts: tuple[Echo, Echo]):
    mine, _ = hosts
    model = Once(*(fetch(f"{mine.url}{path}") for path in ("/a", "/broken", "/picture")))
    async with opened(tmp_path, model, mine) as agent:
        await agent.credentials.keep(ANNA, "api", KeptCredential(VALUE, (mine.url,)))
        sessions = [f"{ANNA}:{n}" for n in range(3)]
        for session in sessions:
            await agent.user(ANNA).ask("read it", session)
        told = [(await results(agent, session))[0] for session in sessions]
    assert mine.sent == [(path, f"Bearer {VALUE}") for path in ("/a", "/broken", "/picture")]
    source = f'<untrusted source="{mine.url}/a">'
    # Of base64 the first letters are those of what stands before it.
    assert told[0] == ("done", f"{source}\nyou sent [api] [api] eDp[api] [api], and this is the rest\n</untrusted>")
    assert told[1] == ("failed", f"Error: {mine.url}/broken answers 500")
    assert "holds a credential, and is left out" in told[2][1]


async def test_no_part_of_it_is_shown_wherever_a_model_begins_to_read(tmp_path: Path, hosts: tuple[Echo, Echo]):
    mine, _ = hosts
    middle = len("you sent ") + len(VALUE) // 2
    model = Once(Call(FETCH, {"url": f"{mine.url}/a", "credential": "api", "offset": middle}))
    async with opened(tmp_path, model, mine) as agent:
        await agent.credentials.keep(ANNA, "api", KeptCredential(VALUE, (mine.url,)))
        await agent.user(ANNA).ask("read it", ANNA)
        ((outcome, told),) = await results(agent, ANNA)
    assert (outcome, "and this is the rest" in told) == ("done", True)
    assert [n for n in range(len(VALUE) - 5) if VALUE[n : n + 6] in told] == []


async def test_it_is_sent_nowhere_else_whoever_talks_the_model_into_it(tmp_path: Path, hosts: tuple[Echo, Echo]):
    mine, other = hosts
    mine.moved_to = f"{other.url}/stolen"
    port = mine.url.rpartition(":")[2]
    tricks = [
        f"{other.url}/a",
        f"{mine.url}@{other.url.removeprefix('http://')}/a",
        f"{other.url}/#{mine.url}",
        f"{other.url}\\@{mine.url.removeprefix('http://')}/a",
        f"http://localhost:{port}/a",
        f"https://127.0.0.1:{port}/a",
        f"http://127.0.0.1.:{port}/a",
        f"http://0x7f000001:{port}/a",
    ]
    model = Once(*(fetch(url) for url in (*tricks, f"{mine.url}/moved")))
    async with opened(tmp_path, model, mine, other) as agent:
        await agent.credentials.keep(ANNA, "api", KeptCredential(VALUE, (mine.url,)))
        sessions = [f"{ANNA}:{n}" for n in range(len(tricks) + 1)]
        for session in sessions:
            await agent.user(ANNA).ask("read it", session)
        told = [(await results(agent, session))[0] for session in sessions]
    assert {outcome for outcome, _ in told[:-1]} == {"failed"}
    assert other.sent == [("/stolen", "")]  # where the redirect led, without it
    assert {path for path, _ in mine.sent} <= {"/moved", "/a"}
    assert ("/moved", f"Bearer {VALUE}") in mine.sent


async def test_headers_without_a_bond_would_reach_the_other_host(hosts: tuple[Echo, Echo]):
    """The control: the bond is what keeps it from there, not the hosts of this test."""
    mine, other = hosts
    http = OpenHttp([host.url.removeprefix("http://") for host in hosts])
    async with http.request("GET", f"{other.url}/a", headers={"X-Api-Key": VALUE}):
        pass
    with pytest.raises(AddressRefused, match="is not among"):
        async with http.request("GET", f"{other.url}/b", bound=BoundHeaders({"X-Api-Key": VALUE}, (mine.url,))):
            pass
    assert other.sent == [("/a", VALUE)]


async def test_only_whose_it_is_has_it_and_only_where_they_are_alone(tmp_path: Path, hosts: tuple[Echo, Echo]):
    mine, _ = hosts
    call = fetch(f"{mine.url}/a")
    model = Once(call, call, call, call)
    async with opened(tmp_path, model, mine) as agent:
        await agent.credentials.keep(ANNA, "api", KeptCredential(VALUE, (mine.url,)))
        await agent.user(BERT).ask("read it")  # who keeps none
        await agent.credentials.keep(BERT, "other", KeptCredential(VALUE[::-1], (mine.url,)))
        await agent.user(BERT).ask("read it")  # who keeps another
        await agent.user(ANNA).ask("read it")
        told = [await results(agent, session) for session in (BERT, ANNA)]
    names = [tuple(name for name in tools if "credential" in name) for tools in model.tools]
    assert names == [(), (FETCH, EXEC), (FETCH, EXEC)]
    assert [text for _, text in told[0]][1] == "Error: the user keeps no credential 'api'"
    assert "you sent" not in str(told[0])
    assert told[1][0][0] == "done"
    assert mine.sent == [("/a", f"Bearer {VALUE}")]


async def test_in_a_group_nobodys_is_used_also_where_the_tool_is_called_all_the_same():
    class Box:
        async def take_out(self, person: str, name: str) -> KeptCredential:
            return KeptCredential(f"{person}:{name}", ("https://a.example",))

    for elsewhere in ({"whose": "chat:discord/7"}, {"owner": BERT}, {"owner": "chat:discord/7"}):
        with pytest.raises(ToolError, match="only in a conversation of its person's own"):
            await own_credential(Box(), CallContext("k", "t", "s", ANNA, **elsewhere), "api")
    assert (await own_credential(Box(), CallContext("k", "t", "s", ANNA), "api")).value == f"{ANNA}:api"


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_command_has_it_where_its_person_said_so_and_a_person_is_asked_first(tmp_path: Path, allowed: bool):
    command = 'echo "$MY_API" $(echo -n $MY_API | rev) $(echo -n "$MY_API" | base64); env | grep -ci proxy; echo end'
    model = Once(Call(EXEC, {"command": command, "credential": "my-api"}))
    async with opened(tmp_path, model) as agent:
        origins = () if allowed else ("https://api.example.com",)
        await agent.credentials.keep(ANNA, "my-api", KeptCredential(VALUE, origins, commands=allowed))
        asked = []
        async for event in agent.user(ANNA).stream("run it", attended=True):
            for waiting in await agent.approvals(ANNA):
                assert not isinstance(event, AnswerGiven)
                asked.append(waiting.tool)
                await agent.decide(waiting.id, True)
        told = await results(agent, ANNA)
    assert asked == [EXEC]
    if allowed:
        assert told == [("done", "[exit code 0]\n[my-api] [my-api] [my-api]\n0\nend\n")]
    else:
        assert told[0] == (
            "failed",
            "Error: my-api is not for commands: its person can allow that in the page, or anew",
        )


@pytest.mark.skipif(sys.platform != "linux", reason="the loader of another system tells nothing of itself")
async def test_no_name_of_a_credential_tells_anything_to_what_builds_the_sandbox(tmp_path: Path):
    """The loader does what LD_DEBUG says, as what LD_PRELOAD says: whatever is started with it tells of itself."""
    model = Once(Call(EXEC, {"command": 'echo "$LD_DEBUG" ${EVERLOOP_CREDENTIAL-none}', "credential": "LD_DEBUG"}))
    async with opened(tmp_path, model) as agent:
        await agent.credentials.keep(ANNA, "LD_DEBUG", KeptCredential("libs,files", commands=True))
        async for _ in agent.user(ANNA).stream("run it", attended=True):
            for waiting in await agent.approvals(ANNA):
                await agent.decide(waiting.id, True)
        ((outcome, told),) = await results(agent, ANNA)
    assert (outcome, told.splitlines()[:2]) == ("done", ["[exit code 0]", "[LD_DEBUG] none"])
    assert "initialize program: " in told  # the loader of the command has told of itself
    assert [line for line in told.splitlines() if "bwrap" in line] == []


async def test_what_a_command_has_written_into_a_file_is_read_without_it(tmp_path: Path):
    model = Once(Call("read_file", {"path": "note.txt"}), Call("read_file", {"path": "note.txt"}))
    async with opened(tmp_path, model) as agent:
        folder = tmp_path / "people" / quote(ANNA, safe="") / "workspace"
        folder.mkdir(parents=True)
        (folder / "note.txt").write_text("the word is wonderful-word")
        await agent.user(ANNA).ask("read it")
        await agent.credentials.keep(ANNA, "api", KeptCredential("wonderful-word", ("api.example.com",)))
        await agent.user(ANNA).ask("read it")
        told = await results(agent, ANNA)
    assert ["wonderful-word" in text for _, text in told] == [True, False]
    assert "the word is [api]" in told[1][1]


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        (KeptCredential("short", ("a.example",)), "a credential is one line of 8 to 8,000 plain characters"),
        (KeptCredential("two\nlines of it", ("a.example",)), "a credential is one line"),
        (KeptCredential(VALUE), "say for which hosts it is"),
        (KeptCredential(VALUE, ("*",)), "'*' is"),
        (KeptCredential(VALUE, ("*.example.com",)), "'*.example.com' is"),
        (KeptCredential(VALUE, ("a.example/path",)), "'a.example/path' is more than a host"),
        (KeptCredential(VALUE, ("ftp://a.example",)), "'ftp://a.example' is no host"),
        (KeptCredential(VALUE, ("a.example",), header="Host"), "a credential goes in a header such as"),
        (KeptCredential(VALUE, ("a.example",), header="X: y\r\nZ"), "a credential goes in a header such as"),
    ],
)
async def test_what_would_not_be_safe_is_not_kept(tmp_path: Path, kept: KeptCredential, why: str):
    async with opened(tmp_path, Once()) as agent:
        with pytest.raises(everloop.EverloopError) as refused:
            await agent.credentials.keep(ANNA, "api", kept)
        assert (str(refused.value)[: len(why)], await agent.credentials.rows(ANNA)) == (why, [])
    assert VALUE not in str(refused.value)


def test_a_value_is_taken_out_in_every_form_and_other_text_stays():
    forms: list[Any] = [VALUE, quote(VALUE, safe=""), VALUE.replace("/", r"\/"), VALUE.encode().hex(), VALUE[::-1]]
    forms += [base64.b64encode(b"a" * n + VALUE.encode()).decode() for n in range(3)]
    text = redacted("; ".join(["plain", *forms, "text"]), {"api": VALUE})
    assert (text.startswith("plain; "), text.endswith("; text"), text.count("[api]")) == (True, True, len(forms))
    assert "canary" not in text
    assert redacted("nothing of it", {"api": VALUE}) == "nothing of it"
