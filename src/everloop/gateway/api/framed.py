"""A page or a PDF of a workspace, for a frame in the page. Whoever wrote it may want to read what the page reads.

It is the answer to a POST with the page's own Origin, so there is no address by which it could be opened by itself. A
page of HTML comes with a policy that takes everything from it but its own text, styles and inline pictures: an origin
(so there is no cookie, storage or API), scripts, forms, pop-ups and the network. The frame cannot be led elsewhere
either, for the page allows frames of this gateway alone (`frame-src`), and those nobody but we can fill.

What a policy does not stop is `<link rel=preconnect>`, by which a name that holds what somebody wants to know is looked
up and connected to. So every `<link>` becomes an element of no meaning that may stand in the same places.
"""

import re

from aiohttp import web

from ...readings.media import is_text, kind_of
from ..http.errors import Refused
from ..http.sending import filename

LARGEST = 20_000_000  # bytes
HTML = "; ".join(
    (
        "sandbox",
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        "font-src data:",
        "media-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
    )
)
# The browser's viewer, which is apart from every page, does not work in a sandbox.
PDF = "default-src 'none'; style-src 'unsafe-inline'; object-src 'self'; frame-ancestors 'self'"
FRAMED = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "X-DNS-Prefetch-Control": "off",
    "Cache-Control": "no-store",
}
_LINKS = re.compile(r"<link\b", re.IGNORECASE)


def framed(data: bytes, path: str) -> web.Response:
    """By what it holds, whatever it is called. Raises Refused."""
    if kind_of(data) == "application/pdf":
        headers = {**FRAMED, "Content-Security-Policy": PDF, "Content-Disposition": f"inline; {filename(path)}"}
        return web.Response(body=data, content_type="application/pdf", headers=headers)
    if not is_text(data):
        raise Refused(409, "refused", "This is neither a page nor a PDF. Download it to open it.")
    text = _LINKS.sub("<bgsound", data.decode("utf-8-sig"))
    headers = {**FRAMED, "Content-Security-Policy": HTML}
    return web.Response(text=text, content_type="text/html", charset="utf-8", headers=headers)
