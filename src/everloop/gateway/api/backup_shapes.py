"""What is asked and told of backups."""

from typing import Annotated, Literal

from msgspec import Meta

from ...ports.backup import BackupShown, BackupsStanding
from .shapes import ApiInput

__all__ = ["BackupShown", "BackupsStanding", "OfBackup", "SchedulingBackups"]


class OfBackup(ApiInput, frozen=True):
    name: Annotated[str, Meta(min_length=1, max_length=100)]


class SchedulingBackups(ApiInput, frozen=True):
    """How often the gateway makes one, "" for never; and how many of them stay."""

    every: Literal["", "daily", "weekly"]
    keep: Annotated[int, Meta(ge=1, le=1000)] = 7
