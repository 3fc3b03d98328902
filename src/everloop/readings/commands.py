"""Slash commands: what there is to type, whom each is for, and what it needs of a token.

A command is one word after a slash, at the beginning of a message. `/etc/hosts is broken` is none, nor is `/2`. What
looks like one and is meant for the model has a second slash before it, which is taken away.

One table for all doors. A command that tells something needs the scope that the same needs in the API, and one that
costs or tells what is not a guest's is not for guests. This file only says so; runtime does what they mean.
"""

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from ..core.people import Role


class Right(Struct, frozen=True):
    """Whom something is for, and which scope it needs of a token beside `chat`."""

    least: Role
    scope: str = ""


EVERY = "*"  # in place of a scope: all that there are, as no token has which is worth less than its person
UNDECLARED = Right(Role.OWNER, EVERY)  # of what nobody has said whom it is for


class Subcommand(Struct, frozen=True):
    """What may follow a command: `takes` is what follows the word itself."""

    help: str
    takes: str = ""
    right: Right = UNDECLARED


class SlashCommand(Struct, frozen=True):
    name: str
    help: str
    takes: str = ""  # what may follow it
    right: Right = UNDECLARED
    given: Right | None = None  # the right to say more than its name; None: the same
    words: Mapping[str, Subcommand] = {}

    def right_to(self, rest: str) -> Right:
        """What it needs with this after its name."""
        word, _ = split(rest)
        if word in self.words:
            return self.words[word].right
        return self.given if word and self.given else self.right


_COMMAND = re.compile(r"\s*(/[A-Za-z][A-Za-z_-]{0,30})(?:\s|\Z)")
_ESCAPED = re.compile(r"\s*/(/[A-Za-z][A-Za-z_-]{0,30}(?:\s|\Z))")
SKILL = "/skill"
_EVERYBODY = Right(Role.GUEST)
_TELLS = Right(Role.GUEST, "read")
_APPROVE = (
    "Show what waits for permission; allow it, or with `no` deny it. Further words allow the like too: `for 1h`, "
    "`runs 5`, `here` (this conversation), `host [HOST]`, `folder [PATH]`, `any` (of the tool), `argv PATTERN` (last)"
)

