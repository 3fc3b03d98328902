"""Files that people send, fetched from Telegram."""

from collections import OrderedDict

import msgspec

from ...errors import ChannelDown, ProviderError, Undeliverable
from ...ports.channel import FileRef
from .api import BotApi, decoded
from .codec import TelegramFileRef
from .manifest import LARGEST_FETCHED
from .updates import TelegramFile

ATTEMPTS = 3  # at one file: as long as it is awaited, all that came with it waits
REMEMBERED = 1_000  # files


class Downloads:
    def __init__(self, api: BotApi) -> None:
        self._api = api
        self._tried: OrderedDict[str, int] = OrderedDict()  # how often, by the id of a file that could not be had

    async def fetch(self, ref: FileRef, limit: int) -> tuple[str, bytes]:
        """Its name and bytes. Raises ChannelDown, ChannelRefused, BotRefusal, Undeliverable."""
        wanted = msgspec.json.decode(ref, type=TelegramFileRef)
        largest = min(limit, LARGEST_FETCHED)
        if wanted.size > largest:
            raise Undeliverable(f"{wanted.name} has more than the {largest:,} bytes that a bot is given")
        self._count(wanted)
        path = await self._path(wanted)
        data = await self._api.download(path, largest)
        self._tried.pop(wanted.id, None)
        return _named(wanted.name, path), data

    def _count(self, wanted: TelegramFileRef) -> None:
        tried = self._tried.get(wanted.id, 0)
        if tried >= ATTEMPTS:
            raise Undeliverable(f"{wanted.name} could not be had from Telegram in {ATTEMPTS} attempts")
        self._tried[wanted.id] = tried + 1
        self._tried.move_to_end(wanted.id)
        while len(self._tried) > REMEMBERED:
            self._tried.popitem(last=False)

    async def _path(self, wanted: TelegramFileRef) -> str:
        try:
            file = decoded(await self._api.ask("getFile", {"file_id": wanted.id}), TelegramFile)
        except ProviderError as error:
            raise ChannelDown(str(error)) from error
        if not file.file_path:
            raise Undeliverable(f"{wanted.name} is not to be had from Telegram any more")
        return file.file_path


def _named(name: str, path: str) -> str:
    """With the ending of its path, where Telegram has told no name that has one."""
    ending = path.rpartition("/")[2].partition(".")[2]
    return f"{name}.{ending}" if ending and "." not in name else name
