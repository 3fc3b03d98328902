"""To whom an address speaks, where that can be seen at a glance."""

import re

_NAME = r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\]"
_PLAIN = re.compile(rf"(https?)://({_NAME})(?::(\d{{1,5}}))?(?:[/?#][!-\[\]-~]*)?", re.IGNORECASE | re.ASCII)
_USUAL = {"http": 80, "https": 443}


def plain_host_of(url: str) -> str:
    """The host of a plain address, with its port if that is not the usual one; "" of any that programs may read in two
    ways: with a name before an @, a backslash, letters of other scripts, a percent sign or a last dot in the name."""
    found = _PLAIN.fullmatch(url)
    if not found:
        return ""
    scheme, host, port = found.groups()
    usual = not port or int(port) == _USUAL[scheme.lower()]
    return host.lower() if usual else f"{host.lower()}:{int(port)}"
