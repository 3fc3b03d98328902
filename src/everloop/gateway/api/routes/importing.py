"""Routes of the API: moving in from another agent or a service."""

from ....core.people import Role
from .. import import_shapes, importing
from ..route import ApiRoute

ALL = ("admin", "read", "chat", "approve")  # settings, secrets, conversations, memory, jobs

ROUTES = (
    ApiRoute(
        "GET",
        "/api/import",
        "How the import stands that runs, or ran last: what came or would come, and what has no place here",
        handle=importing.show_import,
        answers=import_shapes.ImportStanding,
        least=Role.OWNER,
        needs=ALL,
    ),
    ApiRoute(
        "POST",
        "/api/import",
        "Look at what a move from nanobot, OpenClaw, ChatGPT or Claude would bring, or do it",
        handle=importing.begin_import,
        answers=import_shapes.ImportStanding,
        body=import_shapes.BeginningImport,
        least=Role.OWNER,
        needs=ALL,
        status=202,
    ),
    ApiRoute(
        "POST",
        "/api/import/upload",
        "Send an export of ChatGPT or Claude, to be named in an import",
        handle=importing.upload_export,
        answers=import_shapes.ImportUpload,
        takes_bytes=True,
        least=Role.OWNER,
        needs=ALL,
        status=201,
    ),
)
