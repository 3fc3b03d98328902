"""Routes of the API: files and the workspace."""

from ....core.ports.workspace import FileWritten, FolderPage
from .. import files, shapes, workspace
from ..route import ApiRoute

ROUTES = (
    ApiRoute(
        "POST",
        "/api/files",
        "Keep a file, to be named in a message",
        files.keep,
        shapes.FileKept,
        query=shapes.Naming,
        takes_bytes=True,
        status=201,
    ),
    ApiRoute("GET", "/api/files/{ref}", "A file of yours that is kept", files.fetch, None, at=shapes.OfFile),
    ApiRoute(
        "GET",
        "/api/files/{ref}/{name}",
        "A file that one of your conversations tells of",
        files.fetch_told,
        None,
        at=shapes.NamedFile,
        query=shapes.FileEntry,
    ),
    ApiRoute(
        "GET",
        "/api/workspace",
        "What lies in a folder of your workspace",
        handle=workspace.list_folder,
        answers=FolderPage,
        query=shapes.FolderQuery,
        needs="chat",  # who may speak could have a file told; a token that may only read conversations could not
        tells=True,
        further={404: "not there"},
    ),
    ApiRoute(
        "GET",
        "/api/workspace/file",
        "What a file of your workspace holds, whole or in part (Range)",
        workspace.read_file,
        None,
        query=shapes.WorkspacePath,
        needs="chat",
        tells=True,
        further={206: "a part of it", 404: "not there", 416: "it has no such part"},
    ),
    ApiRoute(
        "PUT",
        "/api/workspace/file",
        "Put a file into your workspace",
        workspace.put_file,
        FileWritten,
        query=shapes.Uploading,
        takes_bytes=True,
        may_be_empty=True,
        status=201,
        further={404: "no such folder"},
    ),
    ApiRoute(
        "DELETE",
        "/api/workspace/file",
        "Remove a file, a link or an empty folder of your workspace",
        workspace.remove_file,
        FileWritten,
        query=shapes.WorkspacePath,
        further={404: "not there"},
    ),
    ApiRoute(
        "POST",
        "/api/workspace/frame",
        "A page or PDF of your workspace, as a frame may show it",
        workspace.show_in_frame,
        None,
        query=shapes.WorkspacePath,
        needs="chat",
        tells=True,
        further={404: "not there"},
    ),
)
