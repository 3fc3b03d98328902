"""Installing the package of an MCP server, by the npm or pip that is there: from the registries that they are set to.

Nothing of what is fetched is run: npm leaves out the scripts of packages, pip takes wheels alone. It is put beside
what was there and takes its place when it is whole.
"""

import asyncio
import importlib.metadata
import importlib.util
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ...errors import ToolError
from ...readings.visible import in_one_line
from .packages import LOCK, Installation, Installed, Lock, Package, exact_command
from .programs import located

_SECONDS = 900.0
_LONGEST = 300
_LAST = 12  # lines of what was said that an error quotes
_MISSING = dict.fromkeys(("npm", "pip"), "See that the package is called so, and that its registry can be reached. ")

Tell = Callable[[str], None]


def tell_nobody(_: str) -> None:
    pass


async def install(planned: Installation, tell: Tell = tell_nobody) -> Installed:
    """Fetch it into its folder, in the place of what is there, and tell what happens. Raises ToolError."""
    target = planned.folder / "package"
    fresh = planned.folder / "package.new"
    try:
        planned.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.rmtree(fresh, ignore_errors=True)
        lock = await (_with_npm(planned, fresh, tell) if planned.kind == "npm" else _with_pip(planned, fresh, tell))
        (fresh / LOCK).write_bytes(msgspec.json.encode(lock))
        await asyncio.to_thread(_replace, fresh, target)
    except OSError as error:
        raise ToolError(f"{planned.package} could not be installed: {error}") from error
    finally:
        await asyncio.to_thread(shutil.rmtree, fresh, ignore_errors=True)
    return Installed(exact_command(planned, lock.version), lock.digest, lock.packages)


def _replace(fresh: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)


async def _with_npm(planned: Installation, folder: Path, tell: Tell) -> Lock:
    await asyncio.to_thread(_make_empty, folder)
    npm = located("npm", os.environ.get("PATH", ""))
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--save-exact", "--omit=dev", "--no-update-notifier")
    spec = f"{planned.package}@{planned.version or 'latest'}"
    await _run("npm", (npm, "install", "--prefix", str(folder), *options, spec), folder, tell)
    packages = _npm_packages(folder)
    about = _read_json(folder / "node_modules" / planned.package / "package.json")
    script = _program_of(about, planned)
    return Lock(
        kind="npm",
        package=planned.package,
        version=str(about["version"]),
        program=planned.program,
        run=("node", f"node_modules/{planned.package}/{script.removeprefix('./')}"),
        packages=packages,
    )


def _make_empty(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / "package.json").write_text('{"private": true}')


def _npm_packages(folder: Path) -> tuple[Package, ...]:
    """Raises ToolError for one whose archive has no hash, as one that does not come from a registry."""
    found: list[Package] = []
    for place, entry in _read_json(folder / "package-lock.json")["packages"].items():
        if not place or not (folder / place).exists():  # itself, or for other machines
            continue
        name = place.rpartition("node_modules/")[2]
        if not entry.get("integrity"):
            raise ToolError(f"{name} does not come from a registry, so nobody can say later whether it is the same")
        found.append(Package(name, entry["version"], entry["integrity"]))
    return tuple(sorted(found))


def _program_of(about: dict[str, Any], planned: Installation) -> str:
    """The script to run. Raises ToolError where it is not clear which one."""
    given = about.get("bin") or {}
    short = planned.package.rpartition("/")[2]
    programs: dict[str, str] = {short: given} if isinstance(given, str) else given
    wanted = planned.program or (next(iter(programs)) if len(programs) == 1 else short)
    if wanted not in programs:
        names = ", ".join(sorted(programs)) or "none"
        raise ToolError(
            f"{planned.package} has no program {wanted} (it has: {names}); write npx -y --package {planned.package} "
            "PROGRAM"
        )
    return programs[wanted]


async def _with_pip(planned: Installation, folder: Path, tell: Tell) -> Lock:
    own = importlib.util.find_spec("pip") is not None
    python = folder / "bin" / "python"
    bare = ("--without-pip",) if own else ()
    await _run("venv", (sys.executable, "-m", "venv", *bare, str(folder)), folder.parent, tell)
    pip = (sys.executable, "-m", "pip", "--python", str(python)) if own else (str(python), "-m", "pip")
    report = folder / "report.json"
    options = ("--only-binary", ":all:", "--no-input", "--disable-pip-version-check", "--report", str(report))
    spec = f"{planned.package}=={planned.version}" if planned.version else planned.package
    await _run("pip", (*pip, "install", *options, "--progress-bar", "off", spec), folder.parent, tell)
    entries = _read_json(report)["install"]
    packages = tuple(sorted(map(_wheel, entries)))
    asked = next(entry["metadata"] for entry in entries if entry.get("requested"))
    return Lock(
        kind="pypi",
        package=planned.package,
        version=asked["version"],
        program=planned.program,
        run=("bin/python", f"bin/{_script_of(folder, planned, asked['name'])}"),  # so that its folder can be renamed
        packages=packages,
    )


def _wheel(entry: dict[str, Any]) -> Package:
    """Raises ToolError for one that is no archive, of which nobody can say later whether it is the same."""
    about = entry["metadata"]
    digest = entry["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
    if not digest:
        raise ToolError(f"{about['name']} has no hash by which it would be known")
    return Package(about["name"], about["version"], f"sha256:{digest}")


def _script_of(folder: Path, planned: Installation, name: str) -> str:
    """Raises ToolError where it is not clear which one."""
    places = [str(place) for place in folder.glob("lib/python*/site-packages")]
    found = next(iter(importlib.metadata.distributions(name=name, path=places)))
    scripts = [entry.name for entry in found.entry_points if entry.group == "console_scripts"]
    wanted = planned.program or (scripts[0] if len(scripts) == 1 else name)
    if not (folder / "bin" / wanted).is_file():
        raise ToolError(
            f"{planned.package} has no program {wanted} (it has: {', '.join(scripts) or 'none'}); write uvx --from "
            f"{planned.package} PROGRAM"
        )
    return wanted


async def _run(name: str, argv: Sequence[str], folder: Path, tell: Tell) -> None:
    """Run it to its end, and tell what it says. Raises ToolError if it fails, with the last that it said."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
        start_new_session=True,
    )
    said: list[str] = []
    try:
        async with asyncio.timeout(_SECONDS):
            assert process.stdout is not None
            async for line in process.stdout:
                said = [*said, in_one_line(line.decode(errors="replace").rstrip())[:_LONGEST]][-_LAST:]
                tell(said[-1])
            code = await process.wait()
    except TimeoutError:
        raise ToolError(f"{name} was not done within {_SECONDS / 60:g} minutes") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if code:
        raise ToolError(f"{name} failed. {_MISSING.get(name, '')}The last that it said:\n" + "\n".join(said))


def _read_json(path: Path) -> Any:
    return json.loads(path.read_bytes())
