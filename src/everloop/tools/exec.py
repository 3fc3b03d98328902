"""exec: a shell command in the workspace, confined by the kernel; and commands that run on in the background."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from ..core.people import Role
from ..core.tool import Circumstances, Effect, Ground, Risk
from ..errors import ToolError
from ..ports.skills import SkillFolders
from ..ports.tools import CallContext, Shown, Tool
from .decorator import tool
from .exec_risk import judged
from .ground import MOVED, grounds_of, identity_of
from .home import Home
from .kinds import named_in
from .marks import Marks
from .produced import ProducedFiles
from .sandbox.port import CommandLimits, CommandSpec, CommandView, OnOutput, Outcome, Sandbox, be_silent
from .sandbox.view import shell_path
from .skill_paths import VARIABLE, variable_of
from .workspace import Workspace

_LONGEST_COMMAND = 120_000  # bytes; the kernel takes 128 KiB in one argument
_IDLE = 3600.0
_SECONDS = 60  # that a command has, if nothing else is said
_SLACK = 30.0  # seconds for starting and ending, beside the command's own
_PART = 16_000
_HOSTS_SHOWN = 12

Told = Callable[[CallContext, str], None]
"""Is told what a running command says, piece by piece."""


class Shell(Struct, frozen=True):
    """Where and how commands run: `env` is all of their environment, `longest` the most seconds one may ask for.

    `free` says that nothing may confine them. `home` is what they do not see, `marks` knows which files hold strangers'
    words; `produced` finds what they write; the folders of `skills` can be read, each named by a variable."""

    sandbox: Sandbox
    view: CommandView
    env: Mapping[str, str]
    limits: CommandLimits = CommandLimits()
    longest: int = 600
    free: bool = False
    told: Told | None = None
    home: Home | None = None
    marks: Marks | None = None
    produced: ProducedFiles | None = None
    skills: SkillFolders | None = None

    @property
    def seconds(self) -> float:
        """How long a tool may take that waits for a command."""
        return self.longest + _SLACK

    @property
    def scene(self) -> str:
        """What decides, beside its own words, what a command does."""
        words = [*sorted(self.env), "free" if self.free else "confined", *self.view.network]
        return f"{self.view.workspace} {' '.join(words)}"

    @property
    def leaves(self) -> bool:
        """Whether commands can reach more than was named: then nothing that they have read is sure to stay here."""
        return self.free or any(host.startswith("*") and host.count(".") < 2 for host in self.view.network)

    @property
    def networked(self) -> bool:
        """Whether commands can read what strangers wrote."""
        return self.free or bool(self.view.network)

    def described(self, run: Tool) -> Tool:
        """A tool that also tells the model which hosts its commands reach."""
        text = f"{run.spec.description}\n\n{reachable(self.view.network, self.free)}"
        return structs.replace(run, spec=structs.replace(run.spec, description=text))

    def risk_of_command(self, args: dict[str, Any], situation: Circumstances) -> Risk:
        risk = judged(args["command"], args.get("cwd") or ".")
        background = bool(args.get("background"))
        seconds = 0 if background else int(self.limited(args.get("timeout") or _SECONDS).seconds)
        return structs.replace(risk, leaves=self.leaves, background=background, seconds=seconds)

    def grounds_of_command(self, args: dict[str, Any]) -> tuple[Ground, ...]:
        return grounds_of(Workspace(self.view.workspace, hidden=self.home), args.get("cwd") or ".")

    def risk_of_input(self, args: dict[str, Any], situation: Circumstances) -> Risk:
        return Risk("medium", mutates=True, leaves=self.leaves)

    def limited(self, timeout: int) -> CommandLimits:
        return structs.replace(self.limits, seconds=min(timeout, self.longest))

    def job(self, argv: tuple[str, ...], cwd: str, limits: CommandLimits, ground: str = "") -> CommandSpec:
        """Raises ToolError when the folder is not one of the workspace, or not the one that it was allowed in, or the
        home has been moved."""
        workspace = Workspace(self.view.workspace, hidden=self.home)
        with workspace.folder(cwd) as found:
            folder = self.view.workspace.joinpath(*workspace.parts_of(cwd))
            if ground and identity_of(found) != ground:
                raise ToolError(MOVED.format(cwd))
        return CommandSpec(argv, self.view, folder, self.env, limits, ground=ground)

    async def run(self, context: CallContext, job: CommandSpec, text: str) -> Shown:
        """What the model is told of a command that was run for it. `text` is what it was told to do."""
        name = self.sandbox.name(context, job.background)
        if self.skills and VARIABLE in text:
            job = await self._with_skills(self.skills, context, job)
        before = await self.produced.look() if self.produced and not job.background else None
        try:
            outcome = await self.sandbox.run(context, job, self._listener(context))
        except ToolError as error:
            raise ToolError(str(error), background=name if job.background else "") from error
        told = await self.told_of(_shown(outcome, job.limits, name), text)
        return await self.produced.add(told, before, context) if self.produced and before else told

    async def _with_skills(self, skills: SkillFolders, context: CallContext, job: CommandSpec) -> CommandSpec:
        """Each folder takes bubblewrap its time, so they are there for commands that name one."""
        places = (await skills.places(context.principal, context.role)).values()
        outside = tuple(Path(each.folder) for each in places if not each.own)
        folders = {variable_of(each.name): os.path.join(self.view.workspace, each.folder) for each in places}
        view = structs.replace(job.view, readable=(*job.view.readable, *outside))
        return structs.replace(job, view=view, env={**folders, **job.env})

    async def find(self, context: CallContext, text: str, timeout: int = 60, background: bool = False) -> Shown | None:
        """What `run` would have said to a worker that has died meanwhile; None if the command was never begun."""
        outcome = await self.sandbox.find(context, background, self._listener(context))
        name = self.sandbox.name(context, background)
        return None if outcome is None else await self.told_of(_shown(outcome, self.limited(timeout), name), text)

    async def told_of(self, shown: Shown, text: str = "") -> Shown:
        """Whose words a command may have printed: with a network anyone's; those of a page or a letter that it names;
        and those that lie in the workspace, for nobody sees which files it reads."""
        if self.networked:
            return structs.replace(shown, origin="a command with a network")
        if kind := named_in(text):
            return structs.replace(shown, origin=f"a command with .{kind}")
        strange = self.marks and await self.marks.found_beneath(self.view.workspace)
        return structs.replace(shown, origin=f"a command beside {strange}") if strange else shown

    def _listener(self, context: CallContext) -> OnOutput:
        told = self.told
        return (lambda text: told(context, text)) if told else be_silent


def exec_tools(shell: Shell) -> tuple[Tool, ...]:
    """exec, exec_output, exec_input and exec_stop."""
    return (exec_tool(shell), exec_output_tool(shell), exec_input_tool(shell), exec_stop_tool(shell))


def exec_tool(shell: Shell) -> Tool:
    @tool(
        Effect.VERIFIABLE,
        name="exec",
        seconds=shell.seconds,
        permission=Role.USER,
        risk=shell.risk_of_command,
        scene=shell.scene,
        outside=shell.networked,
    )
    async def run(
        command: Annotated[str, "As for bash -c"],
        context: CallContext,
        timeout: Annotated[int, "Seconds at most", Meta(ge=1)] = _SECONDS,
        cwd: Annotated[str, "Folder"] = ".",
        background: Annotated[bool, "Do not wait; see exec_output"] = False,
        why: Annotated[str, "What it is for"] = "",
    ) -> Shown:
        """Run a shell command in the workspace, in a sandbox.

        It sees the workspace and the system's programs alone. What it has started ends with it; for what must go on,
        use background.
        """
        if "\0" in command or len(command.encode("utf-8", "replace")) > _LONGEST_COMMAND:
            raise ToolError("a command holds no NUL and at most 120,000 bytes; write a longer one into a file")
        limits = shell.limited(timeout)
        if background:
            limits = structs.replace(limits, seconds=0, idle=_IDLE)
        argv = (shell_path(), "-c", command.encode("utf-8", "replace").decode())
        job = structs.replace(shell.job(argv, cwd, limits, context.ground), background=background)
        return await shell.run(context, job, command)

    async def verify(args: dict[str, Any], context: CallContext) -> Shown | None:
        seconds = args.get("timeout") or _SECONDS
        return await shell.find(context, args["command"], seconds, bool(args.get("background")))

    return shell.described(structs.replace(run, verify=verify, ground=shell.grounds_of_command))


def exec_output_tool(shell: Shell) -> Tool:
    @tool(Effect.READ, seconds=shell.seconds, permission=Role.USER, polls=True)
    async def exec_output(
        id: Annotated[str, "As exec has told"],
        context: CallContext,
        offset: Annotated[int, "The byte to begin with", Meta(ge=0)] = 0,
        wait: Annotated[int, "Seconds to wait for more", Meta(ge=0)] = 0,
    ) -> Shown:
        """Read what a command in the background has said, and whether it still runs."""
        seconds = min(wait, shell.longest)
        outcome, after = await shell.sandbox.output(context.thread, _checked(id), offset, _PART, seconds)
        state = "it runs" if outcome.status == "running" else _how_it_ended(outcome, shell.limits)
        return await shell.told_of(Shown(f"[{state}; read on with offset={after}]\n{_both(outcome)}"))

    return exec_output


def exec_input_tool(shell: Shell) -> Tool:
    @tool(Effect.UNSAFE, permission=Role.USER, risk=shell.risk_of_input, scene=shell.scene, outside=shell.networked)
    async def exec_input(
        id: Annotated[str, "As exec has told"],
        text: Annotated[str, "With a newline at its end"],
        context: CallContext,
    ) -> Shown:
        """Write to the input of a command in the background."""
        data = text.encode("utf-8", "replace")
        try:
            await shell.sandbox.input(context.thread, _checked(id), data.decode())
        except ToolError as error:  # a part of it may have been read
            raise ToolError(str(error), background=id) from error
        return Shown(f"Wrote {len(data)} bytes.", background=id)

    return exec_input


def exec_stop_tool(shell: Shell) -> Tool:
    @tool(Effect.IDEMPOTENT, permission=Role.USER)
    async def exec_stop(id: Annotated[str, "As exec has told"], context: CallContext) -> str:
        """End a command in the background, with all that it started."""
        ended = await shell.sandbox.stop(context.thread, _checked(id))
        return "It has been ended." if ended else "It was not running."

    return exec_stop


def reachable(hosts: tuple[str, ...], free: bool = False) -> str:
    """What the model is told of the network."""
    if free:
        return "Whether it has a network depends on this machine."
    if not hosts:
        return "It has no network."
    shown = ", ".join(hosts[:_HOSTS_SHOWN]) + (" and others" if len(hosts) > _HOSTS_SHOWN else "")
    where = "all public hosts" if "*" in hosts else f"only {shown}"
    return f"Over HTTP and HTTPS it reaches {where}, through the proxy that its environment names."


def _checked(name: str) -> str:
    """A name is a part of a path, so it holds nothing but what our names hold."""
    if not name.startswith("b") or not name.replace("-", "").isalnum() or not name.isascii():
        raise ToolError(f"{name[:60]!r} is not an id of a command in the background")
    return name


def _shown(outcome: Outcome, limits: CommandLimits, name: str) -> Shown:
    return Shown(said(outcome, limits, name), background=name if outcome.status == "running" else "")


def said(outcome: Outcome, limits: CommandLimits, name: str) -> str:
    """What the model is told of a command."""
    if outcome.status == "running":
        return f"It runs in the background as {name}. It ends after an hour in which it says nothing and is not read."
    return f"[{_how_it_ended(outcome, limits)}]\n{_both(outcome)}"


def _both(outcome: Outcome) -> str:
    """What it said on stdout, and under a heading what it said on stderr, if it did."""
    if not outcome.stderr:
        return outcome.output
    line = "" if outcome.output.endswith("\n") or not outcome.output else "\n"
    return f"{outcome.output}{line}[stderr]\n{outcome.stderr}"


def _how_it_ended(outcome: Outcome, limits: CommandLimits) -> str:
    match outcome.status:
        case "exited" | "running":
            # How long exactly a quick one took would make two results differ that are the same.
            took = f", {outcome.seconds:.0f} s" if outcome.seconds >= 1 else ""
            return f"exit code {outcome.code}{took}"
        case "time":
            return f"ended after {limits.seconds:g} s, its time limit"
        case "memory":
            return f"ended because it used more than {limits.memory >> 20} MiB of memory"
        case "machine":
            return "ended because the machine was running out of memory"
        case "processes":
            return f"ended because it had more than {limits.processes} processes and threads"
        case "flood":
            return f"ended because it wrote more than {limits.flood >> 20} MiB of output"
        case "disk":
            return "ended because its output could not be kept: the disk is full"
        case "growth":
            return f"ended because it added more than {limits.disk >> 20} MiB to the disk; what it wrote is still there"
        case "files":
            return f"ended because it made more than {limits.files:,} files; they are still there"
        case "full":
            return "ended because it filled a disk that has little left; what it wrote is still there"
        case "idle":
            return "ended after an hour without output"
        case "stopped":
            return "ended because it was told to stop"
