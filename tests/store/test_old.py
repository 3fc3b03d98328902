"""A database that an everloop of then has left behind goes on today, on SQLite and on PostgreSQL.

old/make.py has made them with the code of the commit that they lie under. Its process was ended by SIGKILL while a tool
ran in one conversation and the model was asked in another; two more were waiting for a person.
"""

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from msgspec import Struct, structs

import everloop
from everloop.app.agent import Agent
from everloop.core.log import Answered, CallReturned, CallStarted, Entry, ModelCalled, ModelSaid, Resumed
from everloop.core.mail import Mail, Outbound
from everloop.core.message import Message, text_of
from everloop.core.thread import Thread
from everloop.core.tool import Effect, ToolSpec
from everloop.gateway.access.secrets import fits_password, hash_of
from everloop.ports import Store
from everloop.ports.conversation import Conversation, Snapshot, Written
from everloop.ports.rows import Known, SpentRow, ThreadRow, TokenRow
from everloop.ports.tools import CallContext, Tool
from everloop.store import schema
from everloop.testing import RecordingChannel, Say, ScriptedModel

from .conftest import Home, PostgresHome, SqliteHome
from .old.make import PASSWORD, TOKEN

THEN = Path(__file__).parent / "old" / "0384fab"
VERSION = 6  # of its schema


class Kept(Struct, frozen=True):
    """One thread, as it lies there and as a model would be shown it."""

    row: ThreadRow
    written: list[Written]
    mail: list[Mail]
    messages: list[Message]


class Told(Struct, frozen=True):
    """All that the code of then read in its database."""

    threads: dict[str, Kept]
    conversations: list[Conversation]
    snapshots: list[Snapshot]
    spent: list[SpentRow]
    tokens: list[TokenRow]
    grants: list[dict[str, Any]]
    unshown: dict[str, list[Outbound]]


class Old(Struct, frozen=True):
    home: Home
    told: Told

    def thread(self, session: str) -> Kept:
        """The one that the session was in."""
        here = [kept for kept in self.told.threads.values() if kept.row.session == session]
        return max(here, key=lambda kept: kept.written[-1].at)


def unpacked(name: str) -> bytes:
    return gzip.decompress((THEN / name).read_bytes())


@pytest.fixture
async def old(home: Home) -> Old:
    if isinstance(home, SqliteHome):
        (home.path / "everloop.db").write_bytes(unpacked("sqlite.gz"))
        return Old(home, msgspec.json.decode(unpacked("sqlite.json.gz"), type=Told))
    assert isinstance(home, PostgresHome)
    await home.load(unpacked("postgres.gz").decode())
    return Old(home, msgspec.json.decode(unpacked("postgres.json.gz"), type=Told))


async def kept(store: Store, id: str) -> Kept:
    opened = await store.open(id)
    thread = Thread(id, opened.first - 1)
    thread.extend(opened.entries)
    row = structs.replace(opened.row, epoch=0)  # which nobody told then
    return Kept(row, await store.history(id), opened.mail, thread.transcript.messages)


async def told(store: Store) -> Told:
    return Told(
        threads={id: await kept(store, id) for id in await store.named("", 100)},
        conversations=[
            structs.replace(each, state="resting", named=False)  # of which nobody was told then
            for each in await store.conversations("owner", archived=True)
        ],
        snapshots=await store.snapshots("owner"),
        spent=await store.spent(),
        tokens=await store.tokens("owner"),
        grants=[msgspec.to_builtins(grant) for grant in await store.grants()],
        unshown={chat: await store.unshown(chat) for chat in ("fake:chat", "slow:chat", "cli:ask")},
    )


async def test_every_conversation_reads_as_it_did_then(old: Old):
    store = await old.home.connect()
    assert len(old.told.threads) == 14
    assert await told(store) == structs.replace(old.told, grants=[])


async def test_one_other_word_would_be_noticed(old: Old):
    store = await old.home.connect()
    await old.home.write("UPDATE entries SET body = replace(body, 'Lunch is at one.', 'Lunch is at two.')")
    assert await told(store) != structs.replace(old.told, grants=[])


async def test_a_grant_of_then_is_asked_for_again(old: Old):
    assert [grant["tool"] for grant in old.told.grants] == ["exec"]
    assert await (await old.home.connect()).grants() == []


async def test_what_the_gateway_and_the_vault_know_is_still_known(old: Old):
    store = await old.home.connect()
    [token] = old.told.tokens
    assert await store.known_token(hash_of(TOKEN)) == Known(token.id, "owner", "owner", ("read", "chat"))
    assert fits_password(PASSWORD, await store.login("owner", "password") or "")
    assert await store.secret("owner", "box") == b"\x00sealed\xff"


async def test_what_was_said_then_is_found_today(old: Old):
    store = await old.home.connect()
    found = await store.search("owner", "lunch is at one")
    assert {old.told.threads[each.thread].row.session for each in found} == {"cli:work", "cli:other"}


async def test_a_copy_of_then_lies_beside_the_file(sqlite_home: SqliteHome):
    path = sqlite_home.path / "everloop.db"
    path.write_bytes(unpacked("sqlite.gz"))
    rows = await sqlite_home.rows("SELECT thread, seq, body FROM entries ORDER BY 1, 2")
    grants = await sqlite_home.rows("SELECT * FROM grants")
    await sqlite_home.connect()
    copy = apsw.Connection(str(path.with_name(f"everloop.db.before-{len(schema.MIGRATIONS)}")))
    assert copy.pragma("user_version") == VERSION
    assert copy.execute("SELECT thread, seq, body FROM entries ORDER BY 1, 2").fetchall() == rows
    assert copy.execute("SELECT * FROM grants").fetchall() == grants != []


