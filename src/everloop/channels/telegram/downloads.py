"""Files that people send, fetched from Telegram."""

import msgspec

from ...errors import ChannelDown, ProviderError, Undeliverable
from ...ports.channel import FileRef
from .api import BotApi, decoded
from .codec import TelegramFileRef
from .manifest import LARGEST_FETCHED
from .updates import TelegramFile


async def fetch(api: BotApi, ref: FileRef, limit: int) -> tuple[str, bytes]:
    """Its name and bytes. Raises ChannelDown, ChannelRefused, BotRefusal, Undeliverable."""
    wanted = msgspec.json.decode(ref, type=TelegramFileRef)
    largest = min(limit, LARGEST_FETCHED)
    if wanted.size > largest:
        raise Undeliverable(f"{wanted.name} has more than the {largest:,} bytes that a bot is given")
    try:
        file = decoded(await api.ask("getFile", {"file_id": wanted.id}), TelegramFile)
    except ProviderError as error:
        raise ChannelDown(str(error)) from error
    if not file.file_path:
        raise Undeliverable(f"{wanted.name} is not to be had from Telegram any more")
    return _named(wanted.name, file.file_path), await api.download(file.file_path, largest)


def _named(name: str, path: str) -> str:
    """With the ending of its path, where Telegram has told no name that has one."""
    ending = path.rpartition("/")[2].partition(".")[2]
    return f"{name}.{ending}" if ending and "." not in name else name
