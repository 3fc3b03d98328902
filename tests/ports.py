"""A port for what has to know it before it begins, or begins again at the same one.

Whoever binds port 0, looks, and closes, has a port that any process may be given next: another worker's server, or the
near end of somebody's connection. So these are taken from where the system gives none away by itself, and each belongs
to the process that asked until that ends: it holds the UDP port of the same number, which nothing else here uses.
"""

import random
import socket

PORTS = range(12_000, 22_000)  # 10,000 above each is free as well, where SeaweedFS listens for its own kind

_held: list[socket.socket] = []


def free_port() -> int:
    """One of 127.0.0.1 that nobody else is given while this process lives."""
    chosen = random.SystemRandom()
    while not (held := _hold(chosen.choice(PORTS))):
        pass
    _held.append(held)
    return int(held.getsockname()[1])


def _hold(port: int) -> socket.socket | None:
    held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        held.bind(("127.0.0.1", port))
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        held.close()
        return None
    return held
