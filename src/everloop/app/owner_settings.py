"""Settings as the owner of the machine changes them at a terminal: checked as a whole, noted in the audit, written."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec import Struct

from ..errors import SettingsError, StoreError
from ..settings import Settings
from ..settings.editor import Edition, SettingsDraft, SettingsEditor
from .live import taken_over
from .opening import OpenHome, opened_home
from .reconfigure import waiting_in
from .rehearsal import opening_fault
from .settings_writing import write_noted


class SettingsWritten(Struct, frozen=True):
    """`changed` are the keys that have another value now; of these, what runs takes up those that are `waiting` only
    at its next start. `unnoted` says why the audit does not have it, if so."""

    changed: list[str]
    waiting: list[str]
    unnoted: str = ""


async def write_settings(book: SettingsEditor, draft: SettingsDraft, home: Path) -> SettingsWritten:
    """A store that cannot be opened keeps nobody from the settings that would mend it. Raises SettingsMoved,
    HomeError, StoreError; SettingsError for what would keep the house from opening."""
    before, unnoted = _edition_before(book), ""
    async with AsyncExitStack() as stack:
        try:
            opened = await stack.enter_async_context(opened_home(home))
        except (StoreError, SettingsError) as error:
            unnoted = str(error)
            await asyncio.to_thread(book.write, draft)
        else:
            await _check_opening(opened, draft.edition.settings)
            await write_noted(book, draft, opened.store)
    if before is None:
        return SettingsWritten([], [], unnoted)
    rows = [*{row.key: row for row in (*before.rows, *draft.edition.rows)}.values()]
    wanted, now = draft.edition.settings, before.settings
    changed = waiting_in(rows, wanted, now)
    return SettingsWritten(changed, waiting_in(rows, wanted, taken_over(now, wanted)), unnoted)


async def _check_opening(opened: OpenHome, wanted: Settings) -> None:
    """Where it would not open as it is, one thing is mended after the other. Raises SettingsError."""
    fault = await opening_fault(opened, wanted)
    if fault and not await opening_fault(opened, opened.settings):
        raise SettingsError(fault)


def _edition_before(book: SettingsEditor) -> Edition | None:
    try:
        return book.read()
    except SettingsError:  # it was wrong, and is mended now
        return None
