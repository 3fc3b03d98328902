"""What only the PostgreSQL store promises: about a server that is elsewhere and may go away."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import asyncpg
import pytest
from tests.ports import free_port

from everloop.core.log import ModelCalled, UserSaid
from everloop.core.mail import Address, Inbound, Mail, Outbound, Said, Stop
from everloop.core.message import said
from everloop.core.prompt import Usage
from everloop.errors import Fenced, StoreError, StoreUnreachable
from everloop.ports import Store
from everloop.ports.jobs import Job
from everloop.ports.rows import Commit, Lease, Spent
from everloop.store.postgres import PostgresStore
from everloop.store.server import ANSWER_SECONDS

CHAT = Address("test", "chat")
PASSWORD = "hunter2"


class Home(Protocol):
    url: str

    async def connect(self) -> Store: ...
    async def lose(self, store: Store) -> None: ...
    async def write(self, statement: str) -> None: ...
    async def rows(self, query: str) -> list[tuple[Any, ...]]: ...


def letter(event: str) -> Inbound:
    return Inbound(CHAT, event, Said(said("hello"), "ann"))


async def cut(home: Home) -> None:
    """End every connection that a store has, as a restart of the server would."""
    await home.write("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'everloop'")


class Proxy:
    """A way to the server that can be cut after the server has worked and before we hear of it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._writers: list[asyncio.StreamWriter] = []
        self.deaf = False  # what the server says no longer arrives, and whoever calls anew hears nothing at all
        self.answers = 0  # so many still arrive
        self.heard = asyncio.Event()  # the server has answered while we were deaf
        self.piece = 65536  # how much arrives at once
        self.context: ssl.SSLContext | None = None  # encrypts what is said to us

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        if self.deaf:
            return
        if self.context:
            await reader.readexactly(8)  # the wish to speak in secret
            writer.write(b"S")
            await writer.start_tls(self.context)
        up, down = await asyncio.open_unix_connection(self._path)
        self._writers.append(down)
        await asyncio.gather(self._carry(reader, down), self._carry(up, writer, back=True))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, back: bool = False) -> None:
        while data := await reader.read(65536):
            if back and self.deaf and not self.answers:
                self.heard.set()
                continue
            self.answers -= back and self.deaf
            for at in range(0, len(data), self.piece):
                writer.write(data[at : at + self.piece])
                await asyncio.sleep(0)  # else all of it would have arrived before anybody read
        writer.close()

    def cut(self) -> None:
        for writer in self._writers:
            writer.close()
        self._writers = []


@asynccontextmanager
async def proxied(home: Home) -> AsyncIterator[tuple[Proxy, str]]:
    query = home.url.partition("?")[2]
    values = dict(part.split("=", 1) for part in query.split("&"))
    proxy = Proxy(f"{values['host']}/.s.PGSQL.5432")
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield proxy, f"postgresql://postgres:{PASSWORD}@127.0.0.1:{port}/postgres?search_path={values['search_path']}"
    finally:
        proxy.cut()
        server.close()


async def test_after_a_cut_the_next_use_connects_again(postgres_home: Home):
    store = await postgres_home.connect()
    await store.receive(letter("e1"))
    await cut(postgres_home)
    for event in ("e2", "e3", "e4"):
        try:
            await store.receive(letter(event))
        except StoreUnreachable:
            continue
    receipt = await store.receive(letter("e1"))
    assert receipt.fresh is False
    assert (await store.receive(letter("e5"))).fresh is True
    assert await store.ended(receipt.id) == 0


