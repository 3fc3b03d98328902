"""`everloop service`: the gateway runs by itself, as a service of systemd or launchd, and is started again."""

import argparse
import asyncio
import os
import pwd
import re
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..app.keys import key_variables
from ..app.whereabouts import running_gateway
from ..errors import EverloopError
from ..settings import home_of, load
from .service_units import LABEL, NAME, GatewayService, launchd_plist, systemd_unit, unseen
from .table import to_json
from .terminal import Terminal, WrongUse

MORE = (
    "Without --system it is a service of yours, which begins when you log in; so that it begins with the machine: "
    "loginctl enable-linger. Variables of your shell are not the service's: keep keys in the vault, or write lines "
    "of NAME=VALUE into service.env in the home."
)
MANAGERS = ("systemd", "launchd")
GRACE = 25  # seconds beside agents.shutdown_seconds, for channels to say goodbye and files to be closed
NO_SYSTEMCTL = (
    "there is no systemctl here, so nothing was installed. Give this unit to whatever starts services on this "
    "machine, or run `everloop gateway` in what you have (tmux, a container, cron's @reboot)"
)


class ServicePlace(Struct, frozen=True):
    """Where a service is written, and how its manager is spoken to."""

    manager: str
    file: Path
    control: tuple[str, ...]  # the words that each of its commands begins with
    is_system: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    status = words.add_parser("status", help="whether it is installed and runs (the default)")
    install = words.add_parser("install", help="write the service, have it begin at every start, and start it")
    uninstall = words.add_parser("uninstall", help="stop it and remove what was written; the home stays")
    logs = words.add_parser("logs", help="what it has printed; `everloop logs` has the details of errors")
    show = words.add_parser("show", help="print what would be written, and where")
    for word in (status, install, uninstall, logs, show):
        word.add_argument("--system", action="store_true", help="a service of the whole machine (systemd, as root)")
    for word in (install, show):
        word.add_argument("--user", metavar="USER", default="", help="with --system: as whom it runs")
    install.add_argument("--dry-run", action="store_true", help="print what would be written, and do nothing")
    install.add_argument("--no-start", action="store_true", help="write it, and neither enable nor start it")
    show.add_argument("--manager", choices=MANAGERS, default="", help="for which (default: that of this machine)")
    logs.add_argument("-n", "--lines", metavar="N", type=int, default=50, help="the last N lines (default 50)")
    logs.add_argument("-f", "--follow", action="store_true", help="go on with what comes from now on")
    status.add_argument("--json", action="store_true", help="print one JSON object instead")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    place = place_of(getattr(arguments, "manager", ""), system=arguments.system)
    match arguments.word:
        case "install" if not arguments.dry_run:
            return await install(
                place, await service_of(arguments.user, place), terminal, starts=not arguments.no_start
            )
        case "install" | "show":
            text = text_of(await service_of(arguments.user, place), place)
            terminal.note(f"This would be {place.file}:")
            terminal.answer(text.removesuffix("\n"))
            return 0
        case "uninstall":
            return await _uninstall(place, terminal)
        case "logs":
            return await _logs(place, arguments.lines, arguments.follow)
        case _:
            return await _status(place, arguments.json, terminal)


def place_of(manager: str = "", *, system: bool = False) -> ServicePlace:
    manager = manager or ("launchd" if sys.platform == "darwin" else "systemd")
    person = Path.home()
    if manager == "launchd":
        if system:
            raise WrongUse("--system is for systemd; on this machine the service is yours")
        file = person / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        return ServicePlace(manager, file, ("launchctl",))
    if system:
        return ServicePlace(manager, Path("/etc/systemd/system") / f"{NAME}.service", ("systemctl",), True)
    config = Path(os.environ.get("XDG_CONFIG_HOME") or person / ".config")
    return ServicePlace(manager, config / "systemd" / "user" / f"{NAME}.service", ("systemctl", "--user"))


