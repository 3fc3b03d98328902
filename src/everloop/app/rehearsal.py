"""Whether the house would open with these settings: they are followed as far as a start would follow them, and nothing
of it stays."""

from contextlib import AsyncExitStack

from msgspec.structs import replace

from ..bus.local import LocalBus
from ..errors import SettingsError
from ..runtime.clock import MACHINE
from ..runtime.people import KnownPeople
from ..runtime.supervisor import Supervisor
from ..settings import Settings
from .build import Builder, Overrides
from .files import open_storage
from .opening import OpenHome


async def opening_fault(opened: OpenHome, settings: Settings) -> str:
    """Why it would not open, "" if it would."""
    wanted = replace(opened, settings=settings)
    async with Supervisor(MACHINE) as supervisor, AsyncExitStack() as stack:
        try:
            storage = await open_storage(wanted, KnownPeople(opened.store))
            given = Overrides(waits=True, warms=False, embeds=False)
            Builder(wanted, storage, LocalBus(), given, supervisor, stack).rehearse(settings)
        except SettingsError as error:
            return str(error)
    return ""
