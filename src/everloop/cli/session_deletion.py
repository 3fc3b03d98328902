"""`everloop sessions delete`: asked twice, for there is no way back."""

import sys
from collections.abc import Sequence

from ..app.records import Records
from ..errors import MailRefused, StoreError
from ..ports.conversation import Conversation, Deletion
from ..readings.visible import in_one_line
from .terminal import Terminal, WrongUse, show_prompt

WHAT_GOES = (
    "What was said, its files and what was kept beside it go for good, with earlier versions of it (edited, answered "
    "again, undone). Copies that you have forked stay."
)
NOBODY_ASKED = "deleting for good is asked twice, at a terminal; in a script say --yes"


async def delete(records: Records, terminal: Terminal, found: Sequence[Conversation], user: str, yes: bool) -> int:
    """Delete these, one after the other; 1 if one could not be. Raises WrongUse where nobody can be asked."""
    if not yes and not _is_sure(terminal, found):
        terminal.answer("Nothing was deleted.")
        return 1
    failed = 0
    for each in found:
        try:
            terminal.answer(_told(each, await records.deletions.delete(user, each)))
        except MailRefused as error:
            failed = 1
            terminal.note(f"{each.id[:8]} is not deleted: {error}.")
    await _finish(records, terminal, user)
    return failed


def _is_sure(terminal: Terminal, found: Sequence[Conversation]) -> bool:
    if not sys.stdin.isatty():
        raise WrongUse(NOBODY_ASKED)
    for each in found:
        terminal.note(f"{_named(each)}: {each.messages} messages, session {in_one_line(each.session)}")
    terminal.note(WHAT_GOES)
    if _typed("Delete it? [y/N] " if len(found) == 1 else f"Delete these {len(found)}? [y/N] ") not in ("y", "yes"):
        return False
    word = found[0].id[:8] if len(found) == 1 else "delete"
    return _typed(f"There is no way back. Type {word} to delete: ") == word


def _typed(prompt: str) -> str:
    show_prompt(prompt)
    return sys.stdin.readline().strip().lower()


async def _finish(records: Records, terminal: Terminal, user: str) -> None:
    try:
        gone = await records.deletions.finish(user)
    except StoreError as error:
        terminal.note(f"No query finds it any more, but {error}. This is tried again at the next start.")
        return
    if gone:
        terminal.answer("1 file is removed." if gone == 1 else f"{gone} files are removed.")
    if copies := sorted(path.name for path in records.home.glob("everloop.db.before-*")):
        terminal.note(
            f"A copy from before an upgrade may still hold it ({', '.join(copies)} in {records.home}): remove it when "
            "you need it no longer."
        )


def _told(each: Conversation, deletion: Deletion) -> str:
    more = [f"{deletion.entries} entries"]
    if versions := len(deletion.threads) - 1:
        more.append("1 earlier version" if versions == 1 else f"{versions} earlier versions")
    if deletion.jobs:
        more.append("1 job" if deletion.jobs == 1 else f"{deletion.jobs} jobs")
    stays = f"; {len(deletion.branches)} that branched from it stay" if deletion.branches else ""
    return f"{_named(each)} is deleted ({', '.join(more)}{stays})."


def _named(each: Conversation) -> str:
    return f"{each.id[:8]} “{in_one_line(each.title)}”"