class House:
    """Today's everloop over a database of then, with the tools of then; `ran` is what they did."""

    def __init__(self, old: Old, tmp_path: Path) -> None:
        self.old = old
        self.ran: list[tuple[str, dict[str, Any]]] = []
        self.model = ScriptedModel(lambda shown: Say(f"today: {shown.asked}"))
        self.channel = RecordingChannel("fake")
        self.blind = RecordingChannel("slow", once=False)
        self._place = tmp_path
        self._url = old.home.url if isinstance(old.home, PostgresHome) else ""

    def open(self) -> Any:
        settings = {"store": {"url": self._url}} if self._url else {}
        return everloop.open(
            self._place, settings, provider=self.model, tools=self._tools(), channels=[self.channel, self.blind]
        )

    def _tools(self) -> list[Tool]:
        async def run(args: dict[str, Any], context: CallContext) -> str:
            self.ran.append((context.key, args))
            return "done"

        return [
            Tool(ToolSpec("pay", "Pays.", {"type": "object"}, Effect.UNSAFE, guarded=True), run),
            Tool(ToolSpec("charge", "Charges.", {"type": "object"}, Effect.UNSAFE), run),
        ]

    async def since(self, agent: Agent, session: str) -> list[Entry]:
        """What has come to this conversation of then."""
        then = self.old.thread(session)
        return await agent.store.read(then.row.id, then.row.head)

    async def said(self, agent: Agent, session: str) -> bool:
        """Whether its turn is over."""
        return not await agent.store.unfinished(self.old.thread(session).row.id)


@pytest.fixture
def house(old: Old, tmp_path: Path) -> House:
    return House(old, tmp_path)


async def until(true: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(60):
        while not await true():  # noqa: ASYNC110 (what is waited for happens in the store)
            await asyncio.sleep(0.02)


async def test_a_call_that_was_cut_off_is_not_made_again_and_its_turn_goes_on(house: House):
    async with house.open() as agent:
        await agent.finish("cli:cut-tool")
        resumed, more, returned, called, said = await house.since(agent, "cli:cut-tool")
        [shown] = await agent.unshown("cli:cut-tool")
    assert isinstance(resumed, Resumed)
    assert (returned.answer, returned.place, returned.outcome) == (3, 0, "unknown")
    assert text_of(more.parts) == "and then?"  # which had come while the tool ran, and lay in the inbox
    assert isinstance(called, ModelCalled)
    assert said.text == "today: and then?"
    assert shown.text.startswith("today: and then?")
    assert "Not known whether this took effect: charge" in shown.text
    assert house.ran == []


async def test_a_model_that_was_not_heard_to_the_end_is_asked_again(house: House):
    async with house.open() as agent:
        await agent.finish("cli:cut-model")
        resumed, called, said = await house.since(agent, "cli:cut-model")
        unshown = await agent.unshown("cli:cut-model")
    assert isinstance(resumed, Resumed)
    assert isinstance(called, ModelCalled)
    assert isinstance(said, ModelSaid)
    assert [out.text for out in unshown] == ["today: think for long"]


async def test_what_was_asked_then_can_be_allowed_today(house: House):
    async with house.open() as agent:
        [approval] = await agent.approvals("cli:ask")
        await agent.decide(approval.id, allow=True)
        await agent.finish("cli:ask")
        answered, started, returned, called, said = await house.since(agent, "cli:ask")
    assert answered == Answered(3, 0, "allowed", "owner")
    assert started == CallStarted(3, 0)
    assert returned == CallReturned(3, 0, "done")
    assert isinstance(called, ModelCalled)
    assert said.text == "today: pay"
    assert house.ran == [(f"{house.old.thread('cli:ask').row.id}:3:0", {"to": "the baker", "amount": 3})]


async def test_a_question_that_has_expired_meanwhile_is_a_denial(house: House):
    async with house.open() as agent:
        await until(lambda: house.said(agent, "cli:late"))
        answered, returned, called, said = await house.since(agent, "cli:late")
    assert answered == Answered(3, 0, "expired")
    assert returned.outcome == "denied"
    assert isinstance(called, ModelCalled)
    assert said.text == "today: pay late"
    assert house.ran == []


async def test_an_answer_of_then_is_delivered_once(house: House):
    for _ in range(2):
        async with house.open() as agent:
            await house.channel.sent(1)
            await until(lambda store=agent.store: nothing_left(store))
            rows = await house.old.home.rows("SELECT state, attempts FROM outbox WHERE chat = 'fake:chat'")
    assert [(sent.chat, sent.text) for sent in house.channel.sends] == [("fake:chat", "(delayed) done: what is new?")]
    assert rows == [("sent", 1)]


async def nothing_left(store: Store) -> bool:
    return not await store.waiting() and not await store.unshown("fake:chat")


async def test_a_message_whose_receipt_nobody_has_says_that_it_may_be_repeated(house: House):
    async with house.open():
        await house.blind.sent(1)
    texts = [(sent.chat, sent.text) for sent in house.blind.sends]
    assert texts == [("slow:chat", "(may be repeated) (delayed) done: how slow are you?")]
