"""The conversation of a rich chat, once the house is open: what joins it with what is drawn."""

import argparse
import asyncio
import os
import time
from pathlib import Path

import msgspec

from ...app import open_for_owner
from ...app.agent import Agent
from ...core.message import Part, said
from ...core.people import OWNER
from ...errors import ToolError
from ...readings.commands import command_in
from ..chat_view.theme import theme_named
from ..here import Enclosed, Here
from .attention import Attention
from .display import ChatDisplay
from .keyboard import PROMPT
from .known_names import KnownNames
from .mentions import mentioned
from .opening import RichChat, end_all
from .others import OtherChats, SaidHere
from .plain import check_whose
from .status_line import StatusLine
from .talk import chat as talk

MOST_OUTPUT = 8_000  # letters of a command's output that join the conversation
HINTS = " · Enter steers, Tab queues, Esc stops"
HINTED = 60  # cells of a line that has room for them
ASKED = " · Enter answers, Ctrl-C stops"


async def talk_in(chat: RichChat, arguments: argparse.Namespace, session: str) -> int:
    """Raises what `open` raises, and KeyboardInterrupt for whoever leaves by Ctrl-C."""
    async with open_for_owner() as agent:
        if arguments.resume and (row := await agent.latest()):
            session = row.session
        await check_whose(agent, session)
        conversation = RichConversation(chat, agent, session)
        preapproved = arguments.approvals == "allow"
        attended = arguments.approvals in (None, "ask")
        here = Here(
            agent,
            session,
            conversation.display,
            chat.keyboard,
            attended,
            preapproved,
            set(),
            conversation.enclose,
        )
        conversation.begin()
        try:
            for sentence in agent.unused:
                conversation.display.note(sentence)
            said = conversation.said
            async with OtherChats(chat.home, agent, session, conversation.display, chat.keyboard, said):
                return await talk(here, None)
        finally:
            await conversation.end()


class RichConversation:
    """The Backend of a rich chat: what joins its drawn parts and an open house."""

    def __init__(self, chat: RichChat, agent: Agent, session: str) -> None:
        self._chat = chat
        self._agent = agent
        self._session = session
        window, wanted = chat.window, agent.terminal
        self._folders = (agent.workspace_folder, Path.cwd())
        theme = theme_named(wanted.theme, not os.environ.get("NO_COLOR"))
        self._status = StatusLine(agent, session, window.touch)
        self.said = SaidHere()
        self.display = ChatDisplay(
            window.print,
            window.touch,
            self._columns,
            theme,
            read=self._read,
            seen=self._status.follow,
            answered=self.said.add,
        )
        self._attention = Attention(window.steer, wanted.notify, wanted.title)
        self.sources = KnownNames(agent, session).sources(self._folders)
        self._beside: list[Part] = []  # what commands have said since the last message
        self._began = 0.0

    def begin(self) -> None:
        self._chat.join(self)
        self._attention.open()
        self._attention.entitle("everloop")
        self._status.look_soon()

    async def end(self) -> None:
        await end_all(*self._chat.tasks)  # commands that run, while there is a log that knows of them
        self.display.drain()
        self._attention.close()
        await self._status.close()

    def enclose(self, text: str) -> Enclosed:
        """What goes with a message: files that it names, pictures, and what commands have said before it."""
        if command_in(text):  # nobody is told anything with it
            return Enclosed(text)
        beside, self._beside = self._beside, []
        pictures = self._chat.folded.pictures(text)
        told, files = mentioned(self._chat.folded.refold(text), self._folders)  # what is pasted attaches nothing
        whole = self._chat.folded.unfold(told)
        self.said.add(whole)
        return Enclosed(whole, (*map(str, files), *map(str, pictures)), tuple(beside))

    def live(self, rows: int) -> str:
        return self.display.live(rows)

    def drain(self) -> None:
        self.display.drain()

    def moves(self) -> bool:
        return self.display.is_moving

    def popped(self, line: str) -> None:
        self.display.typed(line)

    def leave(self) -> None:
        self._chat.keyboard.send(None)  # once whoever is at something is through with it

    def echo(self, prompt: str, line: str) -> None:
        """What waits is shown when it is taken."""
        if prompt == PROMPT and (self._chat.keyboard.takes or line.startswith("!")):
            self.display.typed(line)
        elif prompt != PROMPT:
            self.display.tell(f"{prompt}{line}")
            self.said.add(line)  # which may be said in place of an answer

    def status(self, cells: int) -> str:
        keyboard = self._chat.keyboard
        hints = ASKED if keyboard.is_asked else HINTS if keyboard.is_busy else ""
        beside = f"{_waiting(len(self._beside) // 2)}{hints if cells >= HINTED else ''}"
        return f"{self._status.text(cells - len(beside))}{beside}"[:cells]

    def turned(self, begins: bool) -> None:
        if begins:
            self._began = time.monotonic()
            return
        self._status.look_soon()
        self._chat.begin(self._entitle())
        if time.monotonic() - self._began >= self._agent.terminal.notify_seconds:
            self._attention.call("everloop has answered")

    def asked(self) -> None:
        self._attention.call("everloop asks something")
        if not self._chat.buffer.text:
            self._chat.buffer.start_completion(select_first=False)  # the answers that there are

    def came(self) -> None:
        self._status.look_soon()  # as a task that is over

    async def _entitle(self) -> None:
        row = await self._agent.store.session(self._session)
        found = await self._agent.store.conversations(OWNER, id=row.id, archived=True) if row else []
        self._attention.entitle(f"everloop: {found[0].title}" if found else "everloop")

    def run(self, command: str) -> None:
        running = self._chat.begin(self._run_command(command))
        self._chat.running.append(running)
        running.add_done_callback(self._chat.running.remove)

    async def _run_command(self, command: str) -> None:
        """In the sandbox, as the agent's own; what it says goes with the next message, marked as whose words it is."""
        with self.display.running("exec", _as_args(command)) as running:
            try:
                ran = await self._agent.run_command(command, self._session, running.output)
            except ToolError as error:
                running.end("failed", str(error))
                return
            except asyncio.CancelledError:
                running.end("cancelled", "")
                raise
            running.end("done", ran.text)
        self._beside += [*said(f"I have run this command myself: {command}"), *said(ran.text[:MOST_OUTPUT], ran.origin)]

    def _columns(self) -> int:
        return self._chat.window.columns

    def _read(self, path: str) -> str | None:
        """What a file of the workspace holds."""
        folder = self._folders[0].resolve()
        try:
            file = (folder / path).resolve()
            return file.read_text() if file.is_relative_to(folder) and file.stat().st_size < 1_000_000 else None
        except (OSError, ValueError):
            return None


def _waiting(outputs: int) -> str:
    if outputs < 2:
        return " · 1 output goes with the next message" if outputs else ""
    return f" · {outputs} outputs go with the next message"


def _as_args(command: str) -> str:
    return msgspec.json.encode({"command": command}).decode()
