"""A picture from the clipboard, by whichever program of this machine can fetch it."""

import asyncio
import os
import shutil
from collections.abc import Mapping

from ...errors import EverloopError

SECONDS = 5.0
FETCHES = {  # by the variable that says that it would work here; "" for none
    "wl-paste": ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline", "--type", "image/png")),
    "xclip": ("DISPLAY", ("xclip", "-selection", "clipboard", "-t", "image/png", "-o")),
    "pngpaste": ("", ("pngpaste", "-")),
}
NONE = (
    "a picture cannot be fetched from the clipboard here: that takes wl-paste (Wayland), xclip (X11) or pngpaste "
    "(macOS); or name the file, as @picture.png"
)
EMPTY = "there is no picture in the clipboard"
PNG = b"\x89PNG\r\n\x1a\n"


class NoPicture(EverloopError):
    """There is none, or no way to it."""


async def fetch_picture(environ: Mapping[str, str] = os.environ) -> bytes:
    """As PNG. Raises NoPicture."""
    commands = [
        command
        for name, (variable, command) in FETCHES.items()
        if (not variable or environ.get(variable)) and shutil.which(name, path=environ.get("PATH"))
    ]
    if not commands:
        raise NoPicture(NONE)
    for command in commands:
        if (data := await _output(command, environ)).startswith(PNG):
            return data
    raise NoPicture(EMPTY)


async def _output(command: tuple[str, ...], environ: Mapping[str, str]) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=dict(environ),
    )
    try:
        async with asyncio.timeout(SECONDS):
            return (await process.communicate())[0]
    except TimeoutError:
        return b""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
