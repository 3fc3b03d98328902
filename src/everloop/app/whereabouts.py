"""Where the gateway of a home can be reached, for the commands that print a link into its page."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..settings import Settings

FILE = "run/.gateway"  # holds the address at which one listens


@contextmanager
def listening_at(home: Path, url: str) -> Iterator[None]:
    """As long as the block lasts, others learn that a gateway is there. After a kill it is where the last one was."""
    told = home / FILE
    told.parent.mkdir(exist_ok=True)
    told.write_text(url)
    try:
        yield
    finally:
        told.unlink(missing_ok=True)


def page_address(home: Path, settings: Settings) -> str:
    """Where the page is, as far as this machine knows: what others call it, where it listens, where it would."""
    place = settings.gateway
    if place.allowed_hosts:
        return f"https://{place.allowed_hosts[0]}"
    try:
        return (home / FILE).read_text()
    except FileNotFoundError:
        host = f"[{place.host}]" if ":" in place.host else place.host
        return f"{'https' if place.tls_cert else 'http'}://{host}:{place.port}"
