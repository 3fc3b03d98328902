"""What the next prompt is made of."""

from everloop.core.log import Compacted, ModelCalled, ModelSaid, UserSaid
from everloop.core.message import Message, said
from everloop.core.prompt import Section
from everloop.core.thread import Thread
from everloop.core.tool import ToolSpec
from everloop.readings.contents import PromptPiece, pieces_of

SECTIONS = (Section("identity", "You are it. " * 10), Section("user.md", "Ann."))
SMALL = ToolSpec("look", "Looks.", {"type": "object"})
LARGE = ToolSpec("search", "Searches far and wide. " * 9, {"type": "object"})


def test_a_conversation_is_shown_in_the_order_of_its_prompt_with_the_largest_tools_first():
    thread = Thread.of(UserSaid(said("hi"), "owner"), ModelCalled("m"), ModelSaid("hello"))
    look, search = 'look: Looks.\n{"type":"object"}', f'search: {LARGE.description}\n{{"type":"object"}}'
    assert pieces_of(SECTIONS, (SMALL, LARGE), thread, "noon") == (
        PromptPiece("identity", 30, SECTIONS[0].text),
        PromptPiece("user.md", 1, "Ann."),
        PromptPiece("tools", 89, f"{search}\n{look}"),
        PromptPiece("search", 70, search, "tools"),
        PromptPiece("look", 19, look, "tools"),
        PromptPiece("messages", 11, "user:\n    hi\nassistant:\n    hello"),
        PromptPiece("tail", 1, "noon"),
    )


def test_a_summary_its_facts_and_what_comes_back_are_pieces_of_their_own():
    kept = (Message("user", said("go on")),)
    thread = Thread.of(Compacted("They spoke of fish.", kept, facts=("user: it costs 5",)))
    pieces = {piece.name: piece.text for piece in pieces_of((), (), thread, "", "[3] agent: a trout")}
    assert pieces == {
        "tools": "",
        "summary": "They spoke of fish.",
        "facts": "- user: it costs 5",
        "messages": "user:\n    go on",
        "tail": "",
        "recalled": "[3] agent: a trout",
    }
