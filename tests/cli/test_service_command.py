"""`everloop service`: the unit as a whole, what its manager is told, and what it starts, started."""

import asyncio
import io
import os
import plistlib
import pwd
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from tests.cli.person import Person, is_one_plain_sentence
from tests.cli.test_gateway_command import start
from tests.processes import kill

from everloop.cli.service import ServicePlace, install
from everloop.cli.service_units import GatewayService, launchd_plist, quoted, systemd_unit, unseen
from everloop.cli.terminal import Terminal
from everloop.errors import EverloopError

UNIT = """\
# Written by `everloop service install`, which writes it again; changes of yours: systemctl edit
[Unit]
Description=everloop gateway
StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
Type=exec
ExecStart=/opt/everloop/bin/python -P -m everloop gateway run
Environment="EVERLOOP_HOME=/home/ann/my agent"
Environment=PATH=/opt/everloop/bin:/usr/bin
EnvironmentFile=-/home/ann/my agent/service.env
WorkingDirectory=-/home/ann/my agent
Restart=on-failure
RestartSec=5
KillMode=mixed
TimeoutStopSec=30
OOMPolicy=continue
Delegate=yes
DelegateSubgroup=everloop
UMask=0077
LimitNOFILE=8192:524288
NoNewPrivileges=yes

[Install]
WantedBy=default.target
"""
COMMAND = ("/opt/everloop/bin/python", "-P", "-m", "everloop", "gateway", "run")
SERVICE = GatewayService(COMMAND, Path("/home/ann/my agent"), "/opt/everloop/bin:/usr/bin", 30, systemd=254)
# A stand-in for the manager, which writes down what it is told.
SYSTEMCTL = """\
#!/bin/sh
echo "$@" >> "$HOME/told"
case "$*" in
    *--version*) echo "systemd 252 (252)";;
    *is-enabled*) echo enabled;;
    *is-active*) echo active;;
esac
"""


def test_the_unit_is_this_text():
    assert systemd_unit(SERVICE) == UNIT


def test_a_service_of_the_machine_says_as_whom_and_after_what():
    system = msgspec.structs.replace(SERVICE, user="ann", systemd=252, setuid_sandbox=True)
    lines = systemd_unit(system).splitlines()
    assert sorted({*lines} - {*UNIT.splitlines()}) == [
        "After=network-online.target",
        "User=ann",
        "WantedBy=multi-user.target",
        "Wants=network-online.target",
    ]
    assert {*UNIT.splitlines()} - {*lines} == {
        "DelegateSubgroup=everloop",
        "NoNewPrivileges=yes",
        "WantedBy=default.target",
    }


def test_launchd_is_told_the_same():
    assert plistlib.loads(launchd_plist(SERVICE).encode()) == {
        "Label": "dev.everloop.gateway",
        "ProgramArguments": [*COMMAND],
        "EnvironmentVariables": {"EVERLOOP_HOME": "/home/ann/my agent", "PATH": "/opt/everloop/bin:/usr/bin"},
        "WorkingDirectory": "/home/ann/my agent",
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 5,
        "ExitTimeOut": 30,
        "Umask": 0o077,
        "StandardOutPath": "/home/ann/my agent/logs/gateway.out",
        "StandardErrorPath": "/home/ann/my agent/logs/gateway.out",
    }


@pytest.mark.parametrize(
    ("word", "written"),
    [("/a/b", "/a/b"), ("a b", '"a b"'), ("50%", "50%%"), ('say "x"', '"say \\"x\\""'), ("a\\b", '"a\\\\b"')],
)
def test_words_are_quoted_as_systemd_reads_them(word: str, written: str):
    assert quoted(word) == written


def test_variables_that_the_service_does_not_have_are_named():
    environ = {"EVERLOOP_HOME": "/x", "EVERLOOP_GATEWAY__PORT": "1", "OPENAI_API_KEY": "sk", "GROQ_API_KEY": ""}
    assert unseen(environ, ["OPENAI_API_KEY", "GROQ_API_KEY"]) == ["EVERLOOP_GATEWAY__PORT", "OPENAI_API_KEY"]


