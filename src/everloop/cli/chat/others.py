"""Other chats of the same session: they are told of each other, and shown what is said in the other one.

Each chat holds a lock on a file of its own in the home; who is killed lets go of it.
"""

import asyncio
import fcntl
import os
from collections import deque
from contextlib import suppress
from pathlib import Path

from ...app.agent import Agent
from ...core.log import Entry, UserSaid
from ...core.message import Text
from ...errors import StoreError
from ...readings.spoken import spoken
from ..here import end
from .front import Display
from .keyboard import PROMPT, Keyboard

FOLDER = "terminals"
REMEMBERED = 200  # texts
LOOKS = 1.0  # seconds between two looks
HERE_TOO = "(another chat is open in this session: what is said there is shown here, too; -s opens another)"
OPENED = "(another chat has been opened in this session; what is said there is shown here)"
CLOSED = "(the other chat of this session is closed)"


class Presence:
    """`with` one for as long as a chat is open in a session."""

    def __init__(self, home: Path, session: str) -> None:
        self._folder = home / FOLDER
        self._own = self._folder / str(os.getpid())
        self._session = session
        self._file = -1

    def __enter__(self) -> "Presence":
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.open(self._own, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(self._file, self._session.encode())
        return self

    def __exit__(self, *_: object) -> None:
        self._own.unlink(missing_ok=True)
        os.close(self._file)

    def others(self) -> int:
        """How many other chats are open in the session."""
        return sum(each != self._own and self._is_open(each) for each in self._folder.iterdir())

    def _is_open(self, path: Path) -> bool:
        try:
            file = os.open(path, os.O_RDWR)
        except OSError:  # it has just gone
            return False
        try:
            if os.read(file, 1000).decode(errors="replace") != self._session:
                return False
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            path.unlink(missing_ok=True)  # whoever had it was killed
            return False
        finally:
            os.close(file)


class SaidHere:
    """What was said and answered in this chat, and is not told again when it is found in the log."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque(maxlen=REMEMBERED)

    def add(self, text: str) -> None:
        self._texts.append(text.strip())

    def take(self, *texts: str) -> bool:
        """Whether one of these was; each is told once."""
        for text in texts:
            if (found := text.strip()) in self._texts:
                self._texts.remove(found)
                return True
        return False


class OtherChats:
    """`async with` one beside a conversation."""

    def __init__(
        self, home: Path, agent: Agent, session: str, display: Display, keyboard: Keyboard, said: SaidHere
    ) -> None:
        self._said = said
        self._presence = Presence(home, session)
        self._agent = agent
        self._session = session
        self._display = display
        self._keyboard = keyboard
        self._count = 0
        self._thread: str | None = None  # that was looked at; "": there was none yet
        self._seen = 0  # entries of the log that were shown, or were there before
        self._is_told = False  # what the log tells now is the answer to somebody in another chat

    async def __aenter__(self) -> "OtherChats":
        self._presence.__enter__()
        self._count = self._presence.others()
        if self._count:
            self._display.note(HERE_TOO)
        self._looking = asyncio.ensure_future(self._look())
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await end(self._looking)
        finally:
            self._presence.__exit__()

    async def _look(self) -> None:
        while True:
            count = self._presence.others()
            if count != self._count:
                self._display.note(OPENED if count > self._count else CLOSED)
                self._count = count
            with suppress(StoreError):  # of which the next turn tells
                await self._catch_up()
            await asyncio.sleep(LOOKS)

    async def _catch_up(self) -> None:
        """Show what has come since the last look and was not said here; in a turn of this chat, when that is over."""
        if self._keyboard.is_busy:
            return
        row = await self._agent.store.session(self._session)
        if row is None:
            self._thread = self._thread or ""
            return
        is_other = self._thread not in ("", row.id)  # somebody has gone to another conversation, which is told there
        self._seen = self._seen if self._thread == row.id else 0
        entries = await self._agent.store.read(row.id, after=self._seen)
        self._seen, self._thread = self._seen + len(entries), row.id
        if self._count and not is_other and entries:
            for entry in entries:
                self._show(entry)
            self._keyboard.redraw(PROMPT)

    def _show(self, entry: Entry) -> None:
        told = spoken(entry)
        if isinstance(entry, UserSaid):
            texts = [part.text for part in entry.parts if isinstance(part, Text)]
            self._is_told = not (entry.source or self._said.take(*texts))
        if told is None or not self._is_told or not told.text:
            return
        if told.who == "user":
            self._display.note(f"(in another chat) > {told.text}")
        elif told.who == "assistant" and not self._said.take(told.text):
            self._display.answer(told.text)
