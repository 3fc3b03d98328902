"""Where the gateway listens, and whether that would be safe."""

import ipaddress
import socket
from typing import Protocol

from ...errors import HomeError, SettingsError

BACKLOG = 1024  # connections that the kernel keeps for us


class ListenSettings(Protocol):
    """Where the settings want it to listen."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def allowed_hosts(self) -> tuple[str, ...]: ...
    @property
    def allowed_origins(self) -> tuple[str, ...]: ...
    @property
    def tls_cert(self) -> str: ...
    @property
    def tls_key(self) -> str: ...
    @property
    def behind_proxy(self) -> bool: ...


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def check_listen(place: ListenSettings) -> None:
    """Raises SettingsError when it would be reached from elsewhere, and what is said there could be overheard."""
    if bool(place.tls_cert) != bool(place.tls_key):
        raise SettingsError("gateway.tls_cert and gateway.tls_key belong together: set both, or neither")
    if is_loopback(place.host) or place.tls_cert or place.behind_proxy:
        return
    raise SettingsError(
        f"the gateway would be reached from elsewhere at {place.host or 'every address'} without encryption. Set "
        "gateway.tls_cert and gateway.tls_key; or gateway.behind_proxy = true if a proxy in front of it speaks TLS; or "
        "stay at 127.0.0.1"
    )


def listen(place: ListenSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    try:
        return socket.create_server((place.host, place.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise HomeError(
            f"the gateway cannot listen at {place.host}:{place.port} ({error.strerror or error}); another one may be "
            "running there. Choose another with --port or gateway.port"
        ) from error


def shown_host(host: str) -> str:
    """A name by which a browser of this machine gets there."""
    if host in ("", "0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
