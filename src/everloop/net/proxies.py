"""Which proxy stands before a host: what the environment names, and what NO_PROXY takes out.

Programs read NO_PROXY differently: https://about.gitlab.com/blog/we-need-to-talk-no-proxy/. Here an entry is what curl,
Go, requests or Python take it for: a name with all that is below it, with or without a dot or `*.` before it; an
address; a network such as 10.0.0.0/8; `*`. A port behind a name or an address is that port alone.
"""

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from yarl import URL

from ..errors import HostUnreachable

_Address = IPv4Address | IPv6Address
_ENTRY = re.compile(r"(?:\[([^\]]+)\]|([^:\[\]]+))(?::([0-9]{1,5}))?|([^\[\]]+)")  # the last: IPv6 without brackets


def find_proxy(url: URL, wanted: str) -> URL | None:
    """The proxy for this address; `wanted` takes the place of those that the environment names. Raises
    HostUnreachable."""
    host = url.host or ""
    # This machine is never behind its own proxy, whatever NO_PROXY forgot to say: a local model must be found.
    if _is_here(host):
        return None
    from urllib.request import getproxies, getproxies_environment, proxy_bypass

    environment = getproxies_environment()
    if bypasses(environment.get("no", ""), url) or (not environment and proxy_bypass(host)):
        return None  # the second is what macOS has in its own settings
    proxy = wanted or _named(getproxies(), url.scheme)
    if proxy and not proxy.startswith(("http://", "https://")):
        raise HostUnreachable(
            f"{host} cannot be reached: its proxy is not an HTTP proxy, and only those are supported. "
            f"Give an address that begins with http://, or put {host} into NO_PROXY."
        )
    try:
        return URL(proxy) if proxy else None
    except ValueError as error:
        raise HostUnreachable(f"{host} cannot be reached: the address of its proxy cannot be understood.") from error


def bypasses(no_proxy: str, url: URL) -> bool:
    """Whether this host is one of those that no proxy stands before."""
    hosts = {_plain(url.host or ""), _plain(url.raw_host or "")}
    return any(_fits(entry, hosts, url.port) for entry in re.split(r"[,\s]+", no_proxy.lower()) if entry)


def _fits(entry: str, hosts: set[str], port: int | None) -> bool:
    if entry == "*":
        return True
    parts = _ENTRY.fullmatch(entry)
    if parts is None:
        return False
    bracketed, name, wanted, bare = parts.groups(default="")
    if wanted and int(wanted) != port:
        return False
    return any(_is_of(host, bracketed or name or bare) for host in hosts)


def _is_of(host: str, name: str) -> bool:
    address = _address(host)
    if address is None:
        name = name.removeprefix("*").strip(".")
        return bool(name) and (host == name or host.endswith(f".{name}"))
    try:
        return address in ip_network(name, strict=False)
    except ValueError:
        return False


def _address(host: str) -> _Address | None:
    """IPv4 that is written as IPv6 is IPv4."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _plain(host: str) -> str:
    return host.lower().rstrip(".")


def _named(proxies: Mapping[str, str], scheme: str) -> str:
    return proxies.get(scheme) or proxies.get("all") or ""


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
