"""A mail server in front of the real one, which passes everything on and lets trouble happen at the end of a mail; and
the platform that this is to the conformance suite."""

import asyncio
import ssl
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from itertools import count

from everloop.channels.email import open_channel
from everloop.channels.email.wire import Email
from everloop.net.trusted import TrustedHttp
from everloop.testing import Trouble
from everloop.testing.platform import LONG, Platform
from tests.channels.email.servers import PASSWORD, MailServer, written

PUT_OFF = b"451 4.7.1 Greylisted, please try again in 1 second\r\n"
NOT_NOW = b"451 4.3.0 not now\r\n"

Judge = Callable[[], Trouble | None]
Take = Callable[[bytes], object]
_NUMBERS = count(1)


def text_of(raw: bytes) -> str:
    body = message_from_bytes(raw, policy=default).get_body(("plain",))
    assert body is not None
    return str(body.get_content()).replace("\r\n", "\n").rstrip("\n")


class Relay:
    """`judge` is asked about each mail before the real server has its end. `take` has it when the client has gone, and
    so has heard what became of it."""

    def __init__(self, upstream: int, judge: Judge, take: Take) -> None:
        self._upstream = upstream
        self._judge = judge
        self._take = take
        self._implicit: ssl.SSLContext | None = None
        self.port = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Relay"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._implicit)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        above, below = await asyncio.open_connection("127.0.0.1", self._upstream)
        mails: list[bytes] = []
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await self._pass(reader, writer, above, below, mails)
        writer.close()
        below.close()
        for mail in mails:
            self._take(mail)

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        above: asyncio.StreamReader,
        below: asyncio.StreamWriter,
        mails: list[bytes],
    ) -> None:
        writer.write(await _reply(above.readline))
        while line := await reader.readline():
            if await self._answer(line, writer):
                continue
            below.write(line)
            reply = await _reply(above.readline)
            writer.write(self._completed(line, reply))
            if line.upper().startswith(b"DATA") and reply.startswith(b"354"):
                data = await reader.readuntil(b"\r\n.\r\n")
                mails.append(data.removesuffix(b".\r\n").replace(b"\r\n..", b"\r\n."))
                trouble = self._judge()
                if trouble in (Trouble.DOWN, Trouble.LIMITED):
                    writer.write(PUT_OFF if trouble is Trouble.LIMITED else NOT_NOW)
                    return
                below.write(data)
                reply = await _reply(above.readline)
                if trouble is Trouble.ACK_LOST:
                    return
                writer.write(reply)

    async def _answer(self, line: bytes, writer: asyncio.StreamWriter) -> bool:
        """Whether the real server need not be asked."""
        return False

    def _completed(self, line: bytes, reply: bytes) -> bytes:
        return reply


class SecureRelay(Relay):
    """With TLS from the start, or from STARTTLS on, and a login before anything else."""

    def __init__(self, server: MailServer, security: str) -> None:
        super().__init__(server.ports["smtp"], lambda: None, lambda mail: None)
        self._trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._trust.load_cert_chain(server.folder / "cert.pem", server.folder / "key.pem")
        self._implicit = self._trust if security == "tls" else None
        self._logged_in = False

    async def _answer(self, line: bytes, writer: asyncio.StreamWriter) -> bool:
        word, _, rest = line.decode().strip().partition(" ")
        secure = writer.get_extra_info("ssl_object") is not None
        if word == "EHLO" and not secure:  # the real one wants to hear it once
            writer.write(b"250-here\r\n250 STARTTLS\r\n")
            return True
        if word == "STARTTLS":
            writer.write(b"220 go on\r\n")
            await writer.start_tls(self._trust)
            return True
        if word == "AUTH":
            self._logged_in = secure and PASSWORD.encode() in b64decode(rest.split()[-1])
            writer.write(b"235 in\r\n" if self._logged_in else b"535 5.7.8 no\r\n")
            return True
        if word == "MAIL" and not self._logged_in:
            writer.write(b"530 log in\r\n")
            return True
        return False

    def _completed(self, line: bytes, reply: bytes) -> bytes:
        return reply.replace(b"\r\n250 ", b"\r\n250-AUTH PLAIN\r\n250 ") if line.startswith(b"EHLO") else reply


async def _reply(read_line: Callable[[], Awaitable[bytes]]) -> bytes:
    said = b""
    while line := await read_line():
        said += line
        if line[3:4] != b"-":
            break
    return said


class MailPlatform(Platform):
    """A person with a mail program, a mailbox of the bot's own, and the servers in between."""

    long = "\n\n".join(part.strip() for part in LONG.split("\n\n"))
    resumes = True

    def __init__(self, server: MailServer, http: TrustedHttp) -> None:
        super().__init__()
        self.address = f"bot{next(_NUMBERS)}@agent.example"
        self._files: list[tuple[str, bytes]] = []
        self._server = server
        self._http = http
        self.relay = Relay(server.ports["smtp"], self._next_trouble, self._take)

    def channel(self) -> Email:
        settings = self._server.settings(address=self.address, senders="any", unseen_days=1)
        return open_channel({**settings, "smtp_port": self.relay.port}, self._http)

    def _next_trouble(self) -> Trouble | None:
        return self._troubles[0] if self._troubles else None

    def _take(self, data: bytes) -> None:
        mail = message_from_bytes(data, policy=default)
        self._files += [(str(each.get_filename()), each.get_content().encode()) for each in mail.iter_attachments()]
        self.receive("", text_of(data))

    def files(self) -> Sequence[tuple[str, bytes]]:
        return self._files

    async def say(self, event: str, text: str) -> None:
        await self._post(event, written(text, id=f"{event}@people.example", References="<root@people.example>"))

    async def say_with_file(self, event: str, text: str, name: str, data: bytes) -> bool:
        message = EmailMessage()
        message["From"], message["Message-ID"] = "anna@people.example", f"<{event}@people.example>"
        message.set_content(text)
        message.add_attachment(data, "application", "octet-stream", filename=name)
        await self._post(event, message.as_bytes())
        return True

    async def pass_by(self) -> bool:
        mail = written("I am away", id="away@people.example", Auto_Submitted="auto-replied")
        await asyncio.to_thread(self._server.post, mail, "anna@people.example", self.address)
        return True

    async def _post(self, event: str, mail: bytes) -> None:
        before = self._read()
        await asyncio.to_thread(self._server.post, mail, "anna@people.example", self.address)
        while self._read() <= before:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # a mailbox tells nobody that a mail was marked as read
        if event not in self.acknowledged:
            self.acknowledged.append(event)

    def _read(self) -> int:
        return sum("S" in flags for flags in self._server.flags(self.address).values())