async def test_a_write_whose_fate_is_unknown_is_not_acknowledged_and_not_repeated(postgres_home: Home):
    """The server has committed, we do not know: trying again is fenced, and reading again shows what happened."""
    async with proxied(postgres_home) as (proxy, url):
        store = await PostgresStore.connect(url)
        receipt = await store.receive(letter("e1"))
        lease = Lease(receipt.thread)
        entry = UserSaid(said("hello"), "ann", "test:chat", receipt.id)
        lease.epoch = (await store.commit(lease, Commit([entry], absorbed=[receipt.id]))).epoch
        lease.head = 1
        commit = Commit([ModelCalled("m")], outbox=[Outbound("k", CHAT, "hi")])
        proxy.deaf = True
        writing = asyncio.ensure_future(store.commit(lease, commit))
        await proxy.heard.wait()
        proxy.cut()
        with pytest.raises(StoreUnreachable, match="does not answer") as caught:
            await writing
        assert PASSWORD not in str(caught.value)
        proxy.deaf = False
        with pytest.raises(Fenced):
            await store.commit(lease, commit)
        opened = await store.open(receipt.thread)
        assert opened.entries == [entry, ModelCalled("m")]
        assert (await store.commit(Lease(receipt.thread, 0, opened.row.head), Commit())).epoch == 2
        assert await postgres_home.rows("SELECT count(*) FROM outbox") == [(1,)]
        await store.close()


async def lose_the_answer_of_a_claim(store: PostgresStore, proxy: Proxy) -> None:
    await lose_the_answer(store.due("test"), proxy)


async def lose_the_answer(claim: Coroutine[Any, Any, object], proxy: Proxy) -> None:
    proxy.deaf = True
    claiming = asyncio.ensure_future(claim)
    await proxy.heard.wait()
    proxy.cut()
    with pytest.raises(StoreUnreachable):
        await claiming
    proxy.deaf = False


async def queue_one(store: Store) -> None:
    await store.due("test")  # from now on the server knows the statement, and is asked nothing else
    receipt = await store.receive(letter("e1"))
    await store.commit(Lease(receipt.thread), Commit(outbox=[Outbound("k", CHAT, "hi")]))


async def test_a_claim_whose_answer_was_lost_is_found_again_and_counts_as_no_attempt(postgres_home: Home):
    """It was not sent, so nobody is told that it may be repeated."""
    async with proxied(postgres_home) as (proxy, url):
        store, other = await PostgresStore.connect(url), await postgres_home.connect()
        await queue_one(store)
        await lose_the_answer_of_a_claim(store, proxy)
        assert await postgres_home.rows("SELECT state, holder FROM outbox") == [("sending", store.holder)]
        assert await other.due("test") == []
        [row] = await store.due("test")
        assert (row.outbound.key, row.attempts, row.unsure) == ("k", 1, False)
        assert (await store.due("test"), await other.due("test")) == ([], [])
        await store.close()


async def test_a_claim_whose_answer_was_lost_is_another_s_when_they_have_taken_it_over(postgres_home: Home):
    """Nobody else can know that it was not sent."""
    async with proxied(postgres_home) as (proxy, url):
        store, other = await PostgresStore.connect(url), await postgres_home.connect()
        await queue_one(store)
        await lose_the_answer_of_a_claim(store, proxy)
        await postgres_home.write("UPDATE outbox SET due = 0")
        [row] = await other.due("test")
        assert (row.attempts, row.unsure) == (2, True)
        assert await store.due("test") == []
        await store.close()


async def test_a_claim_that_was_heard_of_and_ran_out_may_have_been_sent(postgres_home: Home):
    store = await postgres_home.connect()
    await queue_one(store)
    assert [row.unsure for row in await store.due("test")] == [False]
    await postgres_home.write("UPDATE outbox SET due = 0")
    assert [(row.attempts, row.unsure) for row in await store.due("test")] == [(2, True)]


