"""The page: plain files, served as they are. They hold nothing of anyone's, so whoever comes may read them; what they
show comes through the API and the WebSocket, to those who have logged in."""

import hashlib
from pathlib import Path

from aiohttp import web

from ..access.permissions import PUBLIC, Route
from ..http.handler import Handler

FOLDER = Path(__file__).parent
PREFIX = "/page/"  # all files but the page itself, which is `/`
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # it is asked each time, and told by its ETag that nothing has changed
}


def routes() -> list[Route]:
    """`/` and the files it loads."""
    files = {path.name: path for path in FOLDER.iterdir() if path.suffix in KINDS}
    table = [Route("GET", "/", _served(FOLDER / "index.html", "text/html"), PUBLIC)]
    return table + [
        Route("GET", f"{PREFIX}{name}", _served(path, KINDS[path.suffix]), PUBLIC) for name, path in files.items()
    ]


def _served(path: Path, kind: str) -> Handler:
    body = path.read_bytes()
    tag = hashlib.sha256(body).hexdigest()[:16]

    async def serve(request: web.Request) -> web.Response:
        headers = {**HEADERS, "ETag": f'"{tag}"'}
        if any(each.value == tag for each in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=headers)

    return serve
