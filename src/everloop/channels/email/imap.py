"""A mailbox, over IMAP: just as much of it as it takes to hear of new mails, to read them and to mark them as read."""

import asyncio
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from msgspec import Struct, structs

from ...errors import ChannelDown, ChannelRefused, ProviderError
from ...ports import ByteStream
from ...readings.secrets import without_secrets
from .imap_replies import (
    BadReply,
    ImapContinue,
    ImapCount,
    ImapFetch,
    ImapStatus,
    ImapWords,
    Response,
    Value,
    literal_after,
    read_response,
)
from .secrets import plain_login, spoken_secrets

LONGEST_LINE = 4_000_000  # bytes: a search may find many
PATIENCE = 60.0  # seconds for an answer
SLOWEST = 2**14  # bytes of a mail in a second
HEADERS = 100_000  # bytes that are read of the headers of a mail that is too large
_TAG = "a"


class Selected(Struct, frozen=True):
    """`validity` names this state of a folder: a uid is worth nothing in another. `next` is the next mail's uid."""

    validity: int
    next: int


class MailSize(Struct, frozen=True):
    uid: int
    size: int
    came: float  # seconds: when it was put there (INTERNALDATE)


class ImapError(Exception):
    """The server says no; its text is what it says."""


class Imap:
    """After `greet` and `login`, `select` a folder. All raise ChannelDown when the server is gone, is silent for too
    long or says what it should not, and ImapError when it says no."""

    def __init__(self, stream: ByteStream, host: str, patience: float = PATIENCE) -> None:
        self._stream = stream
        self._host = host
        self._patience = patience
        self._tags = 0
        self._pieces: list[bytes] = []  # of a response that has not come as a whole
        self._most = HEADERS  # bytes of a literal
        self.capabilities: frozenset[str] = frozenset()
        self._is_leaving = False
        self._secrets: tuple[str, ...] = ()
        self.news = 0  # how often it has told of mails

    async def greet(self) -> None:
        async with self._limit():
            first = await self._read()
        if not isinstance(first, ImapStatus) or first.kind != "OK":
            raise ChannelDown(f"{self._host} does not greet as a mail server does; check imap_host and imap_port")
        await self.ask_capabilities()

    async def start_tls(self) -> None:
        if "STARTTLS" not in self.capabilities:
            raise ChannelDown(f"{self._host} offers no STARTTLS, so no password is sent there; try the port 993")
        await self.command("STARTTLS")
        async with self._limit():
            await self._stream.secure()
        await self.ask_capabilities()  # what was said before TLS may have been somebody else's

    async def ask_capabilities(self) -> None:
        self.capabilities = frozenset()
        await self.command("CAPABILITY")

    async def login(self, username: str, password: str) -> None:
        """Raises ChannelRefused."""
        self._secrets = spoken_secrets(username, password)
        try:
            if "AUTH=PLAIN" in self.capabilities:
                await self.command("AUTHENTICATE PLAIN", then=plain_login(username, password))
            else:
                await self.command(f"LOGIN {_quoted(username)} {_quoted(password)}")
        except ImapError as error:
            raise ChannelRefused(
                f"{self._host} does not accept the user name and the password ({error}). Many providers want an app "
                f"password here."
            ) from None
        await self.ask_capabilities()

    async def select(self, folder: str) -> Selected:
        """Raises ImapError when there is none of this name."""
        told = await self.command(f"SELECT {_quoted(_utf7(folder))}")
        codes = dict(each.code.upper().split(" ", 1) for each in _statuses(told) if " " in each.code)
        try:
            return Selected(int(codes["UIDVALIDITY"]), int(codes["UIDNEXT"]))
        except (KeyError, ValueError) as error:
            raise ChannelDown(f"{self._host} does not number its mails (UIDVALIDITY)") from error

    async def search(self, criteria: str) -> list[int]:
        told = await self.command(f"UID SEARCH {criteria}")
        found = [each.words for each in told if isinstance(each, ImapWords) and each.kind == "SEARCH"]
        return sorted({int(word) for words in found for word in words if word.isdecimal() and len(word) < 11})

    async def sizes(self, uids: Sequence[int]) -> list[MailSize]:
        """Of those that are still there, in their order."""
        if not uids:
            return []
        told = await self.command(f"UID FETCH {_set(uids)} (UID RFC822.SIZE INTERNALDATE)")
        found = {}
        for each in (each for each in told if isinstance(each, ImapFetch) and "RFC822.SIZE" in each.values):
            with self._sense():
                size = MailSize(
                    each.number("UID"), each.number("RFC822.SIZE"), _seconds(each.values.get("INTERNALDATE"))
                )
            found[size.uid] = size
        return [found[uid] for uid in uids if uid in found]

    async def fetch(self, uid: int, limit: int) -> bytes | None:
        """A mail, which stays unread; None if it is gone."""
        return await self._fetch(uid, "BODY[]", "BODY.PEEK[]", limit)

    async def fetch_headers(self, uid: int) -> bytes | None:
        """As many as are read of any mail."""
        return await self._fetch(uid, "BODY[HEADER]", f"BODY.PEEK[HEADER]<0.{HEADERS}>", HEADERS)

    async def mark_read(self, uid: int) -> None:
        await self.command(f"UID STORE {uid} +FLAGS.SILENT (\\Seen)")

    async def move(self, uid: int, folder: str) -> None:
        name = _quoted(_utf7(folder))
        if "MOVE" in self.capabilities:
            await self.command(f"UID MOVE {uid} {name}")
            return
        await self.command(f"UID COPY {uid} {name}")
        await self.command(f"UID STORE {uid} +FLAGS.SILENT (\\Deleted)")
        if "UIDPLUS" in self.capabilities:
            await self.command(f"UID EXPUNGE {uid}")

    async def wait_for_news(self, seconds: float) -> None:
        """Until the server tells of mails (IDLE), or so many seconds are over."""
        news, tag = self.news, self._tag()
        async with self._limit():
            await self._stream.write(f"{tag} IDLE\r\n".encode())
            while not isinstance(said := await self._read(), ImapContinue):
                self._hear(said)
        try:
            with self._sense():
                async with asyncio.timeout(seconds):
                    while self.news == news:
                        self._hear(await self._read())
        except TimeoutError:
            pass  # a line that is silent for too long is forgotten by whoever stands in between: it is begun anew
        async with self._limit():
            await self._stream.write(b"DONE\r\n")
            await self._end(tag, [])

    async def noop(self) -> None:
        await self.command("NOOP")

    async def logout(self) -> None:
        self._is_leaving = True
        await self.command("LOGOUT")

    async def command(self, words: str, then: str = "", seconds: float = 0.0) -> list[Response]:
        """Say it, and hear all that is said to it. `then` is what is said when the server asks for it."""
        tag, told = self._tag(), list[Response]()
        async with self._limit(seconds):
            await self._stream.write(f"{tag} {words}\r\n".encode())
            if then:
                while not isinstance(said := await self._read(), ImapContinue):
                    self._hear(said)
                    if isinstance(said, ImapStatus) and said.tag == tag:
                        raise ImapError(said.text)
                await self._stream.write(f"{then}\r\n".encode())
            await self._end(tag, told)
        return told

    async def _fetch(self, uid: int, name: str, asked: str, limit: int) -> bytes | None:
        self._most = limit + 1024
        try:
            told = await self.command(f"UID FETCH {uid} (UID {asked})", seconds=self._patience + limit / SLOWEST)
        finally:
            self._most = HEADERS
        for each in (each for each in told if isinstance(each, ImapFetch) and name in each.values):
            with self._sense():
                if each.number("UID") == uid:
                    return each.data(name)
        return None

    async def _end(self, tag: str, told: list[Response]) -> None:
        while True:
            said = await self._read()
            if isinstance(said, ImapStatus) and said.tag == tag:
                if said.kind != "OK":
                    raise ImapError(said.text)
                told.append(said)
                return
            self._hear(said)
            told.append(said)

    def _hear(self, said: Response) -> None:
        match said:
            case ImapStatus(kind="BYE", text=text) if not self._is_leaving:
                raise ChannelDown(f"{self._host} says farewell: {text}")
            case ImapCount(kind="EXISTS"):
                self.news += 1
            case ImapWords(kind="CAPABILITY", words=words):
                self.capabilities |= {word.upper() for word in words}

    async def _read(self) -> Response:
        """To cancel it loses nothing: what has come of a response is kept."""
        while True:
            if not self._pieces or len(self._pieces) % 2 == 0:
                self._pieces.append(await self._stream.read_line(LONGEST_LINE))
            size = literal_after(self._pieces[-1])
            if size is None:
                pieces, self._pieces = self._pieces, []
                return self._cleaned(read_response(pieces))
            if size > self._most or len(self._pieces) > 100:
                raise BadReply("it says more than was asked for")
            self._pieces.append(await self._stream.read_exactly(size))

    def _cleaned(self, said: Response) -> Response:
        """Without a password that the server repeats."""
        if not isinstance(said, ImapStatus) or not self._secrets:
            return said
        return structs.replace(said, text=without_secrets(said.text, self._secrets))

    def _tag(self) -> str:
        self._tags += 1
        return f"{_TAG}{self._tags}"

    @asynccontextmanager
    async def _limit(self, seconds: float = 0.0) -> AsyncIterator[None]:
        try:
            with self._sense():
                async with asyncio.timeout(seconds or self._patience):
                    yield
        except TimeoutError as error:
            raise ChannelDown(f"{self._host} has not answered within {seconds or self._patience:g} s") from error

    @contextmanager
    def _sense(self) -> Iterator[None]:
        """What goes wrong with a server is ChannelDown."""
        try:
            yield
        except BadReply as error:
            raise ChannelDown(f"{self._host} does not speak IMAP as it should: {error}") from error
        except ProviderError as error:  # what `net` says of a connection
            raise ChannelDown(str(error)) from error