@pytest.mark.parametrize("taken", [False, True], ids=["nobody-else", "another-has-taken-it-over"])
async def test_a_claim_on_a_job_whose_answer_was_lost_is_found_again(postgres_home: Home, taken: bool):
    async with proxied(postgres_home) as (proxy, url):
        store, other = await PostgresStore.connect(url), await postgres_home.connect()
        await store.add_job(Job("first", "tidy", 1.0))
        assert len(await store.claim_jobs({"tidy"}, 30.0)) == 1  # from now on the server knows the statements
        await store.add_job(Job("second", "tidy", 1.0))
        assert (await store.is_due({"tidy"}), await store.is_due({"other"})) == (True, False)
        proxy.answers = 1  # to the look at what is there
        await lose_the_answer(store.claim_jobs({"tidy"}, 30.0), proxy)
        claimed = await postgres_home.rows("SELECT state, attempts, holder FROM jobs WHERE id = 'second'")
        assert claimed == [("working", 1, store.holder)]
        assert (await store.is_due({"tidy"}), await other.claim_jobs({"tidy"}, 30.0)) == (True, [])
        if taken:
            await postgres_home.write("UPDATE jobs SET until = 0 WHERE id = 'second'")
            assert [(row.job.id, row.attempts) for row in await other.claim_jobs({"tidy"}, 30.0)] == [("second", 2)]
        mine = await store.claim_jobs({"tidy"}, 30.0)
        assert [(row.job.id, row.attempts) for row in mine] == ([] if taken else [("second", 1)])
        assert [await store.settle_job(row, "done") for row in mine] == [True] * len(mine)
        assert await store.is_due({"tidy"}) is taken  # what another is at may have been left
        await store.close()


async def test_a_letter_whose_fate_is_unknown_is_one_letter_when_it_comes_again(postgres_home: Home):
    async with proxied(postgres_home) as (proxy, url):
        store = await PostgresStore.connect(url)
        first = await store.receive(letter("e1"))
        proxy.deaf = True
        writing = asyncio.ensure_future(store.receive(letter("e2")))
        await proxy.heard.wait()
        proxy.cut()
        with pytest.raises(StoreUnreachable):
            await writing
        proxy.deaf = False
        again = await store.receive(letter("e2"))
        assert again.fresh is False
        assert [m.id for m in await store.mail(first.thread)] == [first.id, again.id]
        await store.close()


async def test_a_server_that_is_not_there_is_named_without_the_password():
    port = free_port()
    with pytest.raises(StoreUnreachable, match=f"127.0.0.1:{port}/agents does not answer") as caught:
        await PostgresStore.connect(f"postgresql://ann:{PASSWORD}@127.0.0.1:{port}/agents")
    assert PASSWORD not in str(caught.value)


async def test_a_url_without_a_sensible_port_is_explained():
    with pytest.raises(StoreUnreachable, match="looks like"):
        await PostgresStore.connect(f"postgresql://ann:{PASSWORD}@localhost:nine/agents")


@pytest.mark.parametrize("password", ["hun/ter2", "hun#ter2", "hun?ter2", "hunter2:hunter2/x"])
async def test_a_url_that_cannot_be_read_is_explained_without_the_password(password: str):
    with pytest.raises(StoreUnreachable, match="%2F") as caught:
        await PostgresStore.connect(f"postgresql://ann:{password}@127.0.0.1:5432/agents")
    said_in_full = f"{caught.value} {caught.value.__cause__} {caught.value.__context__}"
    assert "hun" not in said_in_full


async def test_a_database_that_does_not_exist_is_named(postgres_home: Home):
    base, _, query = postgres_home.url.partition("?")
    with pytest.raises(StoreUnreachable, match="nowhere"):
        await PostgresStore.connect(f"{base}_nowhere?{query}")


async def test_commits_are_synchronous_and_statements_end(postgres_home: Home):
    store: Any = await postgres_home.connect()
    writing = await store._server.connect()
    for connection in (writing, store._pool):
        assert await connection.fetchval("SHOW synchronous_commit") == "on"
        assert await connection.fetchval("SHOW statement_timeout") == "8s"
    await writing.close()


async def test_writes_that_meet_share_a_round_trip(postgres_home: Home):
    store: Any = await postgres_home.connect()
    await store.receive(letter("first"))
    before = store._writer.batches
    store.running = 100
    await asyncio.gather(*(store.receive(letter(str(n))) for n in range(100)))
    assert store._writer.batches == before + 1


