"""Handing a mail to a server, over SMTP (RFC 5321). A server that says 4xx may take it later, one that says 5xx never
will; one that says nothing after the end of a mail may have taken it."""

import asyncio
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from ...errors import ChannelDown, ChannelRefused, HostHungUp, ProviderError, Undeliverable
from ...ports import ByteStream
from ...readings.secrets import without_secrets
from .secrets import plain_login, spoken_secrets
from .writing import Envelope

PATIENCE = 20.0  # seconds for an answer
ACCEPTING = 15.0  # seconds for the answer after the end of a mail; RFC 5321 has 600, the outbox 60 for all of it
SLOWEST = 2**14  # bytes of a mail in a second
LONGEST_LINE = 4096
MOST_LINES = 200
_LINE = re.compile(rb"([2-5][0-9][0-9])(?:([ -])(.*))?", re.DOTALL)
_WAIT = re.compile(r"(?:in|after|for|wait) (\d{1,6}) ?(s\b|sec|min|hour)", re.IGNORECASE)
_UNITS = {"s": 1.0, "sec": 1.0, "min": 60.0, "hour": 3600.0}


class SmtpReply(Struct, frozen=True):
    code: int
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.code} {' '.join(self.lines)}"[:300]

    @property
    def retry_after(self) -> float | None:
        """The seconds that a server asks for in words, as those do that put strangers off at first (greylisting)."""
        found = _WAIT.search(str(self))
        return float(found[1]) * _UNITS[found[2].lower()] if found else None


