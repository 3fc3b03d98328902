"""apply_patch: several files changed at once."""

from typing import Annotated

from ..core.people import Role
from ..core.tool import Effect
from ..ports.tools import CallContext, Result, Tool
from .changes import Changes
from .decorator import tool
from .workspace import Workspace


def apply_patch_tool(workspace: Workspace, changes: Changes) -> Tool:
    @tool(Effect.IDEMPOTENT, permission=Role.USER, scene=changes.scene, undoable=True)
    async def apply_patch(
        patch: Annotated[str, "A unified diff, or: *** Begin Patch, *** Update File: path, @@, lines that begin with a "
                              "space, - or +, *** Add File: path, *** Delete File: path, *** End Patch"],
        context: CallContext,
        expected_sha: Annotated[dict[str, str] | None, "By path, how its sha256 must begin"] = None,
    ) -> Result:  # fmt: skip
        """Change, add, move and delete text files. Nothing is changed unless the whole patch fits."""
        from .patch_worker import apply  # takes its time, and not every model patches

        return await apply(workspace, changes, patch, context, expected_sha or {})

    return apply_patch