async def service_of(user: str, place: ServicePlace) -> GatewayService:
    """Raises WrongUse, SettingsError."""
    if user and not place.is_system:
        raise WrongUse("--user goes with --system; a service of yours runs as you")
    if place.is_system:
        user = user or os.environ.get("SUDO_USER") or os.environ.get("USER") or "root"
    home = _home_for(user).absolute()
    bin = str(Path(sys.executable).parent)
    folders = [bin, *(each for each in os.environ.get("PATH", os.defpath).split(":") if each and each != bin)]
    sandbox = shutil.which("bwrap")
    return GatewayService(
        command=(sys.executable, "-P", "-m", "everloop", "gateway", "run"),
        home=home,
        path=":".join(folders),
        stop_seconds=int(load(home, os.environ).agents.shutdown_seconds) + GRACE,
        user=user,
        systemd=await _systemd_version(),
        setuid_sandbox=bool(sandbox and os.stat(sandbox).st_mode & stat.S_ISUID),
    )


def _home_for(user: str) -> Path:
    """Theirs, not that of whoever installs it, as by sudo; unless EVERLOOP_HOME says where. Raises WrongUse."""
    if not user:
        return home_of(os.environ)
    try:
        person = pwd.getpwnam(user)
    except KeyError as error:
        raise WrongUse(f"there is no user {user!r} on this machine") from error
    is_me = person.pw_uid == os.getuid()
    return home_of(os.environ if is_me else {**os.environ, "HOME": person.pw_dir})


def text_of(service: GatewayService, place: ServicePlace) -> str:
    return systemd_unit(service) if place.manager == "systemd" else launchd_plist(service)


async def install(place: ServicePlace, service: GatewayService, terminal: Terminal, *, starts: bool = True) -> int:
    """Raises EverloopError."""
    text = text_of(service, place)
    if place.manager == "systemd" and not shutil.which("systemctl"):
        terminal.answer(text.removesuffix("\n"))
        raise EverloopError(NO_SYSTEMCTL)
    if place.manager == "launchd":  # it makes no folder for what it writes
        (service.home / "logs").mkdir(parents=True, exist_ok=True, mode=0o700)
    await _check_user(service)
    await _tell_running(place, service, terminal)
    try:
        place.file.parent.mkdir(parents=True, exist_ok=True)
        place.file.write_text(text)
    except OSError as error:
        hint = "; --system needs root" if place.is_system else ""
        raise EverloopError(f"{place.file} cannot be written ({error.strerror}){hint}") from error
    terminal.answer(f"Written: {place.file}")
    _tell_unseen(service, terminal)
    if starts:
        if place.manager == "launchd":  # it takes none that it has already
            await _ran(*place.control, "bootout", f"gui/{os.getuid()}/{LABEL}")
        for words in _starting(place):
            await _control(place, words, f"{place.file} is written, but could not be started")
        terminal.answer("The gateway runs, and comes back after a failure and at every start.")
    _tell_linger(place, terminal)
    return 0


async def _check_user(service: GatewayService) -> None:
    """Whether somebody else gets to this installation, which may lie in a home that is closed to them. Only root can
    try it. Raises EverloopError."""
    if not service.user or os.getuid():
        return
    person, words = pwd.getpwnam(service.user), (service.command[0], "-I", "-c", "import everloop")
    try:
        tried = await asyncio.create_subprocess_exec(
            *words, cwd="/", user=person.pw_uid, group=person.pw_gid, extra_groups=(), stderr=asyncio.subprocess.DEVNULL
        )
        failed = bool(await tried.wait())
    except OSError:
        failed = True
    if failed:
        raise EverloopError(
            f"{service.user} cannot run {service.command[0]}, or what is installed beside it: install everloop where "
            "they get to it, as in /opt/everloop, and call it from there"
        )


def _starting(place: ServicePlace) -> list[tuple[str, ...]]:
    if place.manager == "launchd":
        return [("bootstrap", f"gui/{os.getuid()}", str(place.file))]
    return [("daemon-reload",), ("enable", NAME), ("restart", NAME)]


