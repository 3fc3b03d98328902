"""Signed links to files for people on channels, which are worth something only where the gateway is reached from
elsewhere."""

from collections.abc import Callable
from contextlib import suppress
from secrets import token_hex

from ..core.message import Media
from ..errors import HomeError, VaultLocked
from ..ports import Clock, Vault
from ..settings import Settings
from ..settings.shape import GatewaySection

LINKS = "file-links"


async def link_key(vault: Vault) -> bytes | None:
    """By which links are signed: made when it is first needed, and the same on all machines. None where the vault is
    locked."""
    with suppress(VaultLocked, HomeError):
        if await vault.get(LINKS) is None:
            await vault.set(LINKS, token_hex(32))
        return bytes.fromhex(await vault.get(LINKS) or "")  # another machine may have made one at the same moment
    return None


def public_address(place: GatewaySection) -> str:
    """Where people elsewhere reach the gateway, as far as the settings say it; "" where they do not."""
    if place.allowed_hosts:
        return f"https://{place.allowed_hosts[0]}"
    from ..gateway.transport.listen import is_loopback

    if not place.tls_cert or not place.port or place.host in ("", "0.0.0.0", "::") or is_loopback(place.host):
        return ""
    host = f"[{place.host}]" if ":" in place.host else place.host
    return f"https://{host}:{place.port}"


class OutgoingLinks:
    """Makes the address under which anyone finds a file, until `files.link_seconds` have passed."""

    def __init__(self, settings: Callable[[], Settings], vault: Vault, clock: Clock) -> None:
        self._settings = settings
        self._vault = vault
        self._clock = clock

    async def __call__(self, media: Media) -> str:
        """Empty where there is none."""
        base = public_address(self._settings().gateway)
        key = await link_key(self._vault) if base and media.owner else None
        if key is None:
            return ""
        from ..gateway.link_signing import signed_link  # few answers need one

        until = int(self._clock.now()) + self._settings().files.link_seconds
        return base + signed_link(key, media.owner, media.file, media.name, until)