COMMANDS = {
    command.name: command
    for command in (
        SlashCommand("/new", "Start a new conversation", right=_EVERYBODY),
        SlashCommand("/stop", "Stop the current task", right=_EVERYBODY),
        SlashCommand(
            "/model",
            "Show the model that answers here, or choose another",
            "[NAME]",
            right=Right(Role.USER, "read"),
            given=Right(Role.USER),
        ),
        SlashCommand(
            "/persona",
            "Show who the agent is here, or choose another for this conversation",
            "[NAME]",
            right=Right(Role.USER, "read"),
            given=Right(Role.USER),
        ),
        SlashCommand(
            SKILL,
            "Show what the agent knows how to do; with a name, have it do so: /skill NAME and what is to be done",
            "[NAME …]",
            right=_TELLS,
            words={
                "list": Subcommand("all that you have here", right=_TELLS),
                "help": Subcommand("this", right=_TELLS),
                "show": Subcommand("one of them, and what it asks for", "NAME", _TELLS),
                "accept": Subcommand("a change of it that is held back", "NAME", Right(Role.USER, "approve")),
                "refuse": Subcommand("that change: what was accepted is put back", "NAME", Right(Role.USER, "approve")),
            },
        ),
        SlashCommand(
            "/mcp",
            "Show the MCP servers that you may use, and their tools; begin with a prompt of one; answer what one asks",
            "[list | show SERVER | prompt SERVER [NAME KEY=VALUE …] | answer [ID ANSWER]]",
            right=Right(Role.USER, "read"),
            words={
                "list": Subcommand("all that you may use", right=Right(Role.USER, "read")),
                "show": Subcommand("the tools of one", "SERVER", Right(Role.USER, "read")),
                "prompt": Subcommand(
                    "the prompts of one; with a name, let the model answer it, marked as a stranger's words",
                    "SERVER [NAME KEY=VALUE …]",
                    Right(Role.USER, "read"),
                ),
                "answer": Subcommand(
                    "answer what a server asks you in the middle of a call, or decline; alone: show what is asked",
                    "[ID ANSWER | ID decline]",
                    Right(Role.GUEST),
                ),
            },
        ),
        SlashCommand("/compact", "Let a summary stand for what was said before", right=Right(Role.USER)),
        SlashCommand(
            "/approve",
            _APPROVE,
            "[NAME [no | for TIME | here | host | argv PATTERN | …]]",
            right=Right(Role.USER, "read"),  # what is theirs to answer: of users that is what their own turn may cost
            given=Right(Role.USER, "approve"),
        ),
        SlashCommand(
            "/deny",
            "Deny what waits for permission, as /approve NAME no does; alone, show what waits",
            "[NAME]",
            right=Right(Role.USER, "read"),
            given=Right(Role.USER, "approve"),
        ),
        SlashCommand(
            "/pair",
            "Show who waits to be let in; let them in by their code, as user or guest",
            "[CODE [ROLE]]",
            right=Right(Role.ADMIN, "read"),
            given=Right(Role.ADMIN, "admin"),
        ),
        SlashCommand(
            "/link",
            "Be known by another account too: a code, to be said from there as /link CODE",
            "[CODE]",
            right=Right(Role.USER, EVERY),  # who is told the code becomes that person, with all that they may
        ),
        SlashCommand("/undo", "Take the last turn back: what was said, and what it did to files", right=_EVERYBODY),
        SlashCommand(
            "/session",
            "Show where you are; /session help tells what else there is",
            "[WORD …]",
            right=_TELLS,
            given=_EVERYBODY,  # help
            words={
                "list": Subcommand("your conversations, the latest first", right=_TELLS),
                "search": Subcommand("where something was said", "WORDS", _TELLS),
                "resume": Subcommand("go on with another conversation", "ID", _TELLS),
                "rename": Subcommand("give this one a name", "TITLE", _EVERYBODY),
                "fork": Subcommand(
                    "go on in a copy of this one, from its end or after an entry", "[SEQ]", Right(Role.USER, "read")
                ),
                "snapshot": Subcommand("give this place a name", "NAME", Right(Role.USER)),
                "restore": Subcommand("go on in a copy from a place that has one", "NAME", Right(Role.USER, "read")),
                "edit": Subcommand("take your last message back and say this instead", "TEXT", _EVERYBODY),
                "regenerate": Subcommand("ask for the last answer again", right=_EVERYBODY),
                "delete": Subcommand("delete this conversation for good, once you have confirmed it", "[ID]", _TELLS),
            },
        ),
        SlashCommand("/resume", "Show your conversations; with an id, go on with that one", "[ID]", right=_TELLS),
        SlashCommand(
            "/fork",
            "Go on in a copy of this conversation, from its end or after an entry",
            "[SEQ]",
            right=Right(Role.USER, "read"),
        ),
        SlashCommand(
            "/tree",
            "Show what this conversation has branched from, and its branches; with an id, go on with that one",
            "[ID]",
            right=Right(Role.USER, "read"),
        ),
        SlashCommand(
            "/memory",
            "Show what is remembered here; /memory help tells what else there is",
            "[WORD …]",
            right=_TELLS,
            given=_EVERYBODY,  # help
            words={
                "show": Subcommand("what stands in MEMORY.md, or in HISTORY.md", "[history]", _TELLS),
                "search": Subcommand("facts that hold these words, or mean them", "WORDS", _TELLS),
                "log": Subcommand("who has changed it when", right=_TELLS),
                "forget": Subcommand("forget facts, once you have named them by their ids", "WORDS | ID …", _TELLS),
                "restore": Subcommand("have MEMORY.md as it was at a version", "VERSION", _TELLS),
            },
        ),
        SlashCommand(
            "/keys",
            "Show which keys and credentials of your own are kept; they are given in the page, never in a chat",
            "[…]",
            right=_TELLS,
        ),
        SlashCommand("/budget", "Show what you may spend, and have spent", right=_TELLS),
        SlashCommand(
            "/usage",
            "Show what this conversation has used and cost; with a word, what you have used in 30 days, by `day`, "
            "`model`, `channel`, `job` or `tool` (for administrators: what all have, also by `person`)",
            takes="[BY]",
            right=Right(Role.USER, "read"),
        ),
        SlashCommand(
            "/bg",
            "Let what runs here go on in the background, and go on talking; with a text, begin with that there",
            "[TEXT]",
            right=Right(Role.USER),
        ),
        SlashCommand(
            "/fg",
            "Go on here with a turn from the background, by its number in /tasks; alone: with the latest",
            "[N]",
            right=Right(Role.USER, "read"),
        ),
        SlashCommand(
            "/tasks",
            "Show what is worked at in the background and by sub-agents; what one has done; end one",
            "[show N | stop N]",
            right=Right(Role.USER, "read"),
            words={
                "show": Subcommand("what one has said and done", "N", Right(Role.USER, "read")),
                "stop": Subcommand("end one, and what works for it", "N", Right(Role.USER)),
            },
        ),
        SlashCommand("/kill", "End the work at a task, by its number in /tasks", "N", right=Right(Role.USER)),
        SlashCommand(
            "/status",
            "Show who answers here, how full the conversation is, what it cost; tasks, schedules, channels",
            right=Right(Role.USER, "read"),
        ),
        SlashCommand(
            "/cron",
            "Show your schedules; `/cron help` tells how one is made",
            "[WORD …]",
            right=Right(Role.USER, "read"),
            given=Right(Role.USER),
            words={
                "list": Subcommand("your schedules, the next first", right=Right(Role.USER, "read")),
                "log": Subcommand("how its last runs went", "ID", Right(Role.USER, "read")),
                "add": Subcommand("make one, which answers here", "WHEN turn|message|command: TEXT", Right(Role.USER)),
                "edit": Subcommand("change one", "ID WHEN turn|message|command: TEXT", Right(Role.USER)),
                "run": Subcommand("run one now", "ID", Right(Role.USER)),
                "enable": Subcommand("let it run again", "ID", Right(Role.USER)),
                "disable": Subcommand("stop it for now", "ID", Right(Role.USER)),
                "remove": Subcommand("remove it", "ID", Right(Role.USER)),
            },
        ),
        SlashCommand("/help", "Show available commands", right=_EVERYBODY),
    )
}


