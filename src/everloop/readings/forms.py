"""A form that a program asks a person to fill in, as an MCP server does (elicitation): shown in a chat, and
answered in a line.

Its words are a stranger's: they stand behind `>`, one line each, so that none of them looks like the house's.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.tool import ToolCall, ToolSpec, problems_of
from .visible import in_one_line

if TYPE_CHECKING:
    from ..ports.mcp_questions import McpQuestion

DECLINE = "decline"  # in the place of an answer
ANSWER = "/mcp answer"

_WORDS = {"yes": True, "true": True, "no": False, "false": False}
_LISTS = ("array", ["array"])
_PAIR = re.compile(r'([^\s=]+)=(?:"([^"]*)"|(\S*))(?=\s|\Z)')


def asked_text(question: "McpQuestion", command: str = ANSWER) -> str:
    """What a server asks, as it is put to a person: its words, and how to answer."""
    lines = [f"The MCP server {question.server} asks you, in its own words:", quoted(question.message)]
    lines += ["It wants:", *fields] if (fields := fields_shown(question.form)) else []
    way, how = f"{command} {question.id}", how_to_answer(question.form)
    return "\n".join([*lines, f"What you answer goes to that server: `{way} {how}`, or `{way} {DECLINE}`."])


def quoted(text: str) -> str:
    return "\n".join(f"> {in_one_line(line)}" for line in text.splitlines() or [""])


def fields_shown(form: Mapping[str, Any]) -> list[str]:
    """A line for each that is asked for."""
    return [quoted(_field(name, each, name in form.get("required", ()))) for name, each in _fields(form).items()]


def how_to_answer(form: Mapping[str, Any]) -> str:
    """What is written behind the question's id."""
    names = list(_fields(form))
    if not names:
        return "yes"
    return "YOUR ANSWER" if len(names) == 1 else " ".join(f"{in_one_line(name)}=…" for name in names)


def filled_in(form: Mapping[str, Any], line: str) -> dict[str, Any]:
    """What somebody has written, by the fields of the form. Raises ValueError with what is wrong."""
    fields = _fields(form)
    given = {name: each["default"] for name, each in fields.items() if "default" in each}
    given |= {name: _value(text, fields[name]) for name, text in _given(fields, line.strip()).items()}
    call = ToolCall("", "", msgspec.json.encode(given).decode())
    if problems := problems_of(call, ToolSpec("", "", dict(form), closed=True)):
        raise ValueError("; ".join(problems))
    return given


def _fields(form: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = form.get("properties", {})
    return found


def _field(name: str, field: Mapping[str, Any], required: bool) -> str:
    said = field.get("description") or field.get("title") or ""
    kind = field.get("type", "")
    choices = [each for each in _choices(field) if each != ""]
    notes = [f"one of: {', '.join(map(str, choices))}" if choices else kind if isinstance(kind, str) else ""]
    notes += [f"else {field['default']}"] if "default" in field else [] if required else ["may be left out"]
    return f"{name}{f': {said}' if said else ''} ({'; '.join(filter(None, notes))})"


def _choices(field: Mapping[str, Any]) -> list[Any]:
    among = field.get("items", field) if field.get("type") in _LISTS else field
    options = among.get("oneOf") or among.get("anyOf") or ()
    return list(among.get("enum", ())) or [each["const"] for each in options if "const" in each]


def _given(fields: Mapping[str, Any], line: str) -> dict[str, str]:
    if not fields:
        if line.lower() != "yes":
            raise ValueError("it asks for a yes alone")
        return {}
    if len(fields) == 1 and not line.startswith(f"{(only := next(iter(fields)))}="):
        return {only: line}
    found: dict[str, str] = {}
    rest = line
    while rest:
        pair = _PAIR.match(rest)
        if pair is None or pair[1] not in fields:
            word = rest.split()[0][:50]
            raise ValueError(
                f'{word!r} is not understood: write {how_to_answer({"properties": fields})}, what has spaces in "…"'
            )
        found[pair[1]] = pair[2] if pair[2] is not None else pair[3]
        rest = rest[pair.end() :].lstrip()
    return found


def _value(text: str, field: Mapping[str, Any]) -> Any:
    """By the kind that is asked for; what is of no such kind stays text, and is refused as that."""
    kinds = field.get("type", "string")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    if kind == "boolean":
        return _WORDS.get(text.lower(), text)
    if kind == "array":
        return [each.strip() for each in text.split(",") if each.strip()]
    if kind in ("integer", "number"):
        try:
            return int(text) if kind == "integer" else float(text)
        except ValueError:
            return text
    return text
