"""The page: plain files, served as they are. They hold nothing of anyone's, so whoever comes may read them; what they
show comes through the API and the WebSocket, to those who have logged in.

A browser keeps them for good, under an address with the fingerprint of all of them, and asks for `/` each time, which
names that address. They are read once, when the first gateway of a process starts, and each is compressed when it is
first asked for.
"""

import gzip
import hashlib
from functools import cache, cached_property
from pathlib import Path

from aiohttp import web
from msgspec import Struct

from ..access.permissions import PUBLIC, Route
from ..http.handler import Handler

FOLDER = Path(__file__).parent
PREFIX = "/page/"  # all files but the page itself, which is `/`
KINDS = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "media-src blob:",  # an answer that a provider reads aloud
        "manifest-src 'self'",
        "base-uri 'none'",
        "frame-src 'self'",  # what a person wants to see as a page: gateway/api/framed.py
        "form-action 'self'",  # which is how it is asked for
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=(), display-capture=()",  # push to talk
    "Referrer-Policy": "same-origin",  # without any, a form would not say whose it is (Origin), and be refused
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # it is asked each time, and told by its ETag that nothing has changed
    "Vary": "Accept-Encoding",
}
FOREVER = "public, max-age=31536000, immutable"


class Served(Struct, dict=True):
    """A file as it goes over the wire."""

    body: bytes
    kind: str

    @cached_property
    def compressed(self) -> bytes | None:
        small = gzip.compress(self.body, mtime=0)
        return small if len(small) < len(self.body) else None

    @cached_property
    def tag(self) -> str:
        return hashlib.sha256(self.body).hexdigest()[:16]


@cache
def routes() -> tuple[Route, ...]:
    """`/` and the files it loads: by their names, and under the address that is kept."""
    paths = sorted(path for path in FOLDER.iterdir() if path.suffix in KINDS)
    files = {path.name: Served(path.read_bytes(), KINDS[path.suffix]) for path in paths}
    version = hashlib.sha256("".join(each.tag for each in files.values()).encode()).hexdigest()[:12]
    index = (FOLDER / "index.html").read_text().replace(f'"{PREFIX}', f'"{PREFIX}{version}/')
    table = [("/", _serving(Served(index.encode(), "text/html")))]
    table += [(f"{PREFIX}{name}", _serving(file)) for name, file in files.items()]
    table += [(f"{PREFIX}{version}/{name}", _serving(file, FOREVER)) for name, file in files.items()]
    return tuple(Route("GET", path, handler, PUBLIC) for path, handler in table)


def _serving(file: Served, keep: str = "no-cache") -> Handler:
    tag = file.tag
    headers = {**HEADERS, "Cache-Control": keep, "ETag": f'"{tag}"'}
    charset = None if file.kind.startswith("image/png") else "utf-8"

    async def serve(request: web.Request) -> web.Response:
        if any(each.value == tag for each in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        compressed = file.compressed if "gzip" in request.headers.get("Accept-Encoding", "") else None
        if compressed is None:
            return web.Response(body=file.body, content_type=file.kind, charset=charset, headers=headers)
        told = {**headers, "Content-Encoding": "gzip"}
        return web.Response(body=compressed, content_type=file.kind, charset=charset, headers=told)

    return serve