class Smtp:
    """After `greet` and `login`, `offer` a mail and `finish` it."""

    def __init__(self, stream: ByteStream, host: str, patience: float = PATIENCE, accepting: float = ACCEPTING) -> None:
        self._stream = stream
        self._host = host
        self._patience = patience
        self._accepting = accepting
        self._secrets: tuple[str, ...] = ()
        self.extensions: dict[str, str] = {}

    @property
    def largest(self) -> int:
        """The bytes of the largest mail that it takes, as far as it says so; 0: any."""
        said = self.extensions.get("SIZE", "")
        return int(said) if said.isdecimal() and len(said) < 16 else 0

    async def greet(self, name: str) -> None:
        """`name` is what we call ourselves: our domain."""
        async with self._limit():
            reply = await self._read()
        if reply.code != 220:
            raise self._down(reply)
        await self._hello(name)

    async def start_tls(self, name: str) -> None:
        if "STARTTLS" not in self.extensions:
            raise ChannelDown(f"{self._host} offers no STARTTLS, so no password is sent there; try the port 465")
        reply = await self._ask("STARTTLS")
        if reply.code != 220:
            raise self._down(reply)
        async with self._limit():
            await self._stream.secure()
        await self._hello(name)  # what was said before TLS may have been somebody else's

    async def login(self, username: str, password: str) -> None:
        """Raises ChannelRefused. A server that asks for no login is told none."""
        self._secrets = spoken_secrets(username, password)
        offered = self.extensions.get("AUTH", "").upper().split()
        if "PLAIN" in offered:
            reply = await self._ask(f"AUTH PLAIN {plain_login(username, password)}")
        elif "LOGIN" in offered:
            reply = await self._ask("AUTH LOGIN")
            for word in (username, password):
                reply = await self._ask(_coded(word)) if reply.code == 334 else reply
        elif offered:
            raise ChannelRefused(f"{self._host} offers no login with a password ({' '.join(offered)[:100]})")
        else:
            return
        if reply.code in (530, 534, 535, 538, 501):
            raise ChannelRefused(
                f"{self._host} does not accept the user name and the password ({reply}). Many providers want an app "
                f"password here."
            )
        if reply.code != 235:
            raise self._down(reply)

    async def offer(self, mail: Envelope) -> None:
        """All of it but its end: nothing is taken yet. Raises ChannelDown and Undeliverable."""
        largest = self.largest
        if largest and len(mail.data) > largest:
            raise Undeliverable(f"{self._host} takes no mail of more than {largest} bytes")
        wide = not mail.recipient.isascii() or not mail.sender.isascii()
        if wide and "SMTPUTF8" not in self.extensions:
            raise Undeliverable(f"{self._host} cannot send to addresses with letters beyond ASCII (SMTPUTF8)")
        size = f" SIZE={len(mail.data)}" if "SIZE" in self.extensions else ""
        await self._expect(f"MAIL FROM:<{mail.sender}>{size}{' SMTPUTF8' if wide else ''}", for_good=(552, 555))
        await self._expect(f"RCPT TO:<{mail.recipient}>")
        await self._expect("DATA", code=354)
        data = stuffed(mail.data)
        async with self._limit(self._patience + len(data) / SLOWEST):
            await self._stream.write(data)

    async def finish(self) -> None:
        """Its end, after which it is taken. Raises ChannelDown and Undeliverable; HostHungUp when it may have been."""
        try:
            async with asyncio.timeout(self._accepting):
                await self._stream.write(b".\r\n")
                reply = await self._read()
        except (TimeoutError, ProviderError, ChannelDown) as error:
            raise HostHungUp(f"{self._host} has not said whether it takes the mail.") from error
        if reply.code >= 500:
            raise Undeliverable(f"{self._host} refuses the mail: {reply}")
        if reply.code >= 300:
            raise self._down(reply)

    async def quit(self) -> None:
        """What is answered to it nobody waits for: until a mail's receipt is written, it may be sent twice."""
        async with self._limit():
            await self._stream.write(b"QUIT\r\n")

    async def _expect(self, words: str, code: int = 250, for_good: tuple[int, ...] = ()) -> None:
        """`for_good` are those of the 5xx that are about this mail; without them all are."""
        reply = await self._ask(words)
        if reply.code in (code, 251):
            return
        if reply.code >= 500 and (not for_good or reply.code in for_good):
            raise Undeliverable(f"{self._host} refuses the mail: {reply}")
        raise self._down(reply)

    async def _hello(self, name: str) -> None:
        reply = await self._ask(f"EHLO {name}")
        if reply.code != 250:
            raise self._down(reply)
        words = [line.replace("=", " ", 1).upper().split(None, 1) for line in reply.lines[1:] if line.strip()]
        self.extensions = {each[0]: each[1] if len(each) > 1 else "" for each in words}

    async def _ask(self, words: str) -> SmtpReply:
        async with self._limit():
            await self._stream.write(f"{words}\r\n".encode())
            return await self._read()

    async def _read(self) -> SmtpReply:
        lines: list[str] = []
        while len(lines) < MOST_LINES:
            found = _LINE.fullmatch((await self._stream.read_line(LONGEST_LINE)).rstrip(b"\r\n"))
            if not found:
                break
            text = without_secrets((found[3] or b"").decode("utf-8", "replace"), self._secrets)
            lines.append("".join(each if each.isprintable() else " " for each in text))
            if found[2] != b"-":
                return SmtpReply(int(found[1]), tuple(lines))
        raise ChannelDown(f"{self._host} does not speak SMTP as it should; check smtp_host and smtp_port")

    def _down(self, reply: SmtpReply) -> ChannelDown:
        return ChannelDown(f"{self._host} says {reply}", reply.retry_after)

    @asynccontextmanager
    async def _limit(self, seconds: float = 0.0) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(seconds or self._patience):
                yield
        except TimeoutError as error:
            raise ChannelDown(f"{self._host} has not answered within {seconds or self._patience:g} s") from error
        except ProviderError as error:
            raise ChannelDown(str(error)) from error


def stuffed(data: bytes) -> bytes:
    """As it is said within DATA: lines end with CR LF alone, and one that begins with a dot has another before it
    (dot-stuffing), so that nothing in a mail ends it (SMTP smuggling)."""
    lines = re.split(rb"\r\n|\r|\n", data.removesuffix(b"\r\n"))
    return b"".join((b"." + line if line.startswith(b".") else line) + b"\r\n" for line in lines)


def _coded(text: str) -> str:
    return b64encode(text.encode()).decode()
