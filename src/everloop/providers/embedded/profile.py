"""How a small model on a small machine is shown a conversation: little of everything, and always the same bytes.

It reads 20 to 60 tokens a second, so the prompt is compact, there is a tail part only when it matters, and long tool
results keep only their ends. Both models speak ChatML. The system part, the tools and the examples are the prefix
whose state is kept on disk. The examples are turns of a conversation, in a world of ponds and ducks that no request
shares, so that nothing of them is repeated in an answer.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ...core.message import Message
from ...core.tool import ToolCall, ToolSpec, parse_args
from .answer import spell_call, spell_reply
from .little import LittleTool, in_little, usable
from .results import capped

_BUDGET = 1500  # characters of the system part
_LEAST = 200  # of them for the caller's own words, however many tools there are
_RESULT = 1000
_HOW = (
    "Answer with one JSON object whose key is the name of a tool. Never guess what a file holds or what a sum is: use "
    "a tool first, then reply. You cannot send, call, buy, remind or switch anything: say so.\n"
    "Tools:\n- reply: Talk to the user."
)
_PLAIN_HOW = (
    "Answer with one JSON object whose key is the name of a tool. To talk to the user use reply.\n"
    "Tools:\n- reply: Say something to the user; use it when no other tool is needed."
)
# Each: what is asked, the calls with their results, the reply. The last weighs most.
_EXAMPLES: tuple[tuple[str, tuple[tuple[str, dict[str, str], str], ...], str], ...] = (
    ("Hello!", (), "Hello! What can I do for you?"),
    ("How much is 12.5 times 48?", (("python", {"code": "12.5 * 48"}, "600.0"),), "It is 600."),
    (
        "What color is the boat in pond.txt?",
        (("read_file", {"path": "pond.txt"}, "The boat is red.\n(pond.txt: 1 lines, 4 words)"),),
        "The boat is red.",
    ),
    (
        "Which file talks about turtles?",
        (
            (
                "search",
                {"text": "turtles"},
                "zoo/reptiles.md line 3: Two turtles live here.\n('turtles': 1 line in 1 file)",
            ),
        ),
        "zoo/reptiles.md talks about turtles, in line 3.",
    ),
    ("Who wrote Hamlet?", (), "William Shakespeare wrote Hamlet."),
    (
        "Make the price 12 in ducks.json",
        (
            ("read_file", {"path": "ducks.json"}, '{\n  "price": 10,\n  "ducks": 3\n}\n(ducks.json: 4 lines, 6 words)'),
            (
                "edit_line",
                {"path": "ducks.json", "line": '"price": 10,', "new": '"price": 12,'},
                "Done: ducks.json was written.",
            ),
        ),
        "The price in ducks.json is 12 now.",
    ),
    ("Order a pizza.", (), "I cannot do that: I can only work with the files here, calculate and answer questions."),
)
_CLOSE = "Those were examples, and their files do not exist. The user comes now."


def compact_prompt(system: str, tools: tuple[ToolSpec, ...]) -> str:
    """The system message: as much of `system` as there is room for, then the tools in a line each."""
    how = _about(tools) if tools else ""
    room = max(_LEAST, _BUDGET - len(how))
    return f"{_shorten(system, room)}\n\n{how}".strip()


def render_prefix(system: str, tools: tuple[ToolSpec, ...]) -> str:
    prefix = turn("system", compact_prompt(system, tools))
    little = usable({tool.name: tool for tool in tools})
    return prefix + (_examples(little) if little else "")


def _examples(little: Mapping[str, LittleTool]) -> str:
    turns: list[str] = []
    for asked, calls, reply in _EXAMPLES:
        if all(name in little for name, _, _ in calls):
            turns.append(turn("user", asked))
            for name, args, result in calls:
                turns += [turn("assistant", spell(name, args)), turn("user", _response(result))]
            turns.append(turn("assistant", spell_reply(reply)))
    return "".join(turns) + turn("system", _CLOSE)


def render_messages(
    messages: list[Message],
    spoken: Mapping[str, str],
    *,
    as_json: bool,
    tail: str = "",
    told: Mapping[int, str] = {},
    days: Mapping[int, str] = {},
) -> str:
    """What follows the prefix, up to where the model goes on. The tail stands before what was said last, which the
    model answers.

    `spoken` has the bytes that the model itself wrote, by their usual spelling, where the two differ. `told` has the
    results, by their places, in words for this model, and `days` what day it was when something was said.
    """
    shown = [_shown(message, spoken, as_json, told.get(place)) for place, message in enumerate(messages)]
    if tail:
        role, content = shown.pop() if shown and shown[-1][0] == "user" else ("user", "")
        shown.append((role, f"{tail}\n\n{content}".rstrip()))
    turns = [
        (turn("system", days[place]) if place in days else "") + turn(role, content)
        for place, (role, content) in enumerate(shown)
    ]
    return "".join(turns) + "<|im_start|>assistant\n"


def spelling(message: Message, *, as_json: bool) -> str:
    """An assistant's message as the model would have written it."""
    words = [spell_reply(message.text) if as_json else message.text] if message.text or not message.calls else []
    return "\n".join([*words, *map(_spell_call, message.calls)])


def _spell_call(call: ToolCall) -> str:
    name, args = in_little(call)
    return spell_call(call) if name == call.name and args == parse_args(call) else spell(name, args)


def spell(name: str, args: Mapping[str, Any]) -> str:
    return f'{{"{name}":{msgspec.json.encode(args).decode()}}}'


def _shown(message: Message, spoken: Mapping[str, str], as_json: bool, told: str | None) -> tuple[str, str]:
    match message.role:
        case "user":
            return "user", message.text
        case "assistant":
            usual = spelling(message, as_json=as_json)
            return "assistant", spoken.get(usual, usual)
        case "tool":
            return "user", _response(cap(message.text) if told is None else told)


def _response(result: str) -> str:
    return f"<tool_response>\n{result}\n</tool_response>"


def turn(role: str, content: str) -> str:
    # Nobody but this line may write the marks that separate turns.
    return f"<|im_start|>{role}\n{content.replace('<|', '< |')}<|im_end|>\n"


def cap(result: str) -> str:
    """A tool's result as this model is shown it: both ends of a long one."""
    return capped(result, _RESULT)


def _about(tools: tuple[ToolSpec, ...]) -> str:
    little = usable({tool.name: tool for tool in tools})
    lines = [f"- {tool.name}({', '.join(tool.params)}): {tool.about}" for tool in little.values() if tool.about]
    lines += [f"- {_signature(tool)}: {_sentence(tool.description)}" for tool in others(tools)]
    return "\n".join([_HOW if little else _PLAIN_HOW, *lines])


def others(tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """The tools that are shown as they are, because they carry out none of ours."""
    used = {tool.needs for tool in usable({tool.name: tool for tool in tools}).values()}
    return tuple(tool for tool in tools if tool.name not in used)


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