async def _tell_running(place: ServicePlace, service: GatewayService, terminal: Terminal) -> None:
    """Two gateways do not share a port."""
    now = running_gateway(service.home)
    if now.running and (await standing(place))["active"] != "active":
        terminal.tell(
            f"A gateway runs already (pid {now.pid}); stop it, and the service takes its place within seconds."
        )


def _tell_unseen(service: GatewayService, terminal: Terminal) -> None:
    if names := unseen(os.environ, key_variables()):
        terminal.note(
            f"The service does not see what is set in this shell: {', '.join(names)}. Keep keys in the vault "
            f"(everloop models key set NAME), settings in the file (everloop config set), or write both into "
            f"{service.home / 'service.env'}."
        )


def _tell_linger(place: ServicePlace, terminal: Terminal) -> None:
    if place.manager == "systemd" and not place.is_system:
        terminal.note("It ends when you log out, and begins when you log in. To have it always: loginctl enable-linger")


async def _uninstall(place: ServicePlace, terminal: Terminal) -> int:
    if not place.file.exists():
        raise EverloopError(f"no service is installed: there is no {place.file}")
    stopping = ("bootout", f"gui/{os.getuid()}/{LABEL}") if place.manager == "launchd" else ("disable", "--now", NAME)
    status, told = await _ran(*place.control, *stopping)
    if status:
        terminal.note(f"It could not be stopped ({told or status}); what was written is removed all the same.")
    place.file.unlink()
    if place.manager == "systemd":
        await _ran(*place.control, "daemon-reload")
    terminal.answer(f"Removed: {place.file}. The home stays.")
    return 0


async def _logs(place: ServicePlace, lines: int, follow: bool) -> int:
    if place.manager == "launchd":
        words = ["tail", "-n", str(lines), str(home_of(os.environ) / "logs" / "gateway.out")]
    else:
        words = ["journalctl", *place.control[1:], "-u", NAME, "-n", str(lines), "--no-pager"]
    if not shutil.which(words[0]):
        raise EverloopError(f"there is no {words[0]} here; what went wrong is in: everloop logs")
    process = await asyncio.create_subprocess_exec(*words, *(["-f"] if follow else []))
    return await process.wait()


async def _status(place: ServicePlace, as_json: bool, terminal: Terminal) -> int:
    told = await standing(place)
    if as_json:
        terminal.answer(to_json(told))
    elif not told["installed"]:
        terminal.answer("No service is installed. `everloop service install` has the gateway run by itself.")
    else:
        terminal.answer(f"{place.file}: {told['enabled']}, {told['active']}.")
        _tell_linger(place, terminal)
    return 1 if told["active"] == "failed" else 0


async def standing(place: ServicePlace) -> dict[str, Any]:
    """How a service stands, as its manager tells it."""
    told: dict[str, Any] = {"installed": place.file.exists(), "file": str(place.file), "enabled": "", "active": ""}
    if not told["installed"]:
        return told
    if place.manager == "launchd":
        status, _ = await _ran(*place.control, "print", f"gui/{os.getuid()}/{LABEL}")
        return {**told, "enabled": "enabled", "active": "inactive" if status else "active"}
    for what in ("enabled", "active"):
        _, said = await _ran(*place.control, f"is-{what}", NAME)
        told[what] = said if re.fullmatch(r"[a-z-]+", said) else "unknown"  # else why it cannot be told
    return told


async def _control(place: ServicePlace, words: tuple[str, ...], failed: str) -> None:
    status, told = await _ran(*place.control, *words)
    if status:
        again = " ".join((*place.control, "enable", "--now", NAME) if place.manager == "systemd" else place.control)
        raise EverloopError(f"{failed} ({' '.join(told.split()) or f'status {status}'}). Where it can be: {again}")


async def _ran(*words: str) -> tuple[int, str]:
    """How a program ended, and what it said."""
    if not shutil.which(words[0]):
        return 127, f"there is no {words[0]} here"
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*words, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    return process.returncode or 0, (out or err).decode(errors="replace").strip()


async def _systemd_version() -> int:
    _, told = await _ran("systemctl", "--version")
    words = told.split()
    return int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0
