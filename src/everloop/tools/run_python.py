"""run_python: a Python program in the workspace, confined by the kernel as a shell command is."""

from typing import Annotated, Any

from msgspec import Meta, structs

from ..core.people import Role
from ..core.tool import Effect
from ..errors import ToolError
from ..ports.tools import CallContext, Shown, Tool
from .decorator import tool
from .exec import Shell
from .sandbox.port import SCRIPT
from .sandbox.view import python

_LONGEST = 1_000_000


def run_python_tool(shell: Shell) -> Tool:
    @tool(
        Effect.VERIFIABLE,
        seconds=shell.seconds,
        permission=Role.USER,
        risk=shell.risk_of_input,
        scene=shell.scene,
        outside=shell.networked,
    )
    async def run_python(
        code: Annotated[str, "The whole program"],
        context: CallContext,
        timeout: Annotated[int, "Seconds at most", Meta(ge=1)] = 60,
    ) -> Shown:
        """Run a Python program in the workspace, in the same sandbox as exec.

        What it prints is the result. It has the standard library and the system's packages.
        """
        if len(code) > _LONGEST:
            raise ToolError(f"the program has more than {_LONGEST:,} characters; write it into files and use exec")
        program, needed = python()
        job = shell.job((program, "-I", SCRIPT), ".", shell.limited(timeout))
        view = structs.replace(job.view, readable=(*job.view.readable, *needed))
        script = code.encode("utf-8", "replace").decode()
        return await shell.run(context, structs.replace(job, view=view, script=script), code)

    async def verify(args: dict[str, Any], context: CallContext) -> Shown | None:
        return await shell.find(context, args["code"], args.get("timeout") or 60)

    return shell.described(structs.replace(run_python, verify=verify))
