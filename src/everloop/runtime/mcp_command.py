"""`/mcp`: which servers there are for whoever asks, and what they can do."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import structs

from ..core.message import said
from ..core.people import Role
from ..errors import MailRefused, ToolError
from ..ports.mcp import McpHealth
from ..ports.tools import Result, Shown
from ..readings.commands import COMMANDS, split, words_described
from ..readings.visible import in_one_line
from .mcp_answers import NOTHING_ASKED, McpAnswers
from .typed_command import CommandEffect, TypedCommand

NONE = "There is no MCP server that you may use here."
_STATES = {"wrong": "wrong", "waiting": "failing", "login": "needs a login"}


class ListsMcp(Protocol):
    def tools_for(self, role: Role) -> Mapping[str, Sequence[str]]:
        """The tools of each server that somebody of this role may use, by what models call them."""
        ...

    async def prompt(self, role: Role, server: str, name: str, args: Mapping[str, str]) -> Result:
        """A prompt of a server; without a name, which it has. Raises ToolError."""
        ...

    def problems(self) -> Mapping[str, McpHealth]:
        """The servers that cannot be used now."""
        ...


class McpCommand:
    def __init__(self, servers: ListsMcp | None, answers: McpAnswers | None = None) -> None:
        self._servers = servers
        self._answers = answers

    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        letter = typed.letter
        shared = typed.session if letter.principal else ""
        text, prompt = await self.tell(typed.rest, typed.role, letter.author, shared)
        if prompt is None:
            return typed.told(text)
        asked = structs.replace(letter, parts=(*said(text), *said(prompt.text, prompt.origin)))
        return CommandEffect(structs.replace(typed.inbound, letter=asked), "none", "", says=True)

    async def tell(self, rest: str, role: Role, person: str, session: str) -> tuple[str, Shown | None]:
        """What is said about it; or, with a prompt, what is said to the model before that. With a `session`, only what
        is asked there is shown: it is not theirs alone."""
        word, more = split(rest)
        name, _, further = more.partition(" ")
        if word == "answer":
            return await self._answer(name, further, person, session), None
        found = self._servers.tools_for(role) if self._servers else {}
        if word in ("show", "prompt") and name not in found:
            return f"There is no such MCP server for you. There is: {', '.join(found) or 'none'}.", None
        if word == "prompt":
            return await self._prompt(role, name, further.split())
        if word == "show":
            return "\n".join([f"{name}:", *(f"- {tool}" for tool in found[name])]), None
        return self._listed(word, found, role), None

    async def _answer(self, id: str, line: str, person: str, session: str) -> str:
        if self._answers is None or not id:
            return await self._answers.listed(person, session) if self._answers else NOTHING_ASKED
        try:
            return await self._answers.answer(id, line, person)
        except MailRefused as error:
            return str(error)

    async def _prompt(self, role: Role, server: str, words: list[str]) -> tuple[str, Shown | None]:
        assert self._servers is not None  # there is such a server
        name, *given = words or [""]
        if wrong := [each for each in given if "=" not in each]:
            return f"{wrong[0][:50]!r} is not understood: what a prompt is given is written as KEY=VALUE.", None
        try:
            args = {key: value for key, _, value in (each.partition("=") for each in given)}
            found = await self._servers.prompt(role, server, name, args)
        except ToolError as error:
            return f"{str(error)[:1].upper()}{str(error)[1:].rstrip('.')}.", None
        told = found if isinstance(found, Shown) else Shown(found)
        if not name:
            return told.text, None
        return f"I use the prompt {in_one_line(name)[:100]} of the MCP server {server}:", told

    def _listed(self, word: str, found: Mapping[str, Sequence[str]], role: Role) -> str:
        if word not in ("", "list"):
            return "\n".join(words_described(COMMANDS["/mcp"], "the MCP servers that you may use", role))
        return (
            "\n".join([*(f"{server}: {_counted(tools)}" for server, tools in found.items()), *self._wrong(role)])
            or NONE
        )

    def line(self, role: Role) -> str:
        """For /status; "" where there is none."""
        found = self._servers.tools_for(role) if self._servers else {}
        told = [*(f"{server} ({_counted(tools)})" for server, tools in found.items()), *self._wrong(role)]
        return f"MCP servers: {'; '.join(told)}." if told else ""

    def _wrong(self, role: Role) -> list[str]:
        """What keeps one from being used is told to those who can mend it."""
        if self._servers is None or role < Role.ADMIN:
            return []
        return [
            f"{name} {_STATES.get(each.state, each.state)}: {in_one_line(each.why)[:300].rstrip('.')}"
            for name, each in self._servers.problems().items()
        ]


def _counted(tools: Sequence[str]) -> str:
    return f"{len(tools)} tool{'' if len(tools) == 1 else 's'}"
