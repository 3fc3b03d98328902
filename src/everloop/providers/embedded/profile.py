"""How a small model on a small machine is shown a conversation: little of everything, and always the same bytes.

It reads 20 to 60 tokens a second, so the prompt is compact, there is a tail part only when it matters, and long tool
results keep only their ends. Both models speak ChatML. The system part with its tools is the prefix whose state is kept
on disk.
"""

import re
from collections.abc import Mapping
from typing import Any

from ...core.message import Message
from ...core.tool import ToolCall, ToolSpec, problems_of
from .answer import REPLY, spell_call, spell_reply

_BUDGET = 1300  # characters of the system part, which is less than 400 tokens; see the test
_LEAST = 200  # of them for the caller's own words, however many tools there are
_RESULT = 1000
_HOW = (
    "Answer with one JSON object whose key is the name of a tool. To talk to the user use reply.\n"
    "Tools:\n- reply: Say something to the user; use it when no other tool is needed."
)
# Else it goes on calling tools that nobody asked for, edits among them.
_AFTER_TOOL = "Now reply to the user with the answer from this, unless the request needs another tool."
# Without examples the model takes the right tool 10 times in 15, with them 15 times.
_EXAMPLES = (
    ("Hello!", REPLY, '"Hello! What can I do for you?"'),
    ("What is in src?", "list_dir", '{"path":"src"}'),
    ("What does notes.md say?", "read_file", '{"path":"notes.md"}'),
    ("What is 2 + 2?", REPLY, '"4"'),
    ("Write a script hi.py that prints hi", "write_file", '{"path":"hi.py","content":"print(\'hi\')\\n"}'),
    ("In a.txt change hi to ho", "edit_file", '{"path":"a.txt","old_text":"hi","new_text":"ho"}'),
    ("Who wrote Hamlet?", REPLY, '"William Shakespeare."'),
    ("My name is Bob.", REPLY, '"Nice to meet you, Bob!"'),
)


def compact_prompt(system: str, tools: tuple[ToolSpec, ...]) -> str:
    """The system message: as much of `system` as there is room for, then the tools in a line each."""
    how = _about(tools) if tools else ""
    room = max(_LEAST, _BUDGET - len(how))
    return f"{_shorten(system, room)}\n\n{how}".strip()


def render_prefix(system: str, tools: tuple[ToolSpec, ...]) -> str:
    return _turn("system", compact_prompt(system, tools))


def render_messages(messages: list[Message], spoken: Mapping[str, str], *, as_json: bool, tail: str = "") -> str:
    """What follows the prefix, up to where the model goes on. The tail stands before what was said last, which the
    model answers.

    `spoken` has the bytes that the model itself wrote, by their usual spelling, where the two differ.
    """
    shown = [_shown(message, spoken, as_json) for message in messages]
    if tail:
        role, content = shown.pop() if shown and shown[-1][0] == "user" else ("user", "")
        shown.append((role, f"{tail}\n\n{content}".rstrip()))
    turns = [_turn(role, content) for role, content in shown]
    return "".join(turns) + "<|im_start|>assistant\n"


def spelling(message: Message, *, as_json: bool) -> str:
    """An assistant's message as the model would have written it."""
    words = [spell_reply(message.text) if as_json else message.text] if message.text or not message.calls else []
    return "\n".join([*words, *map(spell_call, message.calls)])


def _shown(message: Message, spoken: Mapping[str, str], as_json: bool) -> tuple[str, str]:
    match message.role:
        case "user":
            return "user", message.text
        case "assistant":
            usual = spelling(message, as_json=as_json)
            return "assistant", spoken.get(usual, usual)
        case "tool":
            return "user", f"<tool_response>\n{cap(message.text)}\n</tool_response>\n{_AFTER_TOOL}"


def _turn(role: str, content: str) -> str:
    # Nobody but this line may write the marks that separate turns.
    return f"<|im_start|>{role}\n{content.replace('<|', '< |')}<|im_end|>\n"


def cap(result: str) -> str:
    """A tool's result as this model is shown it: both ends of a long one."""
    if len(result) <= _RESULT:
        return result
    head, tail = result[: _RESULT * 2 // 3], result[-_RESULT // 4 :]
    return f"{head}\n[… {len(result) - len(head) - len(tail)} characters left out …]\n{tail}"


def _about(tools: tuple[ToolSpec, ...]) -> str:
    lines = [f"- {_signature(tool)}: {_sentence(tool.description)}" for tool in tools]
    examples = [f'{ask} -> {{"{name}":{args}}}' for ask, name, args in _EXAMPLES if _fits(name, args, tools)]
    return "\n".join([_HOW, *lines, "Examples:", *examples])


def _fits(name: str, args: str, tools: tuple[ToolSpec, ...]) -> bool:
    return name == REPLY or any(tool.name == name and not problems_of(ToolCall("", name, args), tool) for tool in tools)


def _signature(tool: ToolSpec) -> str:
    properties: dict[str, Any] = tool.schema.get("properties", {})
    required = tool.schema.get("required", [])
    return f"{tool.name}({', '.join(name if name in required else f'{name}?' for name in properties)})"


def _sentence(description: str) -> str:
    first = re.split("[.:;] ", " ".join(description.split()))[0].rstrip(".")
    return f"{_shorten(first, 60)}."


def _shorten(text: str, room: int) -> str:
    """The beginning of a text, up to the end of a paragraph, sentence or word that fits."""
    text = text.strip()
    if len(text) <= room:
        return text
    cut = text[:room]
    for end in ("\n\n", "\n", ". ", " "):
        if cut.rfind(end) > room // 2:
            return cut[: cut.rfind(end) + 1].rstrip()
    return cut
