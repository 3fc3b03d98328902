"""A connection that rests is looked after by the system, lest what stands between forget it or the server vanish."""

import socket
from typing import Any

IDLE_SECONDS, INTERVAL_SECONDS, PROBES = 60, 10, 3
LOST_SECONDS = IDLE_SECONDS + INTERVAL_SECONDS * PROBES

# Not every system has them all.
_OPTIONS = {
    "TCP_KEEPIDLE": IDLE_SECONDS,
    "TCP_KEEPALIVE": IDLE_SECONDS,  # its name on macOS
    "TCP_KEEPINTVL": INTERVAL_SECONDS,
    "TCP_KEEPCNT": PROBES,
    "TCP_USER_TIMEOUT": LOST_SECONDS * 1000,
}


def transport_of(connection: Any) -> Any:
    """None if asyncpg no longer calls it so; it has no public name for it."""
    return getattr(connection, "_transport", None)


def keep_alive(connection: Any) -> None:
    """Has the system ask after a server that has been silent. A socket of this machine needs no looking after."""
    transport = transport_of(connection)
    sock = transport and transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
