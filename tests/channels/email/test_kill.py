"""The gateway is killed where it hurts: when the mail server has taken an answer and nobody knows, and when a mail is
committed and not yet marked as read. Every mail is answered, and an answer that came twice has one Message-ID."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from everloop.testing import Say, Shown, Trouble
from everloop.testing.model_server import ModelServer
from tests.channels.email.relay import Relay
from tests.channels.email.servers import MailServer, written
from tests.cli.person import Person
from tests.cli.test_gateway_command import Running, start
from tests.ports import free_port

ADDRESS = "killed@agent.example"
MAILS = 6
KILLED_AT_SENDING = {1, 3}  # the mail, counted from 0, whose answer is taken when the gateway is killed
KILLED_AT_MARKING = {1, 4}


def lines(shown: Shown) -> list[object]:
    return [Say(f"you said {shown.asked.split()[0]}")]


class Marks:
    """An IMAP server in front of the real one; `stop` is asked at each mail that is to be marked as read."""

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self.port = 0
        self.marked = 0
        self.killed: set[int] = set()
        self.gateway: Running | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Marks"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        above, below = await asyncio.open_connection("127.0.0.1", self._upstream)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pass(reader, below, watched=True))
            group.create_task(self._pass(above, writer, watched=False))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, watched: bool) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                if watched and b"\\Seen" in data and self._kills():
                    break
                writer.write(data)
        writer.close()

    def _kills(self) -> bool:
        number, self.marked = self.marked, self.marked + 1
        if number not in KILLED_AT_MARKING - self.killed or self.gateway is None:
            return False
        self.killed.add(number)
        self.gateway.process.kill()
        return True


@pytest.fixture
async def person(tmp_path: Path) -> AsyncIterator[Person]:
    async with ModelServer(lines) as model:
        person = Person(tmp_path, model)
        yield person
        await person.leave()


@pytest.mark.timeout(100)
async def test_no_mail_is_lost_and_a_double_has_the_same_id_however_the_gateway_is_killed(
    server: MailServer, person: Person
):
    marks, ended = Marks(server.ports["imap"]), set[int]()
    answered: Counter[str] = Counter()
    texts: dict[str, str] = {}

    def judge() -> Trouble | None:
        number = len(answered)
        if number in KILLED_AT_SENDING - ended and marks.gateway:
            ended.add(number)
            marks.gateway.process.kill()
            return Trouble.ACK_LOST
        return None

    def take(mail: bytes) -> None:
        text = mail.decode()
        id = re.findall(r"(?m)^Message-ID: (\S+)", text)[0]
        answered[id] += 1
        texts[id] = re.findall(r"you said (\d+)", text)[0]
        tell.set()

    tell = asyncio.Event()

    async def has(answers: int, sends: int = 0) -> None:
        while len(answered) < answers or answered.total() < sends:
            tell.clear()
            await tell.wait()

    relay = Relay(server.ports["smtp"], judge, take)
    async with marks.open(), relay.open():
        settings = {**server.settings(address=ADDRESS, senders="any", unseen_days=1), "smtp_port": relay.port}
        for name, value in {**settings, "imap_port": marks.port}.items():
            person.environment[f"EVERLOOP_CHANNELS__EMAIL__{name.upper()}"] = str(value)
        person.environment["EVERLOOP_USERS__STRANGERS"] = "guest"
        port = free_port()
        marks.gateway = await start(person, port)

        async def keep_alive() -> None:
            while True:
                assert marks.gateway
                await marks.gateway.process.wait()
                marks.gateway = await start(person, port)

        keeping = asyncio.ensure_future(keep_alive())
        try:
            for number in range(MAILS):
                mail = written(f"{number}", sender=f"user{number}@people.example", id=f"{number}@people.example")
                await asyncio.to_thread(server.post, mail, f"user{number}@people.example", ADDRESS)
                await has(number + 1)
            await has(MAILS, MAILS + len(KILLED_AT_SENDING))
            while [*server.flags(ADDRESS).values()].count("S") < MAILS:  # noqa: ASYNC110  each is marked beside its answer
                await asyncio.sleep(0.01)
        finally:
            keeping.cancel()
        await marks.gateway.stop()
    assert sorted(texts.values()) == [str(number) for number in range(MAILS)]
    assert (marks.killed, ended) == (KILLED_AT_MARKING, KILLED_AT_SENDING)
    assert sorted(answered.values()) == [1, 1, 1, 1, 2, 2]
    flags = server.flags(ADDRESS)
    assert [flags[name] for name in flags if "S" in flags[name]] == ["S"] * MAILS