def _quoted(text: str) -> str:
    """A string of a command. Raises ChannelRefused for one that would be more than one line."""
    if any(each in text for each in "\r\n\0"):
        raise ChannelRefused("a user name, a password or a folder has a line break in it; copy it again")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _utf7(name: str) -> str:
    """A folder's name as IMAP writes it (modified UTF-7)."""

    def encode(found: re.Match[str]) -> str:
        if found[0] == "&":
            return "&-"
        return "&" + b64encode(found[0].encode("utf-16-be")).decode().rstrip("=").replace("/", ",") + "-"

    return re.sub(r"&|[^\x20-\x7e]+", encode, name)


def _set(uids: Sequence[int]) -> str:
    return ",".join(map(str, uids))


def _statuses(told: Sequence[Response]) -> list[ImapStatus]:
    return [each for each in told if isinstance(each, ImapStatus)]


def _seconds(value: Value) -> float:
    """A date such as 17-Jul-2026 02:44:25 +0000; 0 for what is none."""
    try:
        text = value.decode().strip().replace("-", " ", 2) if isinstance(value, bytes) else ""
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0


def day_of(seconds: float) -> str:
    """As SEARCH SINCE wants it, in any language of the machine."""
    day = datetime.fromtimestamp(seconds, UTC)
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return f"{day.day}-{months[day.month - 1]}-{day.year}"
