"""A skill as its SKILL.md says it is. What is wrong with one is said in a sentence, never passed over in silence."""

import json
import re
from typing import Any

from msgspec import Struct

from .frontmatter import FrontmatterError, read, split

FILE = "SKILL.md"
BYTES = 80_000  # that are read of one
LONGEST_DESCRIPTION = 1024
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
WRONG_NAME = "a name has small letters, digits and single hyphens between them, at most 64"
_HOUSES = ("everloop", "nanobot")  # under which a skill says what it requires
_PROGRAM = re.compile(r"[A-Za-z0-9_.+-]{1,64}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


class Skill(Struct, frozen=True):
    """`always`: its whole text stands in prompts; else its description does. `bins` are programs and `env` variables
    that it needs. `bare`: it has no frontmatter, and its first line stands for the description. `wrong` says what is
    wrong with it: then it is told to nobody."""

    name: str
    description: str = ""
    body: str = ""
    license: str = ""
    compatibility: str = ""
    allowed_tools: tuple[str, ...] = ()
    always: bool = False
    bins: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    bare: bool = False
    wrong: str = ""


def is_name(name: str) -> bool:
    return len(name) <= 64 and NAME.fullmatch(name) is not None


def parse(folder: str, content: bytes | None) -> Skill:
    """The skill in a folder of this name, by what its SKILL.md holds; None: there is none."""
    if not is_name(folder):
        return Skill(folder, wrong=f"its folder is called {folder[:64]!r}: {WRONG_NAME}")
    if content is None:
        return Skill(folder, wrong=f"there is no {FILE} in it that can be read")
    try:
        head, body = split(content[:BYTES].decode("utf-8"))
        return _skill(folder, read(head) if head is not None else {}, body.strip())
    except UnicodeDecodeError:
        return Skill(folder, wrong=f"its {FILE} is not UTF-8 text, or longer than {BYTES:,} bytes")
    except FrontmatterError as error:
        return Skill(folder, wrong=f"{FILE}: {error}")


def _skill(folder: str, head: dict[str, Any], body: str) -> Skill:
    name = head.get("name") or folder
    if name != folder:
        raise FrontmatterError(f"its name is {str(name)[:64]!r}, and its folder {folder!r}: both have to be the same")
    description = _text(head, "description") or _first_line(body)
    if not description:
        raise FrontmatterError("there is no description, by which the agent knows when to use it")
    if len(description) > LONGEST_DESCRIPTION:
        raise FrontmatterError(f"the description has more than {LONGEST_DESCRIPTION:,} characters")
    requires = _requires(head.get("metadata"))
    return Skill(
        name=folder,
        description=" ".join(description.split()),
        body=body,
        license=_text(head, "license"),
        compatibility=_text(head, "compatibility"),
        allowed_tools=_words(head.get("allowed-tools"), "allowed-tools"),
        always=_switch(head.get("always")),
        bins=_checked(requires.get("bins"), "bins", _PROGRAM),
        env=_checked(requires.get("env"), "env", _VARIABLE),
        bare=not head,
    )


def _text(head: dict[str, Any], key: str) -> str:
    value = head.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise FrontmatterError(f"{key} is a text")
    return value.strip()


def _first_line(body: str) -> str:
    """Of a skill without a frontmatter: the first line that is no heading."""
    lines = (line.strip() for line in body.split("\n"))
    return next((line[:LONGEST_DESCRIPTION] for line in lines if line and not line.startswith(("#", "```"))), "")


def _switch(value: Any) -> bool:
    if value in (None, False, True):
        return bool(value)
    raise FrontmatterError("always is true or false")


def _words(value: Any, key: str) -> tuple[str, ...]:
    """A list, or words with spaces or commas between them."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(re.findall(r"[^\s,()]+(?:\([^)]*\))?", value))
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise FrontmatterError(f"{key} is a list of names")


def _checked(value: Any, key: str, pattern: "re.Pattern[str]") -> tuple[str, ...]:
    words = _words(value, f"metadata.requires.{key}")
    if wrong := next((word for word in words if not pattern.fullmatch(word)), ""):
        raise FrontmatterError(f"metadata.requires.{key} names {wrong[:64]!r}, which is no name")
    return words


def _requires(metadata: Any) -> dict[str, Any]:
    """A mapping, or one as JSON in a text; so may be what stands under our name in it."""
    metadata = _opened(metadata, "metadata")
    said = next((metadata[house] for house in _HOUSES if metadata.get(house)), None)
    own = _opened(said, "metadata.everloop")
    return _opened(own.get("requires"), "metadata.requires")


def _opened(value: Any, key: str) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except (ValueError, RecursionError) as error:
            raise FrontmatterError(f"{key} is a text, but no JSON") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise FrontmatterError(f"{key} is a mapping")
    return value
