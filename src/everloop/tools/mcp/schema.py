"""A tool's parameters as a model is shown them: a stranger's schema, with nothing left of it that is no schema.

What a server puts into a schema is read by every model that is offered the tool, and by our own check of arguments. So
only known keywords of the right shape stay; prose is cleaned and cut; and a value that a model would have to write
back letter by letter stays as it is, or not at all.
"""

import json
import re
from typing import Any

from ...core.speakers import unheaded
from ...readings.visible import UNSEEN
from ..untrusted import harmless

DEPTH = 10
MOST_NODES = 500  # subschemas
MOST_PROPERTIES = 100  # of one object
MOST_VALUES = 100  # of one enum
LONGEST_PROSE = 300  # characters of one description
ALL_PROSE = 6000  # of all of them
LONGEST_VALUE = 200
LONGEST_NAME = 100

_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_COUNTS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"})
_WORDS = frozenset({"pattern", "format", "contentEncoding", "contentMediaType"})
_CHOICES = frozenset({"anyOf", "oneOf", "allOf"})
_KINDS = frozenset({"object", "array", "string", "boolean", "integer", "number", "null"})
_REF = re.compile(r"#(/[A-Za-z0-9_$.-]{1,64}){0,6}")
# Orders to models are hidden in what no person sees: what has no width, turns letters around, and tags.
_HIDDEN = re.compile(rf"[\x00-\x08\x0b-\x1f{UNSEEN}\ufe00-\ufe0f\U000e0000-\U000e01ef\ud800-\udfff]")


def cleaned(text: str, longest: int) -> str:
    """A stranger's words as they may stand in a prompt: all of it can be seen, none of it looks like the house's."""
    kept = _HIDDEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n")[: longest * 2])
    plain = unheaded(harmless(kept)).strip()
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def cleaned_schema(schema: Any) -> dict[str, Any]:
    """The parameters of a tool: an object, whatever the server says."""
    found = _Cleaner().subschema(schema, 0) if isinstance(schema, dict) else {}
    return {**found, "type": "object", "properties": found.get("properties", {})}


class _Cleaner:
    """Counts what one schema takes altogether."""

    def __init__(self) -> None:
        self._nodes = MOST_NODES
        self._prose = ALL_PROSE

    def subschema(self, schema: Any, depth: int) -> dict[str, Any]:
        self._nodes -= 1
        if not isinstance(schema, dict) or depth > DEPTH or self._nodes < 0:
            return {}
        found: dict[str, Any] = {}
        for keyword, value in schema.items():
            if (kept := self._kept(keyword, value, depth)) is not None:
                found[keyword] = kept
        if "required" in found:
            properties = found.get("properties", {})
            found["required"] = [name for name in found["required"] if name in properties]
        return found

    def _kept(self, keyword: Any, value: Any, depth: int) -> Any:
        """What stays of a keyword; None: nothing."""
        if keyword in ("title", "description"):
            return self._said(value)
        if keyword in ("properties", "$defs", "definitions"):
            return self._named(value, depth)
        if keyword in _CHOICES:
            options = value[:MOST_VALUES] if isinstance(value, list) else []
            return [self.subschema(option, depth + 1) for option in options] or None
        if keyword == "items":
            return self.subschema(value, depth + 1) if isinstance(value, dict) else None
        if keyword == "additionalProperties":
            return value if isinstance(value, bool) else self.subschema(value, depth + 1)
        return _kept_value(keyword, value)

    def _said(self, value: Any) -> str | None:
        if not isinstance(value, str) or self._prose <= 0:
            return None
        said = cleaned(value, min(LONGEST_PROSE, self._prose))
        self._prose -= len(said)
        return said or None

    def _named(self, value: Any, depth: int) -> dict[str, Any] | None:
        if not isinstance(value, dict):
            return None
        names = [name for name in value if _is_as_it_is(name, LONGEST_NAME) and name][:MOST_PROPERTIES]
        return {name: self.subschema(value[name], depth + 1) for name in names}


def _kept_value(keyword: Any, value: Any) -> Any:
    if keyword == "type":
        kinds = [kind for kind in (value if isinstance(value, list) else [value]) if _is_kind(kind)]
        return kinds if isinstance(value, list) and kinds else (kinds[0] if kinds else None)
    if keyword == "required":
        return [name for name in value if isinstance(name, str)] if isinstance(value, list) else None
    if keyword == "enum":
        values = value[:MOST_VALUES] if isinstance(value, list) else []
        return [each for each in values if each is None or _is_plain(each)] or None
    if keyword in ("const", "default"):
        return value if _is_plain(value) else None
    if keyword in _NUMBERS:
        return value if _is_number(value) else None
    if keyword in _COUNTS:
        return value if _is_number(value) and isinstance(value, int) else None
    if keyword in _WORDS:
        return value if _is_as_it_is(value, LONGEST_VALUE) else None
    if keyword == "$ref":
        return value if isinstance(value, str) and _REF.fullmatch(value) else None
    if keyword in ("uniqueItems", "deprecated", "readOnly", "writeOnly"):
        return value if isinstance(value, bool) else None
    return None


def _is_kind(kind: Any) -> bool:
    return isinstance(kind, str) and kind in _KINDS


def _is_plain(value: Any) -> bool:
    """Whether a value can stand as it is: text of a line, a number, or a few of these."""
    if isinstance(value, str):
        return _is_as_it_is(value, LONGEST_VALUE)
    if isinstance(value, list | dict):
        return _is_as_it_is(json.dumps(value, ensure_ascii=False), LONGEST_VALUE)
    return isinstance(value, bool) or _is_number(value)


def _is_number(value: Any) -> bool:
    """One that every host can write."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63


def _is_as_it_is(value: Any, longest: int) -> bool:
    return isinstance(value, str) and "\n" not in value and cleaned(value, longest) == value.strip()