async def test_what_comes_while_one_is_written_shares_the_next_round_trip(postgres_home: Home):
    store: Any = await postgres_home.connect()
    await store.receive(letter("first"))
    before = store._writer.batches
    await asyncio.gather(*(store.receive(letter(str(n))) for n in range(100)))
    assert store._writer.batches == before + 2
    assert await postgres_home.rows("SELECT count(*) FROM inbox") == [(101,)]


async def test_an_answer_that_comes_in_pieces_is_read_as_a_whole(postgres_home: Home):
    async with proxied(postgres_home) as (proxy, url):
        store = await PostgresStore.connect(url)
        first = await store.receive(letter("e1"))
        proxy.piece = 1
        store.running = 3
        again, second, third = await asyncio.gather(*(store.receive(letter(event)) for event in ("e1", "e2", "e3")))
        assert (again.id, again.fresh, again.thread) == (first.id, False, first.thread)
        assert (second.fresh, third.fresh, third.thread) == (True, True, first.thread)
        await store.close()


@pytest.fixture
def context(tmp_path: Path) -> ssl.SSLContext:
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    files = tmp_path / "certificate.pem", tmp_path / "key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=server"]
    subprocess.run([*make, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*files)
    return context


async def test_the_same_is_written_over_an_encrypted_connection(postgres_home: Home, context: ssl.SSLContext):
    async with proxied(postgres_home) as (proxy, url):
        proxy.context = context
        store = await PostgresStore.connect(f"{url}&sslmode=require")
        receipts = await asyncio.gather(*(store.receive(letter(str(n))) for n in range(300)))
        assert [receipt.fresh for receipt in receipts] == [True] * 300
        assert len(await store.mail(receipts[0].thread)) == 300
        await store.close()


async def test_an_encrypted_answer_is_read_as_it_was_written_also_from_several_records(
    postgres_home: Home, context: ssl.SSLContext
):
    """TLS fills one buffer from record after record, so it has to be given the buffer itself and no copy."""
    async with proxied(postgres_home) as (proxy, url):
        proxy.context = context
        store = await PostgresStore.connect(f"{url}&sslmode=require")
        command = Inbound(CHAT, "e1", Said(said("/help"), "ann"))
        text = "“long” \n" * 20_000
        assert (await store.command(command, "none", text)).reply == text
        assert (await store.receive(command)).reply == text
        await store.close()


async def test_a_long_reply_is_read_as_it_was_written(postgres_home: Home):
    """One that is longer than what is read at once, with characters of more than a byte."""
    store = await postgres_home.connect()
    command = Inbound(CHAT, "e1", Said(said("/help"), "ann"))
    text = "“long” \n" * 50_000
    assert (await store.command(command, "none", text)).reply == text
    assert (await store.receive(command)).reply == text


async def test_a_server_that_has_been_silent_for_too_long_is_given_up(postgres_home: Home):
    async with proxied(postgres_home) as (proxy, url):
        store: Any = await PostgresStore.connect(url)
        await store.receive(letter("e1"))
        wire = store._writer._sender.wire
        wire._look_at_the_clock()  # nobody waits
        proxy.deaf = True
        writing = asyncio.ensure_future(store.receive(letter("e2")))
        await proxy.heard.wait()
        wire._look_at_the_clock()  # not yet
        assert not writing.done()
        wire._asked -= ANSWER_SECONDS
        wire._look_at_the_clock()
        with pytest.raises(StoreUnreachable, match=r"does not answer \(TimeoutError\)"):
            await writing
        proxy.deaf = False
        assert (await store.receive(letter("e2"))).fresh is False
        await store.close()


async def test_whoever_is_cancelled_while_waiting_does_not_take_the_write_back(postgres_home: Home):
    store = await postgres_home.connect()
    thread = (await store.receive(letter("e1"))).thread
    writing = [asyncio.ensure_future(store.receive(letter(event))) for event in ("e2", "e3")]
    await asyncio.sleep(0)
    for task in writing:
        task.cancel()
    await asyncio.wait(writing)
    await store.receive(letter("e4"))
    assert len(await store.mail(thread)) == 4


@pytest.mark.parametrize("asked", [False, True])
async def test_whoever_ends_all_tasks_leaves_nobody_waiting(postgres_home: Home, asked: bool):
    """Before it connects, and while the server is asked: it is told, and what comes next is answered with its own."""
    async with proxied(postgres_home) as (proxy, url):
        store: Any = await PostgresStore.connect(url)
        writing = asyncio.ensure_future(store.receive(letter("e1")))
        await asyncio.sleep(0)
        [task] = [task for task in asyncio.all_tasks() if task.get_name() == "everloop-batch"]
        while asked and store._writer._sender.wire is None:  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0)
        proxy.deaf = asked
        if asked:
            await proxy.heard.wait()
        task.cancel()
        proxy.deaf = False
        async with asyncio.timeout(60):
            with pytest.raises(StoreError, match="broken off"):
                await writing
            again, other = await store.receive(letter("e1")), await store.receive(letter("e2"))
            assert (again.fresh, other.fresh, again.thread) == (not asked, True, other.thread)
            await store.close()


