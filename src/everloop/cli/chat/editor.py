"""What is typed, in an editor of one's own; and files that are there for as long as the chat is."""

import asyncio
import atexit
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from prompt_toolkit.buffer import Buffer

from .folding import Folded
from .window import ChatWindow

EDITORS = ("nano", "vi", "vim", "emacs")  # where neither VISUAL nor EDITOR says which
NO_EDITOR = "(there is no editor: set VISUAL or EDITOR)"


async def edit_text(window: ChatWindow, buffer: Buffer, folded: Folded, note: Callable[[str], None]) -> None:
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or next(filter(shutil.which, EDITORS), "")
    if not command:
        note(NO_EDITOR)
        return
    path = keep_for_now(folded.unfold(buffer.text).encode(), ".md")
    try:
        async with window.outside():
            process = await asyncio.create_subprocess_exec(*shlex.split(command), str(path))
            code = await process.wait()
        if code:
            note(f"({command} ended with {code}; what was typed stays as it was)")
            return
        text = path.read_text(errors="replace").rstrip("\n")
    except (OSError, ValueError) as error:
        note(f"({command} cannot be run: {error})")
        return
    finally:
        path.unlink(missing_ok=True)
    buffer.text = folded.fold_again(text)
    buffer.cursor_position = len(buffer.text)
    window.redraw()


def keep_for_now(data: bytes, ending: str) -> Path:
    """A file that its owner alone can read, and that goes with this process."""
    file, name = tempfile.mkstemp(ending, "everloop-", _folder())
    with os.fdopen(file, "wb") as opened:
        opened.write(data)
    return Path(name)


@cache
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="everloop-chat-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
