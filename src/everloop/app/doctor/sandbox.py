"""Checks: how commands of the agent are confined, and that they truly are: one is run that tries to get out."""

import secrets
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ...errors import ToolError
from ...ports.doctor import Diagnosis
from ...ports.tools import CallContext
from ...tools.sandbox import landlock
from ...tools.sandbox.choose import Confinement, Unconfined, choose_way
from ...tools.sandbox.commands import SandboxedCommands
from ...tools.sandbox.door import Door
from ...tools.sandbox.port import CommandSpec, CommandView
from .check import Check, Patient, broken, fine, skipped

# Of the kernel, which forbid namespaces to who is not root: as they are then, and as they have to be.
FORBIDDING = {
    "user/max_user_namespaces": ("0", "15000"),
    "kernel/unprivileged_userns_clone": ("0", "1"),  # Debian's
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),  # Ubuntu's, since 24.04
}
PROBE = "cat {outside}; (echo out > {written}) 2>/dev/null; echo in > inside && cat inside"


async def look_at_way(patient: Patient) -> Sequence[Diagnosis]:
    try:
        way = await _way(patient)
    except ToolError as error:
        return [broken(str(error), f"{how_to_allow_namespaces()}Until then the agent runs no commands; all else works")]
    if isinstance(way, Unconfined):
        return [
            broken(
                "commands run without any wall, as tools.exec.unsafe_without_sandbox allows it",
                f"{how_to_allow_namespaces()}Install bubblewrap, and take unsafe_without_sandbox out of the settings",
            )
        ]
    version = landlock.version()
    kernel = f"; Landlock {version}" if version else ""
    return fine(f"commands are confined by {way.name}{kernel}")


def how_to_allow_namespaces(kernel: Path = Path("/proc/sys")) -> str:
    """ "" where nothing forbids them."""
    for name, (forbids, allows) in FORBIDDING.items():
        try:
            if (kernel / name).read_text().strip() == forbids:
                return f"Allow user namespaces: sudo sysctl {name.replace('/', '.')}={allows}. "
        except OSError:
            continue
    return ""


async def _way(patient: Patient) -> Confinement:
    """Raises ToolError."""
    if patient.confine:
        chosen: Confinement = await patient.confine()
        return chosen
    return await choose_way(unsafe=patient.chosen.tools.exec.unsafe_without_sandbox)


async def look_whether_it_confines(patient: Patient) -> Sequence[Diagnosis]:
    try:
        way = await _way(patient)
    except ToolError:
        return skipped("there is no sandbox")
    if isinstance(way, Unconfined):
        return skipped("commands run without a sandbox, as the settings want it")
    with tempfile.TemporaryDirectory(prefix="everloop-doctor-") as folder:
        try:
            return await _probe(Path(folder), way)
        except ToolError as error:
            return [broken(f"no command can be run in the sandbox: {error}", "everloop logs tells more")]


async def _probe(folder: Path, way: Confinement) -> Sequence[Diagnosis]:
    """What lies beside the workspace must neither be read nor made; what lies in it must."""
    workspace, outside, written = folder / "workspace", folder / "outside", folder / "written"
    workspace.mkdir()
    secret = secrets.token_hex(16)
    outside.write_text(secret)

    async def chosen() -> Confinement:
        return way

    door = Door(folder / "spool")
    sandbox = SandboxedCommands(folder / "spool", chosen, door=door)
    spec = CommandSpec(
        ("/bin/sh", "-c", PROBE.format(outside=outside, written=written)), CommandView(workspace), workspace
    )
    try:
        outcome = await sandbox.run(CallContext("doctor:1:0", "doctor", "doctor", "owner"), spec)
    finally:
        await sandbox.close()
    got_out = [
        what
        for what, is_so in (("read", secret in outcome.output), ("written", written.exists()))
        if is_so
    ]  # fmt: skip
    if got_out:
        return [
            broken(
                f"the sandbox ({way.name}) does not confine: a file outside of it was {' and '.join(got_out)}",
                "Run no commands (tools.disabled = ['exec*', 'run_python']) and install another bubblewrap",
            )
        ]
    if "in\n" not in outcome.output:
        return [
            broken(f"a command in the sandbox ended with {outcome.status} {outcome.code}", "everloop logs tells more")
        ]
    return fine(f"a command that tried to leave the sandbox ({way.name}) could not; its limits {door.limits}")


CHECKS = (
    Check("sandbox", "which sandbox confines commands; user namespaces, Landlock", look_at_way, seconds=30),
    Check(
        "sandbox-holds",
        "a command that tries to leave the sandbox cannot; who holds it to its limits",
        look_whether_it_confines,
        seconds=40,
    ),
)
