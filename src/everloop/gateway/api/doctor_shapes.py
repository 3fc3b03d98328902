"""The shapes of the doctor."""

from msgspec import Struct

from ...ports.doctor import CheckRow, Verdict


class DiagnosisShown(Struct, frozen=True):
    """`what` says how it stands, `todo` what to do about it; `can_fix`: POST /api/doctor/fix mends it."""

    check: str
    group: str
    verdict: Verdict
    what: str
    todo: str = ""
    can_fix: bool = False


class Examined(Struct, frozen=True):
    """`verdict` is the gravest of them; `checks` are all that there are."""

    verdict: Verdict
    findings: list[DiagnosisShown]
    checks: list[CheckRow]


class MendedShown(Struct, frozen=True):
    """`failed` says why it could not be done."""

    check: str
    what: str
    failed: str = ""


class DoctorFixed(Struct, frozen=True):
    """What was done, and how it stands now."""

    mended: list[MendedShown]
    now: Examined
