"""create_document: Markdown and tables as a document that people open with an office program or a browser."""

from typing import Annotated, Any

from ..core.people import Role
from ..core.tool import Effect
from ..ports.tools import CallContext, Result, Tool
from .changes import Changes
from .decorator import tool
from .write_file import write


def create_document_tool(changes: Changes) -> Tool:
    @tool(Effect.IDEMPOTENT, permission=Role.USER, scene=changes.scene, undoable=True)
    async def create_document(
        path: Annotated[str, "Path; its ending is the kind: .md .txt .csv .html .docx .pdf .xlsx"],
        context: CallContext,
        content: Annotated[str, "The text, in Markdown"] = "",
        sheets: Annotated[
            dict[str, Any] | None,
            "Tables by name: lists of rows of cells, the first is the head",
        ] = None,
    ) -> Result:
        """Make a document from Markdown and tables, or replace one. A csv takes one table, an xlsx a sheet for each."""
        from .document_worker import document  # takes its time, and few ever need it

        return await write(changes, path, await document(path, content, sheets or {}), context)

    return create_document
