"""What stands before a WebSocket, and needs no package for them."""

import re
from collections.abc import Mapping
from urllib.parse import unquote

from ..errors import AddressRefused, HostUnreachable
from ..readings.secrets import secrets_in, without_secrets
from .addresses import Target, read_url

_LONG = 16  # characters of a part of an address that may be a token
_SCHEME = re.compile(r"ws(s?)://", re.IGNORECASE)


def http_address(url: str, named_by: str) -> str:
    """The same address as http or https, by which it is dialled and checked. Raises HostUnreachable."""
    scheme = _SCHEME.match(url)
    if scheme is None:
        raise HostUnreachable("This is not the address of a WebSocket; begin it with wss:// or ws://.")
    if not scheme[1] and named_by.lower().startswith(("https://", "wss://")):
        raise HostUnreachable(
            "The host has named a WebSocket that is not encrypted (ws://), although it is asked over https, so it is "
            "not opened."
        )
    return f"http{scheme[1].lower()}://{url[scheme.end() :]}"


def checked_address(url: str, named_by: str) -> Target:
    """The same, for an address that is not the owner's. Raises AddressRefused, too, which would quote its tokens."""
    try:
        return read_url(http_address(url, named_by))
    except AddressRefused as error:
        raise AddressRefused(without_secrets(str(error), tokens_in(url, {}))) from None


def tokens_in(url: str, headers: Mapping[str, str]) -> tuple[str, ...]:
    """What is said in confidence with this address; some platforms put a ticket into its path, or alone into its
    query."""
    _, _, rest = url.partition("://")
    parts = (*re.split(r"[/?&=#]", rest)[1:], *re.split(r"[/?&=#]", unquote(rest))[1:])
    return (*secrets_in(url, headers), *(part for part in parts if len(part) >= _LONG))
