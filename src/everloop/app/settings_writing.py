"""Settings are written, and who did so stands in the audit."""

import asyncio

from ..errors import EverloopError
from ..ports import Audit
from ..ports.audit import line_of
from ..settings.editor import SettingsDraft, SettingsEditor


async def write_noted(book: SettingsEditor, draft: SettingsDraft, audit: Audit) -> None:
    """It is noted first: the file is no part of that transaction, and what is written is never unnoted. Raises
    SettingsMoved, HomeError, StoreError."""
    detail = {"keys": [".".join(path) for path in draft.paths]}
    await audit.note(line_of("settings.changed", "", detail))
    try:
        await asyncio.to_thread(book.write, draft)
    except EverloopError:
        await audit.note(line_of("settings.failed", "", detail))
        raise