def complaints_about(file: Path) -> list[str]:
    told = subprocess.run(["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False)
    return [line for line in told.stderr.splitlines() if file.name in line]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
@pytest.mark.parametrize("wrong", [False, True])
async def test_systemd_understands_the_unit(person: Person, wrong: bool):
    person.environment["EVERLOOP_HOME"] = str(person.home.with_name("my home"))
    ran = await person.run("service", "show", "--system", "--user", "root")
    text = ran.out.replace("Type=exec", "Type=execs") if wrong else ran.out
    (file := person.home.with_name("everloop.service")).write_text(text)
    assert bool(complaints_about(file)) == wrong


@pytest.fixture
def manager(person: Person) -> Path:
    """Where everything that systemctl is told is written down."""
    bin = person.home.with_name("bin")
    bin.mkdir()
    (bin / "systemctl").write_text(SYSTEMCTL)
    (bin / "systemctl").chmod(0o700)
    person.environment["PATH"] = f"{bin}:{person.environment['PATH']}"
    return Path(person.environment["HOME"]) / "told"


def orders_in(told: Path) -> list[str]:
    return [line for line in told.read_text().splitlines() if "--version" not in line and "is-" not in line]


async def test_it_is_installed_shown_and_removed(person: Person, manager: Path):
    file = Path(person.environment["HOME"]) / ".config" / "systemd" / "user" / "everloop.service"
    dry = await person.run("service", "install", "--dry-run")
    assert (dry.status, file.exists()) == (0, False)
    ran = await person.run("service", "install")
    assert (ran.status, file.read_text()) == (0, dry.out)
    assert ran.out.splitlines()[0] == f"Written: {file}"
    assert "EVERLOOP_AGENTS__DEFAULTS__MODEL" in ran.err
    assert "loginctl enable-linger" in ran.err
    assert (await person.run("service")).out == f"{file}: enabled, active.\n"
    told = await person.run("service", "status", "--json")
    assert msgspec.json.decode(told.out) == {
        "installed": True,
        "file": str(file),
        "enabled": "enabled",
        "active": "active",
    }
    gone = await person.run("service", "uninstall")
    assert (gone.status, file.exists()) == (0, False)
    again = await person.run("service", "uninstall")
    assert (again.status, is_one_plain_sentence(again.err)) == (1, True)
    assert orders_in(manager) == [
        "--user daemon-reload",
        "--user enable everloop",
        "--user restart everloop",
        "--user disable --now everloop",
        "--user daemon-reload",
    ]


async def test_without_systemctl_there_is_the_text_and_one_sentence(person: Person):
    person.environment["PATH"] = str(person.home.with_name("empty"))
    ran = await person.run("service", "install")
    assert (ran.status, "Delegate=yes" in ran.out, is_one_plain_sentence(ran.err)) == (1, True, True)


async def test_a_manager_that_cannot_be_reached_is_told_and_the_unit_stays(person: Person, manager: Path):
    program = manager.with_name("bin") / "systemctl"
    program.write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")
    ran = await person.run("service", "install")
    assert ran.status == 1
    assert "could not be started (Failed to connect to bus)" in ran.err
    assert (Path(person.environment["HOME"]) / ".config" / "systemd" / "user" / "everloop.service").exists()


async def test_a_gateway_that_runs_already_is_named(person: Person, manager: Path):
    program = manager.with_name("bin") / "systemctl"
    program.write_text(SYSTEMCTL.replace("echo active", "echo inactive"))
    gateway = await start(person, 0)
    ran = await person.run("service", "install")
    assert f"A gateway runs already (pid {gateway.process.pid})" in ran.err
    await gateway.stop()
    assert "runs already" not in (await person.run("service", "install")).err


ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root installs a service that somebody else runs")


def others() -> pwd.struct_passwd:
    """Somebody else of this machine."""
    return next(each for each in pwd.getpwall() if each.pw_uid)


@ROOT
async def test_a_service_of_somebody_else_has_their_home_and_not_that_of_who_installs_it(person: Person):
    del person.environment["EVERLOOP_HOME"]
    unit = (await person.run("service", "show", "--system", "--user", others().pw_name)).out
    assert f"Environment=EVERLOOP_HOME={others().pw_dir}/.everloop" in unit.splitlines()
    mine = (await person.run("service", "show", "--system", "--user", "root")).out
    assert f"Environment=EVERLOOP_HOME={person.environment['HOME']}/.everloop" in mine.splitlines()
    ran = await person.run("service", "show", "--system", "--user", "nobody-of-this-name")
    assert (ran.status, "there is no user 'nobody-of-this-name'" in ran.err) == (2, True)


@ROOT
@pytest.mark.parametrize("closed", [True, False])
def test_a_service_of_somebody_who_does_not_get_to_the_program_is_refused(
    person: Person, manager: Path, monkeypatch: pytest.MonkeyPatch, closed: bool
):
    monkeypatch.setenv("PATH", person.environment["PATH"])
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o700 if closed else 0o755)
        program, unit = Path(folder, "python"), Path(folder, "everloop.service")
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        service = msgspec.structs.replace(SERVICE, command=(str(program), *COMMAND[1:]), user=others().pw_name)
        place = ServicePlace("systemd", unit, ("systemctl",), is_system=True)
        installed = install(place, service, Terminal(io.StringIO(), io.StringIO()), starts=False)
        if closed:
            with pytest.raises(EverloopError, match=f"{others().pw_name} cannot run {program}"):
                asyncio.run(installed)
        else:
            assert asyncio.run(installed) == 0
        assert unit.exists() != closed


async def test_options_that_do_not_go_together_are_refused(person: Person, manager: Path):
    ran = await person.run("service", "show", "--user", "ann")
    assert (ran.status, is_one_plain_sentence(ran.err)) == (2, True)


async def test_what_the_unit_says_starts_a_gateway_that_ends_when_it_is_asked_to(person: Person, manager: Path):
    person.environment["EVERLOOP_GATEWAY__PORT"] = "0"
    unit = (await person.run("service", "show")).out
    said = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line)
    words = [line.partition("=")[2] for line in unit.splitlines() if line.startswith("Environment=")]
    environment = {**dict(shlex.split(each)[0].split("=", 1) for each in words), "EVERLOOP_GATEWAY__PORT": "0"}
    person.home.mkdir(exist_ok=True)
    (person.home / "everloop.py").write_text("raise SystemExit('planted')")  # it is no folder to import from
    command = shlex.split(said["ExecStart"])
    assert command[0] == sys.executable
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, cwd=said["WorkingDirectory"].removeprefix("-"), stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stderr is not None
        assert (await process.stderr.readline()).startswith(b"everloop gateway: http")
        os.kill(process.pid, signal.SIGTERM)
        assert await process.wait() == 0
    finally:
        await kill(process)