async def test_closing_writes_what_is_queued(postgres_home: Home):
    store = await PostgresStore.connect(postgres_home.url)
    writing = [asyncio.ensure_future(store.receive(letter(str(n)))) for n in range(300)]
    await asyncio.sleep(0)
    await store.close()
    assert [receipt.fresh for receipt in await asyncio.gather(*writing)] == [True] * 300


async def test_what_the_database_refuses_fails_alone(postgres_home: Home):
    """A model's name with a zero byte cannot be kept; the letter and the commit beside it can."""
    store = await postgres_home.connect()
    first, second = [await store.receive(Inbound(Address("test", c), c, Said(said("x"), "ann"))) for c in "ab"]
    impossible = [Spent(1, "m\x00", Usage())]
    results = await asyncio.gather(
        store.commit(Lease(first.thread), Commit([ModelCalled("m")], usage=impossible)),
        store.commit(Lease(second.thread), Commit([ModelCalled("m")])),
        store.receive(letter("a\x00b")),
        store.receive(letter("e1")),
        return_exceptions=True,
    )
    assert [isinstance(result, StoreError) for result in results] == [True, False, True, False]
    assert await store.read(first.thread) == []
    assert await store.read(second.thread) == [ModelCalled("m")]


async def blocked(home: Home, task: "asyncio.Future[Any]") -> None:
    """Until a store is seen to wait for a lock; or it has gone on, which it must not."""
    waits = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'everloop' AND wait_event_type = 'Lock'"
    while not await home.rows(waits):
        assert not task.done()


@asynccontextmanager
async def about_to_post(home: Home, thread: str, kind: str) -> AsyncIterator[None]:
    """Someone has written a letter, and commits it when the block ends."""
    connection = await asyncpg.connect(home.url)
    try:
        async with connection.transaction():
            await connection.execute(f"SELECT 1 FROM threads WHERE id = '{thread}' FOR UPDATE")
            await connection.execute(
                "INSERT INTO inbox(channel, event, thread, owner, kind, body, at) "
                f"VALUES('test', 'late', '{thread}', 'owner', '{kind}', '{{\"type\":\"stop\",\"by\":\"ann\"}}', 0)"
            )
            yield
    finally:
        await connection.close()


async def test_a_start_waits_for_a_stop_that_is_about_to_commit_and_then_does_not_happen(postgres_home: Home):
    store = await postgres_home.connect()
    thread = (await store.receive(letter("e1"))).thread
    async with about_to_post(postgres_home, thread, "stop"):
        start = asyncio.ensure_future(store.commit(Lease(thread), Commit(starts=[ModelCalled("m")])))
        await blocked(postgres_home, start)
    assert (await start).started is False
    assert await store.read(thread) == []


