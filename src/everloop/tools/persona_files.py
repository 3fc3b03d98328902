"""The files of a persona's own: `<home>/personas/<name>/SOUL.md` and the like, told to whoever speaks with it.

No tool reaches into the home, so what stands there is the owner's and needs nobody's permission. A link, or a file with
a second name, may be changed from elsewhere: it is not told.
"""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from ..core.prompt import Section
from ..errors import HomeError
from ..ports.permission import FileState
from .bootstrap import BYTES, FILES, Bootstrap, sections_of
from .workspace import Workspace

FOLDER = "personas"


class PersonaFiles:
    """`sections` is the same tuple while they say the same; to know that, each file's time and size are looked at."""

    def __init__(self, home: Path, name: str) -> None:
        self._folder = home / FOLDER / name
        self._place = os.fspath(self._folder)
        self._bootstrap = Bootstrap(Workspace(self._folder))
        self._sections: tuple[Section, ...] = ()

    def sections(self) -> tuple[Section, ...]:
        if not self._sections and not os.access(self._place, os.F_OK):  # as of most personas
            return self._sections
        if self._bootstrap.is_stale():
            self._sections = sections_of(self._told(), self._sections)
        return self._sections

    def texts(self) -> dict[str, str]:
        """What stands in them, comments and all, of those that are there."""
        return {name: state.content.decode(errors="replace") for name, state in self._told().items() if state.content}

    def write(self, texts: Mapping[str, str]) -> None:
        """Have these say this; one that is to say nothing goes. Raises HomeError."""
        try:
            for name, text in texts.items():
                if text.strip():
                    self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                    _replace(self._folder / name, text.encode())
                else:
                    (self._folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise HomeError(f"{self._folder} cannot be written ({error.strerror})") from error

    def forget(self) -> None:
        """With the folder, unless there is something else in it. Raises HomeError."""
        if os.path.islink(self._folder):
            raise HomeError(f"{self._folder} is a link; remove it yourself")
        if self._folder.is_dir():
            self.write(dict.fromkeys(FILES, ""))
            if not any(self._folder.iterdir()):
                self._folder.rmdir()

    def _told(self) -> dict[str, FileState]:
        if os.path.islink(self._folder) or os.path.islink(self._folder.parent):
            return {}
        return {name: state for name, state in self._bootstrap.contents().items() if _is_plain(state)}


def checked_files(texts: Mapping[str, str]) -> Mapping[str, str]:
    """Raises ValueError."""
    for name, text in texts.items():
        if name not in FILES:
            raise ValueError(f"a persona has no file {name[:80]!r}; it may have {', '.join(FILES)}")
        if len(text.encode(errors="replace")) > BYTES:
            raise ValueError(f"{name} is longer than the {BYTES:,} bytes that prompts have room for")
    return texts


def _is_plain(state: FileState) -> bool:
    return not state.link and state.names == 1


def _replace(place: Path, data: bytes) -> None:
    """Whole or not at all; a link that lies there is replaced, and not followed."""
    draft = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        os.replace(draft, place)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
