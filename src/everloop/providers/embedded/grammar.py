"""The grammar of an answer, in llama.cpp's own notation: the model can write nothing that is not a reply or a call.

A JSON schema would do (`response_format`), but the library's engine for those takes 0.7 s to wake in each new process,
and constrains nothing at all when it meets a keyword that it does not know. Here such a keyword allows any JSON value.
"""

from typing import Any

import msgspec

from ...core.tool import ToolSpec
from .answer import REPLY
from .rules import REPLY_ONLY, AllowedAnswer, PossibleCall

_WORDS = r"""
string ::= "\"" char* "\""
words ::= "\"" (plain | "}" plain)* "}"? "\""
line ::= "\"" (inline | "}" inline)* "}"? "\""
inline ::= [^"\\}\x7F\x00-\x1F] | "\\" (["\\/bft] | "u" hex hex hex hex)
plain ::= [^"\\}\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" hex hex hex hex)
char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" hex hex hex hex)
hex ::= [0-9a-fA-F]
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
number ::= integer ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,3})?
boolean ::= "true" | "false"
null ::= "null"
array ::= "[" (value ("," value)*)? "]"
object ::= "{" (string ":" value ("," string ":" value)*)? "}"
value ::= object | array | string | number | boolean | null
"""
_TYPES = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})


# What may hold two closing braces in a row. A model that forgets the quote at the end of anything else goes on with
# them, which a string allows and nothing after it does: the answer would never end.
_LONG = frozenset({"content", "code"})


def grammar_of(tools: tuple[ToolSpec, ...], allowed: AllowedAnswer = REPLY_ONLY) -> str:
    """What may be answered: `{"reply":"…"}`, or for one of the tools `{"its name":{its arguments}}`."""
    choices = [_member(REPLY, "string")] if allowed.reply else []
    choices += [_member(choice.tool.name, _arguments(choice)) for choice in allowed.choices]
    choices += [_member(tool.name, _rule(tool.schema)) for tool in tools]
    return "root ::= " + " | ".join(f'"{{" {choice} "}}"' for choice in choices) + _WORDS


def _arguments(choice: PossibleCall) -> str:
    members = [_member(name, _argument(name, choice.options.get(name, ()))) for name in choice.tool.params]
    joined = ' "," '.join(members)
    return f'"{{" {joined} "}}"'


def _argument(name: str, options: tuple[str, ...]) -> str:
    if options:
        return _either(_literal(option) for option in options)
    if name in _LONG:
        return "string"
    return "line" if name == "new" else "words"  # more than a line is written in the place of one too easily


def _rule(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "value"
    if "const" in schema:
        return _literal(schema["const"])
    if "enum" in schema:
        return _either(_literal(option) for option in schema["enum"])
    if "anyOf" in schema:
        return _either(_rule(option) for option in schema["anyOf"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _either(_rule({**schema, "type": one}) for one in kind)
    if kind == "object" and "properties" in schema:
        return _object(schema["properties"], schema.get("required", ()))
    if kind == "array" and "items" in schema:
        item = _rule(schema["items"])
        return f'"[" ({item} ("," {item})*)? "]"'
    return kind if kind in _TYPES else "value"


def _object(properties: dict[str, Any], required: Any) -> str:
    """Required members first, then the others, each of which may be left out."""
    members = {name: _member(name, _rule(shape)) for name, shape in properties.items()}
    first = ' "," '.join(members[name] for name in members if name in required)
    optional = [member for name, member in members.items() if name not in required]
    if first:
        return f'"{{" {first} {_left_out(optional)} "}}"'
    starts = [f"{member} {_left_out(optional[index + 1 :])}" for index, member in enumerate(optional)]
    return f'"{{" {_either(starts)}? "}}"' if starts else '"{}"'


def _left_out(members: list[str]) -> str:
    return " ".join(f'("," {member})?' for member in members)


def _member(name: str, rule: str) -> str:
    return f'{_literal(name)} ":" {rule}'


def _either(rules: Any) -> str:
    return f"({' | '.join(rules)})"


def _literal(value: Any) -> str:
    text = msgspec.json.encode(value).decode().replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
