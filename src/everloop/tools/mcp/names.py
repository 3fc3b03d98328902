"""What tools of servers are called: `mcp_<server>_<tool>`, as every host can write it.

A name says by itself whether it is plain. What had to be changed, cut or could be read in two ways ends with a hash of
whose it is, and no plain name looks like that; so a new server changes no name of another, and none can be chosen to
be another's (shadowing). Two that are the same in spite of it are both refused.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from hashlib import sha256

LONGEST = 64
_HASH = 10  # hexadecimal digits
_STRANGE = re.compile(r"[^a-zA-Z0-9_-]")
_HASHED = re.compile(rf"_[0-9a-f]{{{_HASH}}}$")


def tool_name(server: str, tool: str) -> str:
    """The name under which models are offered a tool of a server."""
    name = f"mcp_{server}_{tool}"
    plain = _STRANGE.sub("_", name)
    if plain == name and len(name) <= LONGEST and "_" not in server and tool and not _HASHED.search(name):
        return name
    digest = sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{plain[: LONGEST - _HASH - 1]}_{digest}"


def tool_names(tools: Iterable[tuple[str, str]], taken: Collection[str] = ()) -> dict[tuple[str, str], str]:
    """The names of tools by server and tool; without those whose name is one of `taken`, or another's."""
    names = {each: tool_name(*each) for each in tools}
    count = Counter(names.values())
    return {each: name for each, name in names.items() if count[name] == 1 and name not in taken}
