"""JSON5 as people write it in settings: comments, keys without quotation marks, single ones, commas at the end."""

import json
import re
from typing import Any

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<double>"(?:[^"\\]|\\.)*")|(?P<single>'(?:[^'\\]|\\.)*')"""
    r"""|(?P<key>[A-Za-z_$][\w$]*)(?=\s*:)|(?P<comma>,(?=\s*(?://[^\n]*\s*|/\*.*?\*/\s*)*[}\]]))""",
    re.DOTALL,
)


def loads(text: str) -> Any:
    """Raises ValueError."""
    return json.loads(_TOKEN.sub(_plain, text), strict=False)


def _plain(found: re.Match[str]) -> str:
    match found.lastgroup:
        case "double":
            return found[0].replace("\\\n", "")
        case "single":
            inner = found[0][1:-1].replace("\\'", "'").replace("\\\n", "")
            return '"' + re.sub(r'(?<!\\)"', '\\"', inner) + '"'
        case "key":
            return f'"{found[0]}"'
    return ""
