"""The page's API, as the owner, a token that may only read, another user and nobody."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

import apsw
import msgspec
import pytest
from aiohttp.test_utils import TestClient, TestServer

from everloop import tool
from everloop.app import open_desk
from everloop.app.agent import Agent
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.people import Role
from everloop.core.tool import Effect
from everloop.gateway.access.secrets import hash_of
from everloop.gateway.api.openapi import document
from everloop.gateway.api.routes.table import TABLE
from everloop.gateway.http.repeats import WINDOW
from everloop.ports.channel import Manifest, Traits
from everloop.readings.spans import trace_id
from everloop.testing import Call, RecordingChannel, Say, ScriptedModel, Shown
from tests.channels.dead_letters import give_up
from tests.gateway.api.stand_in import stand_in

OWNER = {"Authorization": "Bearer owner"}
READER = {"Authorization": "Bearer reader"}
USER = {"Authorization": "Bearer user"}


@tool(Effect.UNSAFE, guarded=True)
async def send(to: str) -> str:
    """Send something."""
    return f"sent to {to}"


def lines(shown: Shown) -> Any:
    if "send" in shown.asked and shown.step == 0:
        return Call("send", {"to": "somebody"})
    return Say(f"you said: {shown.asked}")


Client = TestClient[Any, Any]


@asynccontextmanager
async def opened(
    home: Path, settings: Mapping[str, Any] = MappingProxyType({}), **more: Any
) -> AsyncIterator[tuple[Agent, Client]]:
    async with (
        open_desk(home, settings, provider=ScriptedModel(lines), tools=(send,), **more) as agent,
        TestClient(TestServer(stand_in(agent))) as client,
    ):
        yield agent, client


async def get(client: Client, path: str, who: dict[str, str] = OWNER) -> tuple[int, Any]:
    answer = await client.get(path, headers=who)
    return answer.status, await answer.json()


async def post(client: Client, path: str, body: object, who: dict[str, str] = OWNER) -> tuple[int, Any]:
    answer = await client.post(path, json=body, headers=who)
    return answer.status, await answer.json()


async def only_session(client: Client) -> str:
    _, told = await get(client, "/api/sessions")
    (session,) = told["sessions"]
    return str(session["id"])


async def test_a_conversation_can_be_listed_shown_and_found(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await agent.ask("where is the invoice", "page:one")
        id = await only_session(client)
        status, shown = await get(client, f"/api/sessions/{id}")
        _, found = await get(client, "/api/search?q=invoice")
        _, entries = await get(client, f"/api/sessions/{id}/entries")
    assert (status, shown["state"], shown["session"]["session"]) == (200, "resting", "page:one")
    assert {each["thread"] for each in found["found"]} == {id}
    assert [(each["seq"], each["kind"]) for each in entries["entries"]] == [
        (1, "user_said"),
        (2, "model_called"),
        (3, "model_said"),
    ]
    assert (entries["thread"], entries["head"]) == (id, 3)


@pytest.mark.parametrize(
    "query, expected",
    [("", [1, 2, 3]), ("?after=1", [2, 3]), ("?before=3", [1, 2]), ("?limit=1", [3]), ("?before=3&limit=1", [2]),
     ("?before=1", []), ("?after=3", []), ("?before=0", [])],
)  # fmt: skip
async def test_entries_come_in_pages(tmp_path: Path, query: str, expected: list[int]):
    async with opened(tmp_path) as (agent, client):
        await agent.ask("hello", "page:one")
        _, told = await get(client, f"/api/sessions/{await only_session(client)}/entries{query}")
    assert [each["seq"] for each in told["entries"]] == expected


async def test_a_conversation_is_renamed_and_archived(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await agent.ask("hello", "page:one")
        id = await only_session(client)
        renamed = await client.patch(f"/api/sessions/{id}", json={"title": " tax  return "}, headers=OWNER)
        title = (await renamed.json())["session"]["title"]
        await client.patch(f"/api/sessions/{id}", json={"archived": True}, headers=OWNER)
        _, listed = await get(client, "/api/sessions")
        _, everything = await get(client, "/api/sessions?archived=true")
    assert (renamed.status, title) == (200, "tax return")
    assert (listed["sessions"], [each["title"] for each in everything["sessions"]]) == ([], ["tax return"])


@pytest.mark.parametrize("title", ["\x1b]0;EVIL\a", "\x9b2J", "a\u202eb", "a\U000e0041"])
async def test_a_title_cannot_hold_what_steers_a_terminal(tmp_path: Path, title: str):
    async with opened(tmp_path) as (agent, client):
        await agent.ask("hello", "page:one")
        id = await only_session(client)
        refused = await client.patch(f"/api/sessions/{id}", json={"title": title}, headers=OWNER)
        told = (await refused.json())["error"]
        _, listed = await get(client, "/api/sessions")
    assert (refused.status, told["code"]) == (409, "refused")
    assert told["message"].startswith("A title cannot hold control characters or others that are not seen (\\u")
    assert [each["title"] for each in listed["sessions"]] == ["hello"]


@pytest.mark.parametrize("evil", ["\x1b[2J", "\x9b2J", "\u202e", "\u2028", "\u200b"])
async def test_nor_can_the_name_of_a_token_or_a_session(tmp_path: Path, evil: str):
    async with opened(tmp_path) as (agent, client):
        await agent.ask("hello", "page:one")
        id = await only_session(client)
        token, _ = await post(client, "/api/tokens", {"name": f"a{evil}", "scopes": ["read"]})
        session, _ = await post(client, f"/api/sessions/{id}/fork", {"session": f"page:{evil}"})
        _, tokens = await get(client, "/api/tokens")
    assert (token, session, tokens["tokens"]) == (400, 400, [])


async def test_a_fork_goes_on_elsewhere_and_leaves_the_first_one(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await agent.ask("hello", "page:one")
        id = await only_session(client)
        status, moved = await post(client, f"/api/sessions/{id}/fork", {"at": 3, "session": "page:two"})
        first, second = await agent.store.session("page:one"), await agent.store.session("page:two")
        beyond, refused = await post(client, f"/api/sessions/{id}/fork", {"at": 99})
    assert first is not None
    assert second is not None
    assert (status, moved, first.id) == (200, {"thread": second.id, "session": "page:two", "reply": ""}, id)
    assert (beyond, refused["error"]["code"]) == (409, "refused")


async def test_a_user_goes_on_with_their_own_and_takes_no_place_of_another(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await agent.ask("hello", "page:owners")
        await agent.tell(Inbound(Address.parse("page:hers"), "e1", Said(said("hi"), "ada", "page:hers"), "ada"))
        await agent.finish("page:hers")
        _, listed = await get(client, "/api/sessions", USER)
        (mine,) = listed["sessions"]
        wanted = ("page:more", "telegram:42", "page:owners")
        statuses = [(await post(client, f"/api/sessions/{mine['id']}/fork", {"session": s}, USER))[0] for s in wanted]
    assert (mine["session"], statuses) == ("page:hers", [200, 403, 409])


async def test_a_place_of_an_installed_channel_that_is_open_may_be_taken(tmp_path: Path):
    class Open(RecordingChannel):
        manifest = Manifest("board", Traits(open=True))

    async with opened(tmp_path, channels=(Open("board"), RecordingChannel("shut"))) as (agent, client):
        await agent.tell(Inbound(Address.parse("page:hers"), "e1", Said(said("hi"), "ada", "page:hers"), "ada"))
        await agent.finish("page:hers")
        id = (await agent.store.session("page:hers")).id  # type: ignore[union-attr]
        wanted = ("board:1", "shut:1", "unknown:1")
        statuses = [(await post(client, f"/api/sessions/{id}/fork", {"session": s}, USER))[0] for s in wanted]
    assert statuses == [200, 403, 403]


async def test_what_runs_for_long_is_the_owners_to_see(tmp_path: Path):
    async with opened(tmp_path, channels=(RecordingChannel("fake"),)) as (agent, client):
        _, told = await get(client, "/api/tasks")
        others = [(await get(client, "/api/tasks", who))[0] for who in (USER, READER)]
        names = [task.name for task in agent.tasks()]
    assert [task["name"] for task in told["tasks"]] == names
    assert {"lanes mail", "scheduler", "lease fake", "outbox fake", "channel fake"} <= {*names}
    assert told["tasks"][0].keys() == {"name", "state", "since", "restarts", "error"}
    assert others == [403, 403]


async def test_an_edit_is_answered_in_a_branch_and_an_undo_takes_it_back(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await agent.ask("first", "page:one")
        await agent.ask("helo", "page:one")
        id = (await agent.store.session("page:one")).id  # type: ignore[union-attr]
        status, moved = await post(client, f"/api/sessions/{id}/edit", {"content": "hello"})
        await agent.finish("page:one")
        _, edited = await get(client, f"/api/sessions/{moved['thread']}/entries")
        late, refused = await post(client, f"/api/sessions/{id}/undo", {})
        _, undone = await post(client, f"/api/sessions/{moved['thread']}/undo", {})
        await agent.finish("page:one")
        _, left = await get(client, f"/api/sessions/{undone['thread']}/entries")
    said = [each["text"] for each in edited["entries"] if each["kind"] == "model_said"]
    assert (status, said) == (200, ["you said: first", "you said: hello"])
    assert (late, refused["error"]["code"]) == (409, "not_current")
    assert [each["text"] for each in left["entries"] if each["kind"] == "model_said"] == ["you said: first"]


async def test_an_answer_is_asked_for_again(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await agent.ask("hello", "page:one")
        id = await only_session(client)
        _, moved = await post(client, f"/api/sessions/{id}/regenerate", {})
        await agent.finish("page:one")
        _, told = await get(client, f"/api/sessions/{moved['thread']}/entries")
        _, back = await post(client, f"/api/sessions/{id}/resume", {})
    assert moved["thread"] != id
    assert [each["text"] for each in told["entries"] if each["kind"] == "model_said"] == ["you said: hello"]
    assert back["thread"] == id


AGAIN = {"undo": {}, "edit": {"content": "hello"}, "regenerate": {}}


@pytest.mark.parametrize("what", AGAIN)
async def test_whoever_clicks_twice_or_lost_the_answer_is_told_of_the_first(tmp_path: Path, what: str):
    async with opened(tmp_path) as (agent, client):
        for text in ("first", "second", "third"):
            await agent.ask(text, "page:one")
        id = await only_session(client)
        path = f"/api/sessions/{id}/{what}"
        at_once = await asyncio.gather(*[post(client, path, AGAIN[what]) for _ in range(3)])
        await agent.finish("page:one")
        later = [await post(client, path, AGAIN[what]) for _ in range(2)]
        await agent.finish("page:one")
        _, told = await get(client, f"/api/sessions/{at_once[0][1]['thread']}/entries")
        row = await agent.store.session("page:one")
        assert row is not None
        listed = await agent.store.conversations("owner", archived=True)
    assert [*at_once, *later] == [(200, {"thread": row.id, "session": "page:one", "reply": ""})] * 5
    answers = {"undo": [], "edit": ["you said: hello"], "regenerate": ["you said: third"]}[what]
    said = [each["text"] for each in told["entries"] if each["kind"] == "model_said"]
    assert said == ["you said: first", "you said: second", *answers]
    assert {each.id for each in listed} == {id, row.id}


async def test_whoever_goes_back_and_asks_for_the_same_means_it(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await agent.ask("hello", "page:one")
        id = await only_session(client)
        moved = []
        for _ in range(3):
            moved.append((await post(client, f"/api/sessions/{id}/regenerate", {}))[1]["thread"])
            await agent.finish("page:one")
            await post(client, f"/api/sessions/{id}/resume", {})
    assert len({id, *moved}) == 4


async def test_after_a_while_nobody_is_told_of_the_first(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await agent.ask("hello", "page:one")
        id = await only_session(client)
        await post(client, f"/api/sessions/{id}/undo", {})
        await agent.finish("page:one")
        with closing(apsw.Connection(str(tmp_path / "everloop.db"))) as database:
            database.set_busy_timeout(10_000)
            database.execute("UPDATE inbox SET at = at - ?", (WINDOW + 1,))
        status, refused = await post(client, f"/api/sessions/{id}/undo", {})
    assert (status, refused["error"]["code"]) == (409, "not_current")


async def test_the_like_is_allowed_ahead_shown_and_taken_back(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        events = agent.stream("send it", "page:one", attended=True)
        async for event in events:
            if event.name == "approval_asked":
                break
        (asked,) = event.data["approvals"]
        path = f"/api/approvals/{asked.id}"
        refused = [
            await post(client, path, {"allow": allow, "ahead": ahead})
            for allow, ahead in ((True, {"host": "a.example"}), (True, {"argv": "x *"}), (False, {}),
                                 (True, {"ever": 1}), (True, {"seconds": 0}), (True, {"runs": 0}))
        ]  # fmt: skip
        _, nothing = await get(client, "/api/grants")
        assert [each.id for each in await agent.approvals()] == [asked.id]
        _, listed = await get(client, "/api/approvals")
        _, decided = await post(client, path, {"allow": True, "ahead": {"seconds": 600, "runs": 3, "here": True}})
        assert [event.data["answer"].content async for event in events if event.name == "answer"]
        _, known = await get(client, "/api/grants")
        row = await agent.store.session("page:one")
        _, others = await get(client, "/api/grants", USER)
        statuses = [
            (await client.delete(f"/api/grants/{id}", headers=who)).status
            for id, who in ((asked.id, READER), (asked.id, USER), ("ffff", OWNER), (asked.id, OWNER), (asked.id, OWNER))
        ]
        _, gone = await get(client, "/api/grants")
    assert [status for status, _ in refused] == [409, 409, 409, 400, 400, 400]
    assert refused[0][1]["error"]["message"] == (
        "This call of send names no host that could be allowed; nothing was decided."
    )
    assert (nothing, listed["approvals"][0]["choices"]) == ({"grants": []}, ["for", "runs", "here", "any"])
    assert decided == {"id": asked.id, "allow": True, "grant": asked.id}
    (grant,) = known["grants"]
    assert row is not None
    told = {key: grant[key] for key in ("id", "user", "by", "tool", "allowed", "runs", "thread", "call")}
    assert told == {
        "id": asked.id,
        "user": "owner",
        "by": "owner",
        "tool": "send",
        "allowed": f"the same call, only in conversation {row.id}",
        "runs": 3,
        "thread": row.id,
        "call": asked.text,
    }
    assert (others, statuses, gone) == ({"grants": []}, [403, 403, 404, 200, 404], {"grants": []})


async def test_a_question_is_shown_with_its_call_and_answered(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        events = agent.stream("send it", "page:one", attended=True)
        async for event in events:
            if event.name == "approval_asked":
                break
        waiting = await agent.approvals()
        id = (await agent.store.session("page:one")).id  # type: ignore[union-attr]
        _, listed = await get(client, "/api/approvals")
        _, entries = await get(client, f"/api/sessions/{id}/entries")
        _, shown = await get(client, f"/api/sessions/{id}")
        refused, _ = await post(client, f"/api/approvals/{waiting[0].id}", {"allow": True}, READER)
        strange, _ = await post(client, f"/api/approvals/{waiting[0].id}", {"allow": True}, USER)
        status, decided = await post(client, f"/api/approvals/{waiting[0].id}", {"allow": True})
        (answer,) = [event.data["answer"] async for event in events if event.name == "answer"]
        late, _ = await post(client, f"/api/approvals/{waiting[0].id}", {"allow": True})
        _, told = await get(client, f"/api/sessions/{id}/trace")
    (question,) = listed["approvals"]
    assert (question["tool"], question["text"]) == ("send", waiting[0].text)
    assert [each["approval"] for each in entries["entries"] if each["kind"] == "asked"] == [waiting[0].id]
    assert (shown["state"], refused, strange, status, late) == ("waiting", 403, 404, 200, 404)
    assert (decided, answer.content) == ({"id": waiting[0].id, "allow": True, "grant": None}, "you said: send it")
    (turn,) = told["turns"]
    steps = [(span["kind"], span["operation"], span["outcome"]) for span in turn["spans"] if span["kind"] != "delivery"]
    assert steps == [
        ("queue", "queue", ""),
        ("model", "chat scripted", "calls"),
        ("approval", "approval send", "allowed"),
        ("tool", "execute_tool send", "done"),
        ("model", "chat scripted", "stop"),
    ]
    assert (turn["ending"], turn["operation"], turn["trace"]) == ("answered", "invoke_agent everloop", trace_id(id, 1))
    assert all(span["end"] is None or span["end"] >= span["start"] for span in turn["spans"])


async def test_a_trace_goes_from_the_letter_to_its_delivery(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        letter = Said(said("hello"), "owner", "page:one")
        await agent.tell(Inbound(Address.parse("page:one"), "e1", letter))
        await agent.finish("page:one")
        (waiting,) = await agent.unshown("page:one")
        id = await only_session(client)
        _, before = await get(client, f"/api/sessions/{id}/trace")
        await agent.acknowledge([waiting.key])
        _, after = await get(client, f"/api/sessions/{id}/trace")
        arrived = await agent.store.arrivals([1])
    (open_,), (turn,) = before["turns"], after["turns"]
    assert [each["spans"][-1]["outcome"] for each in (open_, turn)] == ["pending", "sent"]
    assert [(span["kind"], span["name"]) for span in turn["spans"]] == [
        ("queue", "waited"),
        ("model", "scripted"),
        ("delivery", "page"),
    ]
    assert (turn["start"], open_["spans"][-1]["end"]) == (arrived[1], None)
    assert turn["spans"][-1]["end"] >= turn["spans"][-1]["start"] >= turn["end"]


async def test_usage_is_told_by_day_and_model(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await agent.ask("hello", "page:one")
        status, told = await get(client, "/api/usage?days=2")
    (row,) = told["rows"]
    assert (status, told["days"], row["model"], row["calls"]) == (200, 2, "scripted", 1)


async def test_settings_are_shown_without_secrets(tmp_path: Path):
    account = {"apiKey": "sk-canary-0123456789", "apiBase": "https://me:secret@models.example.org"}
    settings = {"providers": {"mine": account}, "models": {"fast": {"model": "mine/small"}}}
    async with opened(tmp_path, settings) as (_, client):
        _, told = await get(client, "/api/settings")
        _, models = await get(client, "/api/models")
    shown = told["settings"]["providers"]["accounts"]["mine"]
    assert (shown["api_key"], shown["api_base"]) == ("…", "https://…@models.example.org")
    assert "canary" not in str(told)
    unknown = {"window": None, "answer": None, "input": None, "output": None, "local": False}
    assert models["choices"] == [
        {"name": "auto", "model": "scripted", "default": True, **unknown},
        {"name": "fast", "model": "mine/small", "default": False, **unknown},
    ]


async def test_a_file_is_kept_for_its_owner_and_shown_only_if_that_is_harmless(tmp_path: Path):
    async with opened(tmp_path) as (_, client):
        kept = await client.post("/api/files?name=a.html", data=b"<script>alert(1)</script>", headers=OWNER)
        ref = (await kept.json())["file"]
        mine = await client.get(f"/api/files/{ref}", headers=OWNER)
        strange = await client.get(f"/api/files/{ref}", headers=USER)
        body, told = await mine.read(), (kept.status, mine.status, strange.status)
    assert (told, body) == ((201, 200, 404), b"<script>alert(1)</script>")
    told = (mine.content_type, mine.headers["Content-Disposition"])
    assert told == ("text/plain", "attachment; filename=\"file\"; filename*=UTF-8''file")


async def test_people_are_introduced_paired_changed_and_linked_and_nobody_else_may(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        asked = await agent.store.ask_code("pair", "web:8", "web:8", "e1", 100)
        _, before = await get(client, "/api/users")
        added, anna = await post(client, "/api/users", {"name": "Anna", "account": "web:7"})
        paired, ben = await post(client, "/api/pairings", {"code": asked.code, "role": "guest", "name": "Ben"})
        again, _ = await post(client, "/api/pairings", {"code": asked.code})
        changed = await client.patch("/api/users/web:7", json={"role": "admin", "blocked": True}, headers=OWNER)
        renamed = await client.patch("/api/users/ben", json={"name": "Benno"}, headers=OWNER)  # by the name they had
        owner = await client.patch("/api/users/owner", json={"role": "user"}, headers=OWNER)
        linked, _ = await post(client, "/api/users/web:7/accounts", {"account": "mail:a@b.example"})
        foreign = await client.delete("/api/users/web:8/accounts?account=web:7", headers=OWNER)
        unlinked = await client.delete("/api/users/web:7/accounts?account=web:7", headers=OWNER)
        others = [(await get(client, "/api/users", who))[0] for who in (USER, READER)]
        others += [(await post(client, "/api/users", {"name": "x"}, who))[0] for who in (USER, READER)]
        told, benno = (await unlinked.json())["person"], (await renamed.json())["person"]["name"]
    assert [each["account"] for each in before["waiting"]] == ["web:8"]
    assert (added, paired, again, linked, changed.status, unlinked.status) == (201, 201, 409, 201, 200, 200)
    assert (renamed.status, benno) == (200, "Benno")
    assert (owner.status, foreign.status, others) == (409, 409, [403, 403, 403, 403])
    assert (anna["person"]["role"], ben["person"]["name"]) == ("user", "Ben")
    del told["at"], told["erasing"]
    assert told == {"id": "web:7", "name": "Anna", "role": "admin", "blocked": True, "accounts": ["mail:a@b.example"]}


async def test_what_could_not_be_delivered_is_the_owners_to_send_again_or_drop(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await give_up(agent.store, "one", "two")
        _, found = await get(client, "/api/outbox")
        one, two = (each["id"] for each in found["outbox"])
        others = [(await get(client, "/api/outbox", who))[0] for who in (USER, READER)]
        again = [(await post(client, f"/api/outbox/{one}/retry", {}))[0] for _ in range(2)]
        dropped = [(await client.delete(f"/api/outbox/{two}", headers=OWNER)).status for _ in range(2)]
        stolen = (await client.delete(f"/api/outbox/{two}", headers=USER)).status
        _, left = await get(client, "/api/outbox")
        states = [each.state for each in (await agent.store.deliveries(["k:one", "k:two"])).values()]
    assert [(each["text"], each["state"], each["chat"]) for each in found["outbox"]] == [
        ("one", "failed", "fake:room"),
        ("two", "failed", "fake:room"),
    ]
    assert (others, again, dropped, stolen) == ([403, 403], [200, 404], [200, 404], 403)
    assert ([each["text"] for each in left["outbox"]], states) == (["one"], ["pending", "dropped"])


async def test_a_token_is_made_once_listed_without_its_secret_and_revoked(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        made, new = await post(client, "/api/tokens", {"name": "laptop", "scopes": ["chat", "read"], "days": 1})
        known = await agent.store.known_token(hash_of(new["token"]))
        twice, _ = await post(client, "/api/tokens", {"name": "laptop", "scopes": ["read"]})
        unknown, _ = await post(client, "/api/tokens", {"name": "x", "scopes": ["everything"]})
        _, listed = await get(client, "/api/tokens")
        gone = await client.delete(f"/api/tokens/{new['id']}", headers=OWNER)
        again = await client.delete(f"/api/tokens/{new['id']}", headers=OWNER)
        left = await agent.store.known_token(hash_of(new["token"]))
    assert (made, twice, unknown, gone.status, again.status, left) == (201, 409, 400, 200, 404, None)
    assert known is not None
    assert (known.owner, known.scopes) == ("owner", ("chat", "read"))
    assert [(each["name"], each["scopes"]) for each in listed["tokens"]] == [("laptop", ["chat", "read"])]
    assert new["token"] not in str(listed)


@pytest.mark.parametrize("route", TABLE, ids=lambda route: f"{route.method} {route.path}")
async def test_nobody_is_told_anything(tmp_path: Path, route: Any):
    async with opened(tmp_path) as (_, client):
        address = route.path.replace("{id}", "ab12").replace("{ref}", "file:" + "0" * 64).replace("{name}", "openai")
        answer = await client.request(route.method, address)
        told = await answer.json()
    assert (answer.status, told["error"]["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("route", TABLE, ids=lambda route: f"{route.method} {route.path}")
async def test_a_token_that_may_read_changes_nothing_and_a_user_sees_nothing_of_the_owners(tmp_path: Path, route: Any):
    async with opened(tmp_path) as (agent, client):
        await agent.ask("a secret plan", "page:one")
        id = await only_session(client)
        whose = "owner" if "/users/" in route.path else id
        address = route.path.replace("{id}", whose).replace("{ref}", "file:" + "0" * 64).replace("{name}", "openai")
        asked = f"{address}?q=secret" if "search" in address else address
        reader = await client.request(route.method, asked, headers=READER, json=None if route.body is None else {})
        user = await client.request(route.method, asked, headers=USER, json=None if route.body is None else {})
        seen = await user.text()
    looks = route.permission.scopes == ("read",)
    missing = any(part in route.path for part in ("{ref}", "{name}", "/schedules/{id}"))
    assert reader.status == (403 if not looks else 404 if missing else 200)
    assert "secret" not in seen
    assert route.least < Role.ADMIN or user.status == 403


@pytest.mark.parametrize(
    "path, body, status",
    [
        ("/api/sessions/ab/edit", {}, 400),
        ("/api/sessions/ab/edit", {"content": ""}, 400),
        ("/api/sessions/ab/edit", {"content": "x", "more": 1}, 400),
        ("/api/sessions/ab/edit", [1], 400),
        ("/api/sessions/ab/edit", {"content": "x"}, 404),
        ("/api/sessions/%00/edit", {"content": "x"}, 404),
        ("/api/sessions/..%2f/edit", {"content": "x"}, 404),
        ("/api/sessions/ab/fork", {"session": "no colon"}, 400),
        ("/api/approvals/x", {"allow": "yes"}, 400),
    ],
)
async def test_what_is_not_understood_is_refused_with_a_sentence(tmp_path: Path, path: str, body: Any, status: int):
    async with opened(tmp_path) as (_, client):
        found, told = await post(client, path, body)
    assert (found, set(told["error"])) == (status, {"code", "message"})
    assert told["error"]["message"].endswith((".", "`"))


async def test_a_body_that_a_form_could_send_is_refused(tmp_path: Path):
    async with opened(tmp_path) as (_, client):
        answer = await client.post("/api/sessions/ab/undo", data=b"{}", headers={**OWNER, "Content-Type": "text/plain"})
    assert answer.status == 415


async def test_the_document_names_every_route_and_every_reference_in_it_leads_somewhere(tmp_path: Path):
    async with opened(tmp_path) as (_, client):
        _, told = await get(client, "/openapi.json")
    named = {(method.upper(), path) for path, methods in told["paths"].items() for method in methods}
    assert named == {(route.method, route.path) for route in TABLE}
    references = {text.rpartition("/")[2] for text in _references(told)}
    assert references - set(told["components"]["schemas"]) == set()
    ids = [each["operationId"] for methods in told["paths"].values() for each in methods.values()]
    assert len(ids) == len(set(ids))
    assert msgspec.json.decode(msgspec.json.encode(document(TABLE, told["info"]["version"]))) == told


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(_references, value.values()))
    return set().union(*map(_references, value)) if isinstance(value, list) else set()


async def test_a_guest_is_not_told_which_model_answers(tmp_path: Path):
    async with opened(tmp_path) as (_, client):
        told = [(await get(client, "/api/me", {"Authorization": f"Bearer {who}"}))[1] for who in ("guest", "user")]
    assert [(each["role"], bool(each["model"])) for each in told] == [("guest", False), ("user", True)]


async def test_whoever_asks_is_told_what_they_are_called(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await agent.store.change_person("owner", name="Maria")
        me = (await get(client, "/api/me"))[1]
    assert (me["user"], me["name"]) == ("owner", "Maria")
