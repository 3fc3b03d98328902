"""`/memory`: what is remembered, in a chat: the person's own where they are alone, the chat's in a group.

In a group everybody may look; what is changed for all is changed by an administrator, but whoever said something may
have it forgotten.
"""

from ..core.mail import Said
from ..core.people import Role
from ..core.wording import one_line
from ..errors import MailRefused
from ..ports.memory import HISTORY, MEMORY, Fact, MemoryVersion
from ..ports.remembering import NOTHING, MemoryOverview, OwnMemory
from ..readings.commands import COMMANDS, split, words_described
from .session_commands import clock, sentence
from .typed_command import CommandEffect, TypedCommand

LONGEST = 3500  # characters that are shown at once
MANY = 10
NONE = "Nothing is remembered here yet."
NO_MEMORY = "Nothing is remembered here: this process keeps no memory."
IN_A_GROUP = (
    "In a group an administrator or the owner changes what is remembered; you can have forgotten what you said."
)

YOURS = "They lie in your workspace as memory/MEMORY.md and memory/HISTORY.md, which you may edit."
OF_THE_GROUP = "This is the group's own memory: all who speak here may see it, and nothing of it is known elsewhere."
CONFIRM = "Nothing is forgotten yet. To forget {}: /memory forget {}"


class MemoryCommands:
    def __init__(self, memory: OwnMemory | None) -> None:
        self._memory = memory

    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        return typed.told(await self.tell(typed.rest, typed.letter, typed.role))

    async def tell(self, rest: str, letter: Said, role: Role) -> str:
        if self._memory is None:
            return NO_MEMORY
        whose = letter.principal or letter.author
        word, more = split(rest)
        try:
            return await self._tell(self._memory, word, more, whose, letter, role)
        except MailRefused as error:
            return sentence(error)

    async def _tell(self, memory: OwnMemory, word: str, more: str, whose: str, letter: Said, role: Role) -> str:
        may_change = not letter.principal or role >= Role.ADMIN
        match word:
            case "":
                return overview_told(await memory.overview(whose), in_group=bool(letter.principal))
            case "show":
                name = HISTORY if more.casefold().startswith("history") else MEMORY
                return _cut(await memory.text(whose, name)) or NONE
            case "log":
                found = await memory.versions(whose, limit=MANY)
                return "\n".join(map(_version_told, found)) or NONE
            case "search" if more:
                hits = await memory.search(whose, more, MANY)
                return "\n".join(fact_told(hit.fact) for hit in hits) or "Nothing like that is remembered."
            case "forget" if more:
                return await self._forget(memory, more, whose, letter, may_change)
            case "restore" if more.isascii() and more.isdigit():
                if not may_change:
                    return IN_A_GROUP
                made = await memory.restore(whose, letter.author, int(more[:9]))
                return (
                    f"MEMORY.md is as in version {more} again; this is version {made}." if made else "It is so already."
                )
        command = COMMANDS["/memory"]
        return "\n".join(words_described(command, command.help, role))

    async def _forget(self, memory: OwnMemory, said: str, whose: str, letter: Said, may_change: bool) -> str:
        """What is named by its words is shown first; what is named by ids is forgotten."""
        found = await memory.meant(whose, said)
        if not may_change:
            found = [fact for fact in found if fact.source.person == letter.author]
        if not found:
            return NOTHING if may_change else IN_A_GROUP
        if {word for word in said.split() if any(fact.id.startswith(word) for fact in found)} == set(said.split()):
            return (await memory.forget(whose, letter.author, [fact.id for fact in found])).told()
        shown = found[:MANY]
        ids = " ".join(fact.id[:8] for fact in shown)
        those = "it" if len(shown) == 1 else "them"
        return "\n".join([*map(fact_told, shown), CONFIRM.format(those, ids)])


def _version_told(made: MemoryVersion) -> str:
    return f"{made.version}  {clock(made.at)}  {made.author or 'everloop'}: {made.why}"


def overview_told(found: MemoryOverview, in_group: bool = False) -> str:
    if not found.version:
        return NONE
    ended = f", {found.ended} true no longer" if found.ended else ""
    marked = f", {found.marked} of them from strangers' words" if found.marked else ""
    facts = "1 fact is" if found.facts == 1 else f"{found.facts} facts are"
    lines = [f"{facts} remembered{marked}{ended}; version {found.version}.", OF_THE_GROUP if in_group else YOURS]
    if found.left_out:
        lines.append(f"{found.left_out} lines of MEMORY.md do not fit into prompts; the tool recall finds them.")
    lines.append(found.recall)
    return "\n".join([*lines, *found.problems, "/memory help tells what else there is."])


def fact_told(fact: Fact) -> str:
    notes = [clock(fact.source.at or fact.at)] if fact.source.at or fact.at else []
    notes += ["from strangers' words"] if fact.marked else []
    notes += [f"until {clock(fact.until)}"] if fact.until else []
    return f"{fact.id[:8]}  {one_line(fact.text)} ({', '.join(notes)})"


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return text[:LONGEST].rpartition("\n")[0] + "\n… `everloop memory show` and the page have all of it."
