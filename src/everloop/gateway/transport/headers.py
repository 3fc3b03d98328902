"""What every answer tells a browser: run nothing of others (CSP, against XSS), show it in no frame (clickjacking),
guess no types, keep nothing."""

from aiohttp import web

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; "
        "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


async def protect(request: web.Request, response: web.StreamResponse) -> None:
    headers = response.headers
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    headers.popall("Server", None)