async def test_a_release_waits_for_a_letter_that_is_about_to_commit_and_then_keeps_the_lease(postgres_home: Home):
    store = await postgres_home.connect()
    first = await store.receive(letter("e1"))
    async with about_to_post(postgres_home, first.thread, "said"):
        release = asyncio.ensure_future(
            store.commit(Lease(first.thread), Commit(absorbed=[first.id], release=True, state="resting", seen=first.id))
        )
        await blocked(postgres_home, release)
    assert (await release).released is False


async def test_a_stop_waits_for_a_letter_that_is_about_to_commit_and_is_numbered_after_it(postgres_home: Home):
    store = await postgres_home.connect()
    thread = (await store.receive(letter("e1"))).thread
    async with about_to_post(postgres_home, thread, "said"):
        stop = asyncio.ensure_future(store.command(Inbound(CHAT, "e2", Stop("bob")), "stop", "Stopped."))
        await blocked(postgres_home, stop)
    assert (await stop).reply == "Stopped."
    assert [m.letter for m in await store.mail(thread)] == [letter("e1").letter, Stop("ann"), Stop("bob")]


async def test_whoever_gives_up_waiting_is_free_at_once_even_if_the_server_is_silent(postgres_home: Home):
    """A lease that cannot be renewed must be known as lost in time, not when the network has given up."""
    async with proxied(postgres_home) as (proxy, url):
        store = await PostgresStore.connect(url)
        await store.waiting()
        await store.renew([Lease("t", 1)])
        proxy.deaf = True
        asking = asyncio.ensure_future(store.renew([Lease("t", 1)]))
        await proxy.heard.wait()
        asking.cancel()
        done, _ = await asyncio.wait([asking], timeout=60)
        assert done
        assert asking.cancelled()
        proxy.deaf = False
        assert await store.waiting() == []
        await store.close()


async def test_letters_become_visible_in_the_order_of_their_numbers(postgres_home: Home):
    """A reader that has seen a letter never finds an older one later: `seen` would step over it."""
    stores = [await postgres_home.connect() for _ in range(3)]
    thread = (await stores[0].receive(letter("first"))).thread
    done = asyncio.Event()

    async def watch() -> list[list[Mail]]:
        looks = []
        while not done.is_set():
            looks.append(await stores[2].mail(thread))
        return looks

    watching = asyncio.ensure_future(watch())
    for round in range(20):
        await asyncio.gather(*(stores[n % 2].receive(letter(f"{round}/{n}")) for n in range(10)))
    done.set()
    looks = await watching
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(looks))


async def test_batches_of_two_processes_over_the_same_threads_do_not_wait_in_a_ring(postgres_home: Home):
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before = await postgres_home.rows(deadlocks)
    stores = [await postgres_home.connect(), await postgres_home.connect()]
    places = [Address("test", str(n)) for n in range(30)]
    for round in range(10):
        order = places if round % 2 else places[::-1]
        await asyncio.gather(
            *(stores[0].receive(Inbound(a, f"{round}/x/{a}", Said(said("x"), "ann"))) for a in order),
            *(stores[1].receive(Inbound(a, f"{round}/y/{a}", Said(said("y"), "ann"))) for a in reversed(order)),
        )
    for store in stores:
        await postgres_home.lose(store)  # a session that ends hands in its statistics
    assert await postgres_home.rows(deadlocks) == before
    assert await postgres_home.rows("SELECT count(*) FROM inbox") == [(600,)]


async def test_a_closed_store_says_so(postgres_home: Home):
    store = await PostgresStore.connect(postgres_home.url)
    await store.close()
    with pytest.raises(StoreError):
        await store.receive(letter("e1"))
    with pytest.raises(StoreError):
        await store.waiting()
