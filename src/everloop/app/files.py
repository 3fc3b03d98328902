"""Where files are kept, how much of them, and for whom: from the settings."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ..core.people import Role, is_chat
from ..core.ports import FileRecords, Files, People
from ..files.attachments import Attachments
from ..files.folder import Folder
from ..files.inventory import FileInventory, RecordedShelves
from ..files.quota import QuotaFiles, QuotaOf
from ..settings import Settings

USUAL = 5_000_000_000  # bytes for a person who is no guest


class FileStorage(Struct, frozen=True):
    """The files; within everyone's quota; what people send and are given; and all of it as it lies there."""

    files: Files
    bounded: QuotaFiles
    attachments: Attachments
    shelves: RecordedShelves


def open_storage(
    home: Path, settings: Settings, records: FileRecords, people: People, environ: Mapping[str, str] = os.environ
) -> FileStorage:
    """Raises SettingsError."""
    root = home / "files"
    files, shelves = Folder(root), FileInventory(root)
    bounded = QuotaFiles(files, quotas_of(settings, people))
    attachments = Attachments(bounded, records, settings.files.max_bytes)
    return FileStorage(files, bounded, attachments, RecordedShelves(shelves, records))


def quotas_of(settings: Settings, people: People) -> QuotaOf:
    """What the owner has is theirs to bound; a group's files are as many as a person's."""

    async def quota_of(owner: str) -> int:
        return quota_for(settings, Role.USER if is_chat(owner) else await people.role(owner))

    return quota_of


def quota_for(settings: Settings, role: Role) -> int:
    """0: no limit."""
    said = settings.files.quota or settings.gateway.bytes_per_user
    if role == Role.GUEST:
        return min(settings.files.guest_quota, said or USUAL)
    return said or (0 if role == Role.OWNER else USUAL)
