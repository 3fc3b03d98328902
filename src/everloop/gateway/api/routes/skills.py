"""Routes of the API: skills. Everybody sees and installs their own; those of the owner are the house's."""

from .. import skill_shapes, skills
from ..route import ApiRoute

_ALL = ("read", "chat", "approve")  # what the agent is told, and what of it counts

ROUTES = (
    ApiRoute(
        "GET", "/api/skills", "Your skills, and whether each can be used", skills.list_skills, skill_shapes.SkillList
    ),
    ApiRoute(
        "POST",
        "/api/skill-reviews",
        "What a skill in an archive asks for; nothing of it is kept or run",
        handle=skills.review_skill,
        answers=skill_shapes.SkillReviewed,
        body=skill_shapes.ReviewingSkill,
        further={404: "not there", 413: "too large"},
        needs=_ALL,
    ),
    ApiRoute(
        "POST",
        "/api/skills",
        "Install a skill from an archive that was reviewed",
        handle=skills.install_skill,
        answers=skill_shapes.SkillTold,
        body=skill_shapes.InstallingSkill,
        further={404: "not there", 413: "too large"},
        needs=_ALL,
        status=201,
    ),
    ApiRoute(
        "GET",
        "/api/skills/{name}",
        "One skill: its text, its files, what it asks for, what is held back of it",
        handle=skills.show_skill,
        answers=skill_shapes.SkillDetail,
        at=skill_shapes.OfSkill,
        further={404: "not there"},
    ),
    ApiRoute(
        "DELETE",
        "/api/skills/{name}",
        "Remove a skill that you have installed",
        handle=skills.remove_skill,
        answers=skill_shapes.SkillTold,
        at=skill_shapes.OfSkill,
        needs=_ALL,
    ),
    ApiRoute(
        "POST",
        "/api/skills/{name}/change",
        "Accept a change of a skill in your workspace that is held back, or put it back",
        handle=skills.accept_skill,
        answers=skill_shapes.SkillTold,
        at=skill_shapes.OfSkill,
        body=skill_shapes.AcceptingSkill,
        needs=_ALL,
    ),
)
