"""What is asked and told about skills."""

from typing import Annotated

from msgspec import Meta, Struct

from ...ports.skills import SkillReview, SkillRow, SkillShown
from .shapes import ApiInput

_Name = Annotated[str, Meta(min_length=1, max_length=64, pattern="^[a-z0-9-]+$")]


class OfSkill(ApiInput, frozen=True):
    name: _Name


class ReviewingSkill(ApiInput, frozen=True):
    """`file` is the reference of an archive that you have sent (POST /api/files), `name` what it is called, `path` the
    skill's folder in it, if there are several."""

    file: Annotated[str, Meta(min_length=1, max_length=100)]
    name: Annotated[str, Meta(max_length=200)] = ""
    path: Annotated[str, Meta(max_length=240)] = ""


class InstallingSkill(ReviewingSkill, frozen=True, kw_only=True):
    """`pin` is what a review has told; with `replace` it takes the place of another version."""

    pin: Annotated[str, Meta(min_length=1, max_length=100)]
    replace: bool = False


class AcceptingSkill(ApiInput, frozen=True):
    """`held` is the change that was shown; with `allow` false what was accepted before is put back."""

    held: Annotated[str, Meta(min_length=1, max_length=64)]
    allow: bool


class SkillList(Struct, frozen=True):
    """Yours, in the order of their names, with what keeps one from being used."""

    skills: list[SkillRow]


class SkillDetail(Struct, frozen=True):
    skill: SkillShown


class SkillReviewed(Struct, frozen=True):
    """What is in an archive. Nothing of it was kept or run."""

    review: SkillReview


class SkillTold(Struct, frozen=True):
    told: str
