"""Where a request may go that a model, a user or a page has aimed: what a URL means, and which addresses are public.

This is the guard against SSRF. Two programs that read one URL differently are how such guards are passed. So there is
one reading, which takes only what all programs read alike; the request is built from its pieces, never from the text.
A number for a host, but plain dotted IPv4 or bracketed IPv6, is refused whatever it would mean, as are user names,
backslashes and escapes.

Public is what the registries of IANA call globally reachable, less what leads back inside through a translator.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from urllib.parse import quote

from msgspec import Struct
from yarl import URL

from ..errors import AddressRefused, SettingsError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

WEB_PORTS = {80, 443, 8080, 8443}
_LONGEST = 8000
_DEFAULT_PORTS = {"http": 80, "https": 443}
_FORM = re.compile(r"(https?)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.IGNORECASE | re.DOTALL)
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:]+)(?::([0-9]{0,5}))?", re.IGNORECASE)
_NOT_IN_URLS = re.compile(r"[\x00-\x1f\x7f-\x9f\\\u2028\u2029]")
_NOT_IN_AUTHORITIES = re.compile(r"[\s@%]")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_IN_PATHS = "/%:@!$&'()*+,;=~"
_IN_QUERIES = _IN_PATHS + "?"

_INWARD: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), what)
    for network, what in {
        "0.0.0.0/8": "means this machine",
        "10.0.0.0/8": "belongs to a private network",
        "100.64.0.0/10": "belongs to a provider's inner network",
        "127.0.0.0/8": "means this machine",
        "168.63.129.16/32": "belongs to a cloud's own services",
        "169.254.0.0/16": "belongs to the local link, where clouds keep their secrets",
        "172.16.0.0/12": "belongs to a private network",
        "192.0.0.0/24": "is reserved for protocols",
        "192.0.2.0/24": "is for documentation",
        "192.88.99.0/24": "leads through a translator",
        "192.168.0.0/16": "belongs to a private network",
        "198.18.0.0/15": "is for measurements inside a network",
        "198.51.100.0/24": "is for documentation",
        "203.0.113.0/24": "is for documentation",
        "224.0.0.0/4": "means many machines",
        "240.0.0.0/4": "is reserved",
        "::/128": "means this machine",
        "::1/128": "means this machine",
        "::/96": "hides an IPv4 address",
        "::ffff:0:0/96": "hides an IPv4 address",
        "::ffff:0:0:0/96": "hides an IPv4 address",
        "64:ff9b::/96": "leads through a translator",
        "64:ff9b:1::/48": "leads through a translator",
        "2001::/23": "is reserved for protocols, as Teredo's",
        "2001:db8::/32": "is for documentation",
        "2002::/16": "hides an IPv4 address",
        "3fff::/20": "is for documentation",
        "fc00::/7": "belongs to a private network",
        "fe80::/10": "belongs to the local link",
        "fec0::/10": "belongs to a private network",
        "ff00::/8": "means many machines",
    }.items()
)
_PUBLIC_IPV6 = IPv6Network("2000::/3")
_ISATAP = 0x5EFE


class Target(Struct, frozen=True):
    """A web address, read once. `host` is lower-case ASCII: a name, or an address that is also in `address`."""

    scheme: str
    host: str
    port: int
    path: str
    query: str = ""
    address: Address | None = None

    @property
    def url(self) -> URL:
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        port = None if self.port == _DEFAULT_PORTS[self.scheme] else self.port
        return URL.build(
            scheme=self.scheme, host=host, port=port, path=self.path, query_string=self.query, encoded=True
        )

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port


def read_url(text: str) -> Target:
    """What a URL means. Raises AddressRefused when it is not one that everybody reads alike."""
    if len(text) > _LONGEST:
        raise AddressRefused(f"A web address has at most {_LONGEST} characters; this one has {len(text)}.")
    if _NOT_IN_URLS.search(text):
        raise AddressRefused(f"{_shown(text)} holds a backslash or a control character; write it without.")
    form = _FORM.fullmatch(text)
    if not form:
        raise AddressRefused(f"{_shown(text)} is not a web address; begin it with https:// or http://.")
    scheme, authority, path, query = form.groups(default="")
    if _NOT_IN_AUTHORITIES.search(authority):
        raise AddressRefused(f"{_shown(text)} has a user name, an escape or a space before its path; write it without.")
    parts = _AUTHORITY.fullmatch(authority)
    if not parts:
        raise AddressRefused(f"{_shown(text)} has no host that can be understood.")
    host, address = _read_host(parts[1])
    port = int(parts[2] or _DEFAULT_PORTS[scheme.lower()])
    if not 0 < port < 65536:
        raise AddressRefused(f"{_shown(text)} has a port that does not exist.")
    return Target(scheme.lower(), host, port, _quoted(path or "/", _IN_PATHS), _quoted(query, _IN_QUERIES), address)


def _read_host(text: str) -> tuple[str, Address | None]:
    if text.startswith("["):
        return _read_ipv6(text)
    name = _ascii(text).lower()
    labels = name.removesuffix(".").split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _read_ipv4(name, text)
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise AddressRefused(f"{_shown(text)} is not the name of a host.")
    return name.removesuffix("."), None


def _read_ipv6(text: str) -> tuple[str, Address]:
    try:
        address = IPv6Address(text[1:-1])
    except ValueError as error:
        raise AddressRefused(f"{_shown(text)} is not an IPv6 address.") from error
    return str(address), address


def _read_ipv4(name: str, text: str) -> tuple[str, Address]:
    try:
        address = IPv4Address(name)
    except ValueError as error:
        raise AddressRefused(
            f"{_shown(text)} is a number for a host; write a name, or four numbers plainly."
        ) from error
    if name != text:
        raise AddressRefused(f"{_shown(text)} is an address in disguise; write it as {address}.")
    return str(address), address


def _ascii(text: str) -> str:
    if text.isascii():
        return text
    try:
        return URL.build(scheme="http", host=text).raw_host or ""
    except (ValueError, UnicodeError) as error:
        raise AddressRefused(f"{_shown(text)} is not the name of a host.") from error


def _quoted(text: str, safe: str) -> str:
    return quote(text, safe=safe, errors="surrogateescape")  # a redirect may hold bytes that are not UTF-8


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 100 else f"{text[:97]}...")


class Allowed:
    """What the owner permits beside the public web: names, addresses and networks, each with a port or with all.

    As `nas.local`, `nas.local:8000`, `192.168.1.7`, `[fd00::7]:8000`, `10.0.0.0/8`, `fd00::/8`. A name is permitted
    wherever it leads; an address or a network is, whichever name leads there. Raises SettingsError.
    """

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._names: set[tuple[str, int | None]] = set()
        self._networks: list[tuple[Network, int | None]] = []
        for entry in entries:
            self._add(entry)

    def _add(self, entry: str) -> None:
        bare = _network(entry)
        if bare:
            self._networks.append((bare, None))
            return
        try:
            target = read_url(f"http://{entry}/")
        except AddressRefused as error:
            raise SettingsError(
                f"{entry!r} cannot be permitted: {error} Give a host, an address or a network, such as 10.0.0.0/8."
            ) from error
        port = target.port if re.search(r"[^:\[]:[0-9]+$", entry) else None
        if target.path != "/":
            raise SettingsError(f"{entry!r} cannot be permitted: a host is permitted as a whole, without a path.")
        if target.address:
            self._networks.append((ip_network(target.address), port))
        else:
            self._names.add((target.host, port))

    def permits(self, host: str, port: int, address: Address) -> bool:
        return not self._names.isdisjoint({(host, None), (host, port)}) or any(
            address in network and wanted in (None, port) for network, wanted in self._networks
        )


def _network(text: str) -> Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def check_address(host: str, port: int, address: Address) -> None:
    """Raises AddressRefused unless that port of a host, which has this address, is one on the public web."""
    if why := why_inward(address):
        leads = "" if host == str(address) else f"leads to {address}, which "
        raise AddressRefused(f"{host} {leads}{why}. Only the owner can permit it.")
    if port not in WEB_PORTS:
        raise AddressRefused(
            f"Port {port} of {host} is not one of the web's ({', '.join(map(str, sorted(WEB_PORTS)))}). "
            f"Only the owner can permit it."
        )


@lru_cache(maxsize=1024)
def why_inward(address: Address) -> str:
    """What is not public about an address, as the end of a sentence; "" if it is a machine on the internet."""
    for network, what in _INWARD:
        if address in network:
            return what
    if isinstance(address, IPv6Address):
        if address not in _PUBLIC_IPV6:
            return "is not a public address"
        # The bit for "universal" may be set or not: https://www.rfc-editor.org/rfc/rfc5214#section-6.1
        if (int(address) >> 32) & 0xFDFFFFFF == _ISATAP:
            return "hides an IPv4 address"
    return "" if address.is_global else "is not a public address"