def find(text: str) -> SlashCommand | None:
    """The command that a message begins with, also one that there is not; None if the message is for the model."""
    name = command_in(text)
    return (COMMANDS.get(name) or SlashCommand(name, "", right=_EVERYBODY)) if name else None


def command_in(text: str) -> str:
    """The command that a message begins with, in small letters; "" if it is said to the model, as what begins with the
    name of a skill: that has been told what to do with it."""
    found = _COMMAND.match(text)
    name = found[1].lower() if found else ""
    word = split(rest_of(text))[0] if name == SKILL else ""
    return "" if word and word not in COMMANDS[SKILL].words else name


def rest_of(text: str) -> str:
    """What stands behind the command."""
    found = _COMMAND.match(text)
    return text[found.end() :].strip() if found else text


def unescaped(text: str) -> str:
    """What is said to the model: without the slash that kept it from being a command."""
    found = _ESCAPED.match(text)
    return text[found.start(1) :] if found else text


def split(rest: str) -> tuple[str, str]:
    """The first word of what follows a command, in small letters, and the rest."""
    word, _, more = rest.strip().partition(" ")
    return word.lower(), more.strip()


def scope_of(text: str) -> str:
    """What a message needs beside `chat`: a command, what doing the same in another way needs."""
    found = find(text)
    return found.right_to(rest_of(text)).scope if found else ""


def listed(commands: Iterable[SlashCommand]) -> list[str]:
    """What each is for, a line for each."""
    return [_line(each.name, each.takes, each.help) for each in commands]


def words_described(command: SlashCommand, first: str, role: Role) -> list[str]:
    """What may follow a command, as `listed`."""
    words = [(word, each) for word, each in command.words.items() if each.right.least <= role]
    return [
        f"{command.name} — {first}",
        *(_line(f"{command.name} {word}", each.takes, each.help) for word, each in words),
    ]


def _line(name: str, takes: str, help: str) -> str:
    return f"{' '.join(filter(None, (name, takes)))} — {help}"
