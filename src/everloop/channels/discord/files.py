"""Files that came with a message: they lie at the CDN, under an address that is signed and must not be told."""

import msgspec

from ...errors import ChannelDown, HostTimeout, HostUnreachable, StreamCut, Undeliverable
from ...ports import Http
from ...ports.channel import FileRef

SECONDS = 30.0


def file_ref(name: str, url: str, size: int) -> FileRef:
    return FileRef(msgspec.json.encode([name, url, size]).decode())


class DiscordFiles:
    """Fetches them, from the CDN alone and without the bot's token."""

    def __init__(self, http: Http, cdn_url: str) -> None:
        self._http = http
        self._cdn = f"{cdn_url}/"

    async def fetch(self, ref: FileRef, limit: int) -> tuple[str, bytes]:
        """Name and bytes. Raises ChannelDown, and Undeliverable when it is too large or gone."""
        name, url, size = msgspec.json.decode(ref, type=tuple[str, str, int])
        if not url.startswith(self._cdn):
            raise Undeliverable(f"{name} does not lie where Discord keeps files")
        if size > limit:
            raise Undeliverable(f"{name} has {size:,} bytes, and {limit:,} are taken")
        return name, await self._read(name, url, limit)

    async def _read(self, name: str, url: str, limit: int) -> bytes:
        try:
            async with self._http.request("GET", url, seconds=SECONDS) as answer:
                data = await answer.read(limit + 1) if answer.status == 200 else b""
        except (HostUnreachable, HostTimeout, StreamCut) as error:
            raise ChannelDown(f"Discord's files cannot be reached: {error}") from error
        if answer.status == 429 or answer.status >= 500:
            raise ChannelDown(f"Discord's CDN answered {answer.status}")
        if answer.status != 200:
            raise Undeliverable(f"{name} is not there any more (Discord's CDN answered {answer.status})")
        if len(data) > limit:
            raise Undeliverable(f"{name} has more bytes than the {limit:,} that are taken")
        return data
