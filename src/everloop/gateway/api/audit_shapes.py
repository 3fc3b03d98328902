"""The shapes of the audit."""

from typing import Annotated

from msgspec import Meta, Struct

from ...core.log import MANY
from ...ports.audit import Broken


class AuditQuery(Struct, forbid_unknown_fields=True):
    """`who` (an id, an account or a name) did it or had it done to them, `what` is a deed or how it begins (person),
    `since` is Unix time, `before` the number of a line."""

    since: Annotated[float, Meta(ge=0, le=1e11)] = 0
    who: Annotated[str, Meta(max_length=200)] = ""
    what: Annotated[str, Meta(max_length=50)] = ""
    before: Annotated[int, Meta(ge=1, le=MANY)] = MANY
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50


class AuditLineShown(Struct, frozen=True):
    """`at` is in milliseconds since 1970; `detail` is what `everloop audit` shows, `meaning` what the deed is."""

    id: int
    at: int
    actor: str
    authority: str
    deed: str
    subject: str
    detail: str
    hash: str
    meaning: str


class AuditPage(Struct, frozen=True):
    """The latest first. `more`: there are earlier ones, before the last of these. `names` are those of the people whose
    ids stand in them, as they are called now."""

    lines: list[AuditLineShown]
    more: bool
    deeds: list[str]
    names: dict[str, str]


class AuditChecked(Struct, frozen=True):
    """`head` is the number and hash of the last line that is sound, `broken` the first that is not."""

    lines: int
    head: str
    broken: Broken | None
