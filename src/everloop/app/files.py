"""Where files are kept, how much of them, and for whom: from the settings."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from ..core.people import Role, is_chat
from ..errors import SettingsError
from ..files.attachments import Attachments
from ..files.folder import HALF_WRITTEN, Folder
from ..files.inventory import FileInventory, RecordedShelves, SharedShelves
from ..files.quota import QuotaFiles, QuotaOf
from ..ports import Files, FileShelves, People
from ..settings import Settings
from ..settings.shape import FilesSection
from .opening import OpenHome
from .secrets import VAULT, take_out

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
USUAL = 5_000_000_000  # bytes for a person who is no guest


class FileStorage(Struct, frozen=True):
    """The files; within everyone's quota; what people send and are given; and all of it as it lies there."""

    files: Files
    bounded: QuotaFiles
    attachments: Attachments
    shelves: RecordedShelves


async def open_storage(opened: OpenHome, people: People, now: Callable[[], Settings] | None = None) -> FileStorage:
    """`now` are the settings as they have become, by which limits go. Raises SettingsError; VaultLocked where the keys
    of a bucket are to be found in the vault alone."""
    settings, records = opened.settings, opened.store
    if settings.files.url:
        files, theirs = _bucket(opened.home, settings.files, await _environment(opened))
        shelves: FileShelves = SharedShelves(theirs, records)
    else:
        files, shelves = _folder(opened.home)
    now = now or (lambda: settings)
    bounded = QuotaFiles(files, quotas_of(now, people))
    attachments = Attachments(bounded, records, lambda: now().files.max_bytes)
    return FileStorage(files, bounded, attachments, RecordedShelves(shelves, records))


async def _environment(opened: OpenHome) -> Mapping[str, str]:
    """The variables of this process, and from the vault those of the keys that nobody else has said."""
    if opened.settings.files.secret_key or os.environ.get(KEYS[1]):
        return os.environ
    kept = await take_out(opened.vault, KEYS)
    return {**os.environ, **{reference.removeprefix(VAULT): secret for reference, secret in kept.items()}}


def _folder(home: Path) -> tuple[Files, FileShelves]:
    return Folder(home / "files"), FileInventory(home / "files")


def _bucket(home: Path, chosen: FilesSection, environ: Mapping[str, str]) -> tuple[Files, FileShelves]:
    """`s3://bucket/prefix`. Keys are those of the settings, else those of the environment. Raises SettingsError."""
    scheme, _, rest = chosen.url.partition("://")
    name, _, prefix = rest.strip("/").partition("/")
    if scheme != "s3" or not name:
        raise SettingsError("files.url is empty, for the folder files in the home, or s3://bucket/prefix")
    try:
        from ..files.bucket import Bucket, connect  # few need it
    except ImportError as error:
        raise SettingsError("files.url is set, which needs the extra [s3]: pip install 'everloop[s3]'") from error
    said = {
        "endpoint": chosen.endpoint or environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL"),
        "region": chosen.region or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1",
        "access_key_id": chosen.access_key or environ.get("AWS_ACCESS_KEY_ID"),
        "secret_access_key": chosen.secret_key or environ.get("AWS_SECRET_ACCESS_KEY"),
        "session_token": "" if chosen.access_key else environ.get("AWS_SESSION_TOKEN"),
    }
    bucket = Bucket(connect(name, prefix, **{key: value for key, value in said.items() if value}), _drafts(home))
    return bucket, bucket


def _drafts(home: Path) -> Path:
    return home / "files" / HALF_WRITTEN


def quotas_of(now: Callable[[], Settings], people: People) -> QuotaOf:
    """What the owner has is theirs to bound; a group's files are as many as a person's."""

    async def quota_of(owner: str) -> int:
        return quota_for(now(), Role.USER if is_chat(owner) else await people.role(owner))

    return quota_of


def quota_for(settings: Settings, role: Role) -> int:
    """0: no limit."""
    said = settings.files.quota or settings.gateway.bytes_per_user
    if role <= Role.GUEST:
        return min(settings.files.guest_quota, said or USUAL)
    return said or (0 if role == Role.OWNER else USUAL)
