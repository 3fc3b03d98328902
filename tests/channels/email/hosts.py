"""Mail servers that say what they are told to, for what a real one does not say on request."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress

Reads, Writes = asyncio.StreamReader, asyncio.StreamWriter


@asynccontextmanager
async def hosting(serve: Callable[[Reads, Writes], Awaitable[None]]) -> AsyncIterator[int]:
    """The port of a host that speaks so."""

    async def contain(reader: Reads, writer: Writes) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(contain, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


class SmtpHost:
    """Answers each command by its first word, `dot` is the end of a mail. "" closes the connection, None is silence."""

    def __init__(self, answers: Mapping[str, str | None] = {}) -> None:
        usual = {"greeting": "220 hi", "EHLO": "250-here\r\n250-AUTH PLAIN LOGIN\r\n250 SIZE 1000000", "AUTH": "235 in"}
        usual |= {"MAIL": "250 ok", "RCPT": "250 ok", "DATA": "354 go on", "dot": "250 taken", "QUIT": "221 bye"}
        self._answers: dict[str, str | None] = {**usual, **answers}
        self.heard: list[str] = []
        self.mails: list[bytes] = []

    async def serve(self, reader: Reads, writer: Writes) -> None:
        if not await self._say(writer, "greeting"):
            return
        while line := (await reader.readline()).decode().strip():
            self.heard.append(line)
            word = line.split()[0].upper()
            if not await self._say(writer, word if word in self._answers else line):
                return
            if word == "DATA" and (self._answers["DATA"] or "").startswith("354"):
                self.mails.append(await reader.readuntil(b"\r\n.\r\n"))
                if not await self._say(writer, "dot"):
                    return

    async def _say(self, writer: Writes, word: str) -> bool:
        answer = self._answers.get(word, "500 what?")
        if answer is None:
            await asyncio.Event().wait()
        writer.write(f"{answer}\r\n".encode() if answer else b"")
        return bool(answer)


class ImapHost:
    """Answers each command, without its tag, with lines; `TAG` in them is the tag. What is not said is OK."""

    def __init__(self, answers: Mapping[str, bytes] = {}, capabilities: str = "IMAP4rev1") -> None:
        self._answers = {
            "CAPABILITY": f"* CAPABILITY {capabilities}\r\nTAG OK done\r\n".encode(),
            "SELECT": b"* OK [UIDVALIDITY 7] x\r\n* OK [UIDNEXT 1] x\r\nTAG OK done\r\n",
            **answers,
        }
        self.greeting = b"* OK hello\r\n"
        self.heard: list[str] = []
        self.heard_of = asyncio.Event()

    async def serve(self, reader: Reads, writer: Writes) -> None:
        writer.write(self.greeting)
        while line := (await reader.readline()).decode().strip():
            tag, _, words = line.partition(" ")
            self.heard.append(words)
            self.heard_of.set()
            known = [answer for begin, answer in self._answers.items() if words.startswith(begin)]
            writer.write((known[0] if known else b"TAG OK done\r\n").replace(b"TAG", tag.encode()))
