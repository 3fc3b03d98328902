"""What models are told of skills: of the active ones all, of the others what each is for and where it is read."""

from ...core.prompt import Section
from ...core.speakers import unheaded
from .shelf import Found, FoundSkill

ACTIVE, SUMMARY = "active_skills", "skills"
LONGEST = 300  # characters of a description
LONGEST_BODY = 20_000
MOST = 60  # that are told; the others are found by list_dir
LIST = "list_dir with the path skill:"
HOW = (
    "# Skills\n\nHow tasks are done. When one fits, or a message begins with /skill NAME, first read its location with "
    "read_file and follow it. In commands its folder is $SKILL_NAME (capitals, _ for -).\n"
    '<skills location="skill:NAME/SKILL.md">'
)


def sections_of(found: Found) -> tuple[Section, ...]:
    told = [each for each in found if each.is_told]
    active = [each for each in told if each.skill.always and not each.missing]
    others = [each for each in told if each not in active]
    sections = []
    if active:
        texts = [f"# Skill: {each.skill.name}\n\n{_body(each)}" for each in active]
        sections.append(Section(ACTIVE, "\n\n".join(texts), LIST))
    if others:
        lines = [_line(each) for each in others[:MOST]]
        more = [f"<!-- {len(others) - MOST} more: {LIST} -->"] if len(others) > MOST else []
        sections.append(Section(SUMMARY, "\n".join([HOW, *lines, *more, "</skills>"]), LIST))
    return tuple(sections)


def in_a_line(text: str, longest: int = LONGEST) -> str:
    """A stranger's text as a part of ours: in one line, without what cannot be seen, not to be taken for a tag or for
    a speaker's header."""
    seen = "".join(letter if letter.isprintable() else " " for letter in unheaded(text))
    text = " ".join(seen.split())
    return _escaped(text if len(text) <= longest else text[: longest - 1].rstrip() + "…")


def _escaped(text: str) -> str:
    for letter, code in (("&", "amp"), ("<", "lt"), (">", "gt"), ('"', "quot")):
        text = text.replace(letter, f"&{code};")
    return text


def _body(each: FoundSkill) -> str:
    text = unheaded(each.skill.body)
    rest = f"\n[… the rest: skill:{each.skill.name}/SKILL.md]" if len(text) > LONGEST_BODY else ""
    return text[:LONGEST_BODY] + rest


def _line(each: FoundSkill) -> str:
    lacking = f' available="false" missing="{in_a_line(", ".join(each.missing))}"' if each.missing else ""
    name = each.skill.name
    return f'<skill name="{name}"{lacking}>{in_a_line(each.skill.description)}</skill>'
