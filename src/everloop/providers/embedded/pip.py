"""pip as a program: whichever this machine has, told by its own configuration where to look."""

import asyncio
import importlib.util
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PASSED_ON = (
    "PIP_", "UV_", "XDG_", "SSL_", "PYENV_", "LC_",
    "PATH", "HOME", "USER", "LANG", "NETRC", "TMPDIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "VIRTUAL_ENV",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SYSTEMROOT",
)  # fmt: skip


class PipFailed(Exception):
    """No pip, or it could not get the package; says which."""


async def download(package: str, version: str, folder: Path) -> Path:
    """The wheel of a package, in a new `folder`. Nothing of it is run. Raises PipFailed. Cancelling it ends pip."""
    os.makedirs(folder)
    options = (
        *("download", "--quiet", "--no-input", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"),
        *("--disable-pip-version-check", "--progress-bar", "off", "--dest", str(folder), f"{package}=={version}"),
    )
    trouble = "there is no pip on this machine"
    for pip in _pips():
        code, words = await _run([*pip, *options], folder)
        wheels = [name for name in os.listdir(folder) if name.endswith(".whl")]
        if code == 0 and wheels:
            return folder / wheels[0]
        trouble = _last_error(words) or f"{' '.join(pip)} ended with {code}"
        if "No module named pip" not in words:
            break
    raise PipFailed(f"{package} {version}: {trouble}")


def _pips() -> Iterator[list[str]]:
    """Ways to call pip, likeliest first. An environment made by uv has none of its own, but Python carries a copy."""
    if importlib.util.find_spec("pip"):
        yield [sys.executable, "-m", "pip"]
    for wheel in _bundled():
        yield [sys.executable, f"{wheel}/pip"]
    for name in ("python3", "python"):
        if found := shutil.which(name):
            yield [found, "-m", "pip"]
    for name in ("pip3", "pip"):
        if found := shutil.which(name):
            yield [found]
    if found := shutil.which("uv"):
        yield [found, "tool", "run", "pip"]


def _bundled() -> Iterator[Path]:
    spec = importlib.util.find_spec("ensurepip")
    folders = [Path(spec.origin).parent / "_bundled"] if spec and spec.origin else []
    for folder in (*folders, Path("/usr/share/python-wheels")):  # the second is where Debian keeps it
        yield from sorted(folder.glob("pip-*.whl"), reverse=True)


async def _run(command: list[str], folder: Path) -> tuple[int, str]:
    environment = {name: value for name, value in os.environ.items() if name.upper().startswith(_PASSED_ON)}
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**environment, "TMPDIR": str(folder)},  # beside the model: /tmp may be small
        cwd=folder,  # `-m` takes what lies in it for a module, and what lies in a workspace may be a command's
        start_new_session=True,
    )
    try:
        _, words = await process.communicate()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return process.returncode or 0, words.decode(errors="replace")


def _last_error(words: str) -> str:
    lines = [line.removeprefix("ERROR: ").strip() for line in words.splitlines() if "ERROR" in line]
    full = "No space left on device" in words
    return "no space left on the disk" if full else lines[-1] if lines else ""
