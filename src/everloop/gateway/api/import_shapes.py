"""What is asked and told of moving in."""

from typing import Annotated

from msgspec import Meta

from ...ports.importing import ImportKind, ImportStanding, ImportUpload
from .shapes import ApiInput

__all__ = ["BeginningImport", "ImportStanding", "ImportUpload"]


class BeginningImport(ApiInput, frozen=True):
    """From where: a `path` of the gateway's machine, or the `upload` that was answered for a file that was sent.
    `dry_run`: only tell what would be done; `grown`: what has grown there since comes as another conversation;
    `enable`: jobs run at once, instead of paused."""

    kind: ImportKind
    path: Annotated[str, Meta(max_length=4000)] = ""
    upload: Annotated[str, Meta(max_length=40)] = ""
    dry_run: bool = True
    grown: bool = False
    enable: bool = False
