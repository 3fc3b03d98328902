"""`everloop config edit`: the settings file in somebody's editor. They write on a copy, which takes the file's place
once it is right; until then it stays, and nothing that was written is lost."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

from ..errors import EverloopError, HomeError, SettingsError
from ..settings.editor import SettingsDraft, SettingsEditor, version_of
from ..settings.template import begun_file
from .terminal import Terminal, show_prompt

EDITORS = ("editor", "nano", "vi")


class Edited(Struct, frozen=True):
    """What somebody has written, and where."""

    draft: SettingsDraft
    copy: Path


def edit(book: SettingsEditor, home: Path, terminal: Terminal) -> Edited | None:
    """None where nothing was changed. Raises EverloopError; what was written is in the copy then."""
    file, data = book.read_file()
    copy = home / f"config.edit{file.suffix}"
    begun = data or (begun_file().encode() if file.suffix == ".toml" else b"{}\n")
    _begin(copy, begun, terminal)
    while True:
        _open_editor(copy)
        written = copy.read_bytes() if copy.is_file() else begun  # some remove what is left without saving
        if written in (begun, data):
            copy.unlink(missing_ok=True)
            return None
        try:
            return Edited(book.draft_text(written.decode("utf-8", "surrogateescape"), version_of(data)), copy)
        except (SettingsError, UnicodeEncodeError) as error:
            why = str(error) if isinstance(error, SettingsError) else f"{file}: the file is not UTF-8 text"
        terminal.tell(f"everloop: {why}")
        if not _is_wanted("Edit it again? [Y/n] "):
            raise EverloopError(
                f"nothing was put in place. What you wrote is in {copy}; `everloop config edit` goes on there"
            )


def _begin(copy: Path, begun: bytes, terminal: Terminal) -> None:
    """With what an earlier edit has left, if that is wanted."""
    if copy.exists():
        if not sys.stdin.isatty():
            raise EverloopError(f"an earlier edit was not put in place, and is in {copy}; move it away first")
        terminal.tell(f"An earlier edit was not put in place: {copy}")
        if _is_wanted("Go on with it? [Y/n] "):
            return
    try:
        copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        copy.unlink(missing_ok=True)
        with open(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as made:
            made.write(begun)
    except OSError as error:
        raise HomeError(f"{copy} cannot be written ({error.strerror}): set EVERLOOP_HOME to a home of yours") from error


def _open_editor(copy: Path) -> None:
    """Raises EverloopError."""
    words = _named_editor() or [next((name for name in EDITORS if shutil.which(name)), "")]
    if not shutil.which(words[0]):
        raise EverloopError(f"there is no editor {words[0]!r} here: say in EDITOR which one you use. The file: {copy}")
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the editor's
    try:
        ended = subprocess.run([*words, copy], check=False).returncode
    except OSError as error:
        raise EverloopError(f"{words[0]} cannot be run ({error.strerror}): say in EDITOR which one you use") from error
    finally:
        signal.signal(signal.SIGINT, before)
    if ended:
        raise EverloopError(f"{words[0]} ended with {ended}; nothing was put in place. What you wrote is in {copy}")


def _named_editor() -> list[str]:
    for name in ("VISUAL", "EDITOR"):
        try:
            if words := shlex.split(os.environ.get(name, "")):
                return words
        except ValueError as error:
            raise EverloopError(f"{name} names no editor: its quotes do not match") from error
    return []


def _is_wanted(question: str) -> bool:
    if not sys.stdin.isatty():
        return False
    show_prompt(question)
    answer = sys.stdin.readline()
    return bool(answer) and answer.strip().lower() in ("", "y", "yes")
