"""Where a request to a host of the owner's goes, and how it is written for it."""

from collections.abc import Mapping
from functools import lru_cache

from yarl import URL

from ..errors import HostFailed, HostUnreachable, KeyRefused
from .dialing import basic, name_of
from .request import write

# A compressed stream of small events arrives in lumps; we never ask for one, and still read it when it comes.
_ALWAYS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "everloop"}


class TrustedTarget:
    """An address, read once."""

    __slots__ = ("authority", "key", "name", "origin", "path", "url")

    def __init__(self, url: URL) -> None:
        self.url = url
        self.name = name_of(url)
        self.authority = url.host_port_subcomponent or ""
        self.origin = f"{url.scheme}://{self.authority}"
        self.path = url.raw_path_qs
        self.key = basic(url) if url.user is not None else ""


@lru_cache(maxsize=256)
def read_target(url: str) -> TrustedTarget:
    """Raises HostUnreachable."""
    try:
        parsed = URL(url)
    except ValueError as error:
        raise HostUnreachable(
            "The host's address cannot be understood; it should look like https://host/v1."
        ) from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise HostUnreachable(
            f"{parsed.host or 'The address'} is not a web address; begin it with https:// or http://."
        )
    return TrustedTarget(parsed)


def redirected(target: TrustedTarget, location: str) -> TrustedTarget:
    """Where a redirect leads. Raises HostFailed."""
    try:
        following = target.url.join(URL(location))
        if target.key and following.user is None and following.origin() == target.url.origin():
            following = following.with_user(target.url.user).with_password(target.url.password)
        found = read_target(str(following))
    except (ValueError, HostUnreachable) as error:
        raise HostFailed(f"{target.name} redirects to what is not a web address.") from error
    if (target.url.scheme, found.url.scheme) == ("https", "http"):
        raise HostFailed(
            f"{target.name} redirects to http://{found.name}, which is not encrypted, so it is not followed. Ask for "
            f"that address itself if it is wanted."
        )
    return found


def written_for(
    target: TrustedTarget, method: str, headers: Mapping[str, str], body: bytes, proxy: URL | None
) -> bytes:
    """A request as it is sent. Raises KeyRefused when a header would be more than one line."""
    extra, where = {}, target.path
    if target.key:
        if any(name.lower() == "authorization" for name in headers):
            raise KeyRefused(f"{target.name} has both a key and a password in its address. Keep one of them.")
        extra["Authorization"] = target.key
    if proxy and target.url.scheme == "http":  # which reads what it passes on
        where = target.origin + where
        if proxy.user is not None:
            extra["Proxy-Authorization"] = basic(proxy)
    try:
        return write(method, where, target.authority, {**headers, **extra} if extra else headers, body, _ALWAYS)
    except ValueError as error:
        raise KeyRefused(f"A header for {target.name} has characters that cannot be sent. Copy it again.") from error
