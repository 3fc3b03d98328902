"""The gateway as a service of the machine: the text of a systemd unit, and of a property list for launchd."""

import plistlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

NAME = "everloop"
LABEL = "dev.everloop.gateway"
SUBGROUP_SINCE = 254  # the version of systemd that knows DelegateSubgroup=


class GatewayService(Struct, frozen=True):
    """What is to run, with absolute paths. `user` is whose it is, where the whole system has it; `stop_seconds` lets
    what runs end or be put down."""

    command: tuple[str, ...]
    home: Path
    path: str
    stop_seconds: int
    user: str = ""
    systemd: int = 0  # its version
    setuid_sandbox: bool = False  # bubblewrap needs the rights of its file's owner here


def systemd_unit(service: GatewayService) -> str:
    """Nothing here makes a mount namespace or filters system calls: commands of the agent are confined by bubblewrap
    or Landlock, which need to do both themselves. The control group is delegated, so that theirs are below it."""
    environment = {"EVERLOOP_HOME": str(service.home), "PATH": service.path}
    lines = [
        "# Written by `everloop service install`, which writes it again; changes of yours: systemctl edit",
        "[Unit]",
        "Description=everloop gateway",
        *(("After=network-online.target", "Wants=network-online.target") if service.user else ()),
        "StartLimitIntervalSec=300",
        "StartLimitBurst=10",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={' '.join(quoted(word.replace('$', '$$')) for word in service.command)}",
        *(f"Environment={quoted(f'{name}={value}')}" for name, value in environment.items()),
        f"EnvironmentFile=-{_specifier_free(str(service.home / 'service.env'))}",
        f"WorkingDirectory=-{_specifier_free(str(service.home))}",  # the gateway makes it
        *((f"User={service.user}",) if service.user else ()),
        "Restart=on-failure",
        "RestartSec=5",
        "KillMode=mixed",
        f"TimeoutStopSec={service.stop_seconds}",
        "OOMPolicy=continue",
        "Delegate=yes",
        *(("DelegateSubgroup=everloop",) if service.systemd >= SUBGROUP_SINCE else ()),
        "UMask=0077",
        "LimitNOFILE=8192:524288",
        *(() if service.setuid_sandbox else ("NoNewPrivileges=yes",)),
        "",
        "[Install]",
        f"WantedBy={'multi-user' if service.user else 'default'}.target",
        "",
    ]
    return "\n".join(lines)


def launchd_plist(service: GatewayService, label: str = LABEL) -> str:
    out = str(service.home / "logs" / "gateway.out")
    told = {
        "Label": label,
        "ProgramArguments": [*service.command],
        "EnvironmentVariables": {"EVERLOOP_HOME": str(service.home), "PATH": service.path},
        "WorkingDirectory": str(service.home),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 5,
        "ExitTimeOut": service.stop_seconds,
        "Umask": 0o077,
        "StandardOutPath": out,
        "StandardErrorPath": out,
    }
    return plistlib.dumps(told, sort_keys=False).decode()


def quoted(word: str) -> str:
    """As systemd reads words: % means something to it, and so do quotes, blanks and backslashes."""
    word = _specifier_free(word)
    if re.fullmatch(r"[\w@%+=:,./$-]+", word, re.ASCII):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _specifier_free(text: str) -> str:
    return text.replace("%", "%%")


def unseen(environ: Mapping[str, str], key_variables: Sequence[str]) -> list[str]:
    """Variables of this shell that say something to everloop, and that a service does not have."""
    ours = [name for name in environ if name.startswith("EVERLOOP_") and name != "EVERLOOP_HOME"]
    return sorted({*ours, *(name for name in key_variables if environ.get(name))})
