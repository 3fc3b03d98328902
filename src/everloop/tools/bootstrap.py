"""The owner's files that every prompt begins with: how the agent works, how it sounds, for whom, with what.

They are the owner's to write. What stands in a comment (`<!-- … -->`) is for people and is not shown to the model.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from ..core.prompt import Section
from ..errors import ToolError
from ..ports.permission import FileState
from ..readings.sections import cut
from .workspace import Workspace

LONGEST = 20_000  # characters of one file
BYTES = 4 * LONGEST
_FRESH = 1_000_000_000  # ns; a file that was changed so lately may change again without a later time to show for it

_MOMENT = 0.005  # seconds

Stamp = tuple[int, int, int, int]
Contents = dict[str, FileState]


class Bootstrap:
    """`sections` gives the same tuple again for as long as no file says anything else; to know that, it looks at each
    file's time and size and opens none."""

    def __init__(
        self,
        workspace: Workspace,
        crowded: Callable[[], bool] = lambda: False,
        names: Iterable[str] = (),
        longest: int = BYTES,
    ) -> None:
        """Where it is `crowded`, turns that begin within a moment of each other look once. `names` are other files
        than these, of which so many bytes are read."""
        self._crowded = crowded
        self._workspace = workspace
        self.names = tuple(names) or tuple(FILES)
        self.longest = longest
        self._paths = tuple(os.path.join(workspace.name, name) for name in self.names)
        self._seen: tuple[Stamp | None, ...] = (None,) * len(self.names)
        self._fresh = True
        self._sections: tuple[Section, ...] = ()
        self._looked = 0.0

    def sections(self) -> tuple[Section, ...]:
        if self.is_stale():
            self._sections = sections_of(self.contents(), self._sections)
        return self._sections

    def is_stale(self) -> bool:
        """Whether a file may hold something else than when it was read."""
        now = time.monotonic()
        if now - self._looked < _MOMENT and self._crowded():
            return False
        self._looked = now
        return self._fresh or self._stamps() != self._seen

    def contents(self) -> Contents:
        """What stands in each file, as far as prompts have room for it."""
        self._seen = self._stamps()  # first: what changes after that is seen the next time
        self._fresh = any(stamp and abs(time.time_ns() - stamp[0]) < _FRESH for stamp in self._seen)
        return {
            name: self._read(name, is_there=stamp is not None)
            for name, stamp in zip(self.names, self._seen, strict=True)
        }

    def written_at(self, name: str) -> float:
        """The ctime of a file when it was read last; 0 if there was none."""
        stamp = self._seen[self.names.index(name)]
        return stamp[3] / 1e9 if stamp else 0.0

    def changed_at(self, name: str) -> float:
        """Its mtime."""
        stamp = self._seen[self.names.index(name)]
        return stamp[0] / 1e9 if stamp else 0.0

    def _stamps(self) -> tuple[Stamp | None, ...]:
        found: list[Stamp | None] = []
        for path, before in zip(self._paths, self._seen, strict=True):
            if before is None and not os.access(path, os.F_OK):  # costs a quarter of an error
                found.append(None)
            else:
                found.append(_stamp(path))
        return tuple(found)

    def _read(self, name: str, is_there: bool) -> FileState:
        """What cannot be read, or lies outside of the workspace, says nothing."""
        link = _link_at(os.path.join(self._workspace.name, name))
        if not is_there:
            return FileState(None, link)
        try:
            with self._workspace.opened(name) as (fd, status):
                return FileState(_start_of(fd, self.longest), link, status.st_nlink)
        except ToolError:
            return FileState(None, link)


def sections_of(contents: Contents, before: tuple[Section, ...] = ()) -> tuple[Section, ...]:
    """What models are told of these files; the same tuple as before if it is the same."""
    written = [(name, found.content) for name, found in contents.items() if found.content and name in FILES]
    sections = tuple(section for name, content in written if (section := _section_of(name, content)).text)
    return before if sections == before else sections


def _section_of(name: str, content: bytes) -> Section:
    text = without_comments(content.decode("utf-8-sig", "replace")).strip()
    return cut(Section(name.lower(), f"## {name}\n\n{text}" if text else "", name), LONGEST)


def _link_at(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:  # it is none
        return ""


def _start_of(fd: int, most: int) -> bytes:
    with open(fd, "rb", closefd=False) as file:
        return file.read(most)


def _stamp(path: str) -> Stamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns


def without_comments(text: str) -> str:
    kept, *rest = text.split("<!--")
    for piece in rest:
        _, end, after = piece.partition("-->")
        kept += after if end else f"<!--{piece}"
    return kept


FILES = {
    "AGENTS.md": """\
<!-- How the agent should work. It reads this before every turn; comments like this one it does not see. -->
- Look before you change something, and check afterwards that it worked.
- If a request could mean two things, ask; otherwise go ahead.
- When the user tells you something lasting about themselves, `remember` it.
- If something is left to do, say what comes next.
""",
    "SOUL.md": """\
<!-- How the agent should sound: tone, language, length. -->
Friendly and direct. Answer in the user's language. Say so when you are not sure.
""",
    "USER.md": """\
<!-- Who you are: name, language, time zone, work, what you like. What the agent learns is in memory/MEMORY.md. -->
""",
    "TOOLS.md": """\
<!-- What the agent should know about your tools: hosts, commands, accounts, what not to touch. No passwords. -->
""",
    "IDENTITY.md": """\
<!-- A name and a role for the agent, if it should have one. -->
""",
}


def make_workspace(folder: Path) -> None:
    """Make the workspace, with these files in it, unless it is there: then nothing in it is touched, and a file that
    the owner has removed stays away. All or none, should the process end in between."""
    if os.path.lexists(folder):
        folder.mkdir(exist_ok=True)  # complains when it is something else
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}.new")
    draft.mkdir()
    for name, text in FILES.items():
        (draft / name).write_text(text, encoding="utf-8")
    try:
        os.rename(draft, folder)
    except OSError:
        _discard(draft)
        if not folder.is_dir():  # else another process was first
            raise


def _discard(draft: Path) -> None:
    for name in FILES:
        (draft / name).unlink(missing_ok=True)
    draft.rmdir()
