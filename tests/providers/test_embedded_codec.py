"""What comes of a request before the embedded model is asked, and of its answer after: calls of the house's own tools,
tried on a real workspace."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from everloop.app.presets import _IN_LITTLE
from everloop.app.tools import ESSENTIAL, build_tools
from everloop.bus.local import LocalBus
from everloop.core.message import Message, said
from everloop.core.people import Role
from everloop.core.prompt import Prompt, Transcript
from everloop.core.tool import ToolCall, problems_of
from everloop.errors import ToolError
from everloop.files.folder import Folder
from everloop.ports.provider import Reply
from everloop.ports.tools import CallContext, Shown, Tool
from everloop.providers.embedded.codec import Codec, Memory, today
from everloop.providers.embedded.grammar import grammar_of
from everloop.providers.embedded.little import LITTLE, in_little, translated, usable
from everloop.providers.embedded.results import retold
from everloop.providers.embedded.rules import REPLY_ONLY, AllowedAnswer
from everloop.providers.embedded.world import World, look_at
from everloop.settings import load
from everloop.tools.remember import memory_tools

NOTES = "Buy oat milk\nCall the plumber\nBook the train\n"
CONFIG = '{\n  "host": "here",\n  "port": 80\n}\n'
SALES = "month,shop,amount\nJanuary,North,120\nFebruary,North,95\nMarch,South,210\n"
NOW = datetime(2026, 11, 16, 7, 5)
HEARD = CallContext("t:1:0", "t", "s", "owner", role=Role.USER)


class Notebook:
    """What was remembered."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    async def remember(self, text: str, topic: str, importance: int, replaces: str, context: CallContext) -> str:
        self.kept.append(text)
        return "Remembered."

    async def forget(self, query: str, context: CallContext) -> str:
        return "There is nothing such to forget."


class House:
    """A workspace with its real tools, and a conversation in it, whose model is played by the test."""

    def __init__(self, home: Path, files: dict[str, str]) -> None:
        self.root = home / "workspace"
        for path, content in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(content)
        self.root.mkdir(parents=True, exist_ok=True)
        made = build_tools(home, self.root, load(home, {}), Folder(home / "files"), LocalBus(), 4000)
        self.notebook = Notebook()
        tools = *made.tools, *memory_tools(lambda: self.notebook)
        self.tools: dict[str, Tool] = {tool.spec.name: tool for tool in tools}
        self.messages: list[Message] = []
        self.memory = Memory(look_at, lambda: NOW)
        self.made: list[tuple[str, dict[str, str]]] = []

    def codec(self) -> Codec:
        specs = tuple(tool.spec for tool in self.tools.values())
        prompt = Prompt("m", "", Transcript(tuple(self.messages)), specs, conversation="c", place=str(self.root))
        return self.memory.codec(prompt, specs)

    async def says(self, text: str, *answers: dict[str, dict[str, str]]) -> AllowedAnswer:
        """Play a turn: the settled calls, then one answer of the model after the other; what it may answer at last."""
        self.messages.append(Message("user", said(text)))
        left = list(answers)
        while True:
            codec = self.codec()
            if (call := codec.settled) is None:
                if not left:
                    return codec.allowed
                ((name, args),) = left.pop(0).items()
                assert name in {choice.tool.name for choice in codec.allowed.choices}
                reply = codec.call(Reply("", (ToolCall("m", name, json.dumps(args)),)))
                assert reply is not None
                (call,) = reply.calls
            await self.run(call)

    async def run(self, call: ToolCall) -> None:
        tool = self.tools[call.name]
        assert problems_of(call, tool.spec) == []
        result = await tool.run(json.loads(call.args), HEARD)
        told = result.text if isinstance(result, Shown) else result
        self.messages += [Message("assistant", (), (call,)), Message("tool", said(told), answers=call.id)]
        self.made.append((call.name, json.loads(call.args)))

    def __getitem__(self, path: str) -> str:
        return (self.root / path).read_text()


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(
        tmp_path, {"notes.txt": NOTES, "conf/app.json": CONFIG, "sales.csv": SALES, "docs/guide.md": "# Guide\n"}
    )


async def test_a_named_file_is_read_without_asking_the_model_and_then_it_replies(house: House):
    assert await house.says("What is in notes.txt?") == AllowedAnswer()
    assert house.made == [("read_file", {"path": "notes.txt"})]


async def test_a_file_that_does_not_exist_is_looked_for_and_not_made(house: House):
    assert await house.says("Is there a budget.xlsx? Answer yes or no.") == AllowedAnswer()
    assert house.made == [("find_files", {"pattern": "budget.xlsx"})]


async def test_a_folder_is_listed(house: House):
    await house.says("What is in the docs folder?")
    await house.says("Which files are here?")
    assert house.made == [("list_dir", {"path": "docs"}), ("list_dir", {"path": "."})]


async def test_a_word_is_searched_for(house: House):
    await house.says("Which file mentions plumber?")
    assert house.made == [("grep", {"pattern": "plumber", "ignore_case": True})]


async def test_a_file_is_renamed_copied_and_deleted_as_it_is_said_and_only_then_reported(house: House):
    assert await house.says("Rename notes.txt to todo.txt") == AllowedAnswer()
    assert (house["todo.txt"], (house.root / "notes.txt").exists()) == (NOTES, False)
    assert await house.says("Make a copy of todo.txt called spare.txt") == AllowedAnswer()
    assert (house["spare.txt"], house["todo.txt"]) == (NOTES, NOTES)
    assert await house.says("move spare.txt into docs") == AllowedAnswer()
    assert house["docs/spare.txt"] == NOTES
    assert await house.says("Delete docs/spare.txt and todo.txt.") == AllowedAnswer()
    assert sorted(path.name for path in house.root.rglob("*.txt")) == []


async def test_a_line_is_put_in_the_place_of_another_with_its_indent_and_its_comma(house: House):
    new = {"edit_line": {"path": "conf/app.json", "line": '"host": "here",', "new": '"host": "there"'}}
    assert await house.says("Set the host in conf/app.json to there", new) == AllowedAnswer()
    assert house["conf/app.json"] == CONFIG.replace('"here"', '"there"')


async def test_only_lines_of_the_file_can_be_pointed_at(house: House):
    house.messages.append(Message("user", said("Correct the train in notes.txt")))
    await house.run(house.codec().settled or pytest.fail("it is read first"))
    (choice,) = house.codec().allowed.choices
    assert choice.options["line"] == ("Buy oat milk", "Call the plumber", "Book the train")


@pytest.mark.parametrize(
    "text", ["Replace oat milk with soy milk in notes.txt", "in notes.txt change 'oat milk' to 'soy milk'"]
)
async def test_words_are_replaced_where_the_request_tells_both_and_the_file_has_the_old_ones(house: House, text: str):
    assert await house.says(text) == AllowedAnswer()
    assert house["notes.txt"] == NOTES.replace("oat", "soy")


async def test_a_key_of_settings_is_not_taken_for_its_value(house: House):
    new = {"edit_line": {"path": "conf/app.json", "line": '"port": 80', "new": '"port": 81'}}
    assert await house.says("change port to 81 in conf/app.json", new) == AllowedAnswer()
    assert house["conf/app.json"] == CONFIG.replace("80", "81")


async def test_a_fact_is_looked_up_where_it_stands(house: House):
    (house.root / "docs/staff.md").write_text("Ines runs the shop. Paul repairs kites.\n")
    assert await house.says("Who repairs kites?") == AllowedAnswer()
    assert house.made == [("read_file", {"path": "docs/staff.md"})]
    await house.says("Who wrote Hamlet?")
    assert len(house.made) == 1


async def test_a_program_that_was_broken_by_an_edit_is_written_once_more(house: House):
    (house.root / "a.py").write_text("print(1)\nprint(2)\n")
    broken = {"write_file": {"path": "a.py", "content": "print((1)\n"}}
    again = await house.says("Fix a.py", broken)
    assert ([choice.tool.name for choice in again.choices], again.reply) == (["edit_line"], False)


async def test_what_was_already_there_is_no_edit(house: House):
    (house.root / "a.py").write_text("print(1)\n")
    same = {"write_file": {"path": "a.py", "content": "print(1)\n"}}
    again = await house.says("Fix a.py", same)
    assert ([choice.tool.name for choice in again.choices], again.reply) == (["edit_line"], False)


async def test_lines_are_sorted(house: House):
    assert await house.says("Sort the lines of notes.txt") == AllowedAnswer()
    assert house["notes.txt"] == "Book the train\nBuy oat milk\nCall the plumber\n"


async def test_a_quoted_line_is_added_without_asking_the_model(house: House):
    assert await house.says("Add the line 'Feed the cat' to notes.txt") == AllowedAnswer()
    assert house["notes.txt"] == NOTES + "Feed the cat\n"


async def test_a_line_for_a_list_gets_its_mark(house: House):
    (house.root / "list.md").write_text("- eggs\n- flour\n")
    await house.says("Put yeast on list.md", {"add_line": {"path": "list.md", "text": "yeast"}})
    assert house["list.md"] == "- eggs\n- flour\n- yeast\n"


async def test_the_line_that_is_meant_is_removed(house: House):
    assert await house.says("Remove the line about the plumber from notes.txt") == AllowedAnswer()
    assert house["notes.txt"] == "Buy oat milk\nBook the train\n"


async def test_a_new_file_is_written_into_the_folder_that_is_named(house: House):
    hi = {"write_file": {"path": "recipes/soup.txt", "content": "Leeks."}}
    assert await house.says("Create a folder recipes with a file soup.txt that says Leeks.", hi) == AllowedAnswer()
    assert house["recipes/soup.txt"] == "Leeks.\n"


async def test_what_is_written_twice_is_the_same_and_a_file_that_changed_meanwhile_is_left_alone(house: House):
    await house.says("Add the line 'Feed the cat' to notes.txt")
    name, args = house.made[-1]
    tool = house.tools[name]
    await tool.run(args, CallContext("t:9:0", "t", "s", "owner", role=Role.USER))  # as after a crash
    assert house["notes.txt"] == NOTES + "Feed the cat\n"
    (house.root / "notes.txt").write_text("other\n")
    with pytest.raises(ToolError, match="not what was expected"):
        await tool.run(args, CallContext("t:10:0", "t", "s", "owner", role=Role.USER))
    assert house["notes.txt"] == "other\n"


async def test_a_sum_is_calculated_before_it_is_told(house: House):
    assert not (await house.says("What is 348 * 27?")).reply
    codec = house.codec()
    reply = codec.call(Reply("", (ToolCall("m", "python", '{"code":"348 * 27"}'),)))
    assert reply is not None
    assert [(call.name, json.loads(call.args)) for call in reply.calls] == [("run_python", {"code": "print(348 * 27)"})]


async def test_a_program_that_could_change_something_is_not_run_for_a_question(house: House):
    await house.says("How much is 2 + 2?")
    call = ToolCall("m", "python", json.dumps({"code": "open('a.txt', 'w').write('4')"}))
    assert house.codec().call(Reply("", (call,))) is None


@pytest.mark.parametrize("tool", [tool.name for tool in LITTLE if tool.changes])
async def test_no_changing_call_is_made_for_a_question_even_if_the_model_wrote_one(house: House, tool: str):
    await house.says("What happens if I change notes.txt?")
    args = dict.fromkeys(("path", "to"), "notes.txt") | dict.fromkeys(("content", "text", "line", "old", "new"), "x")
    assert house.codec().call(Reply("", (ToolCall("m", tool, json.dumps(args)),))) is None
    assert house["notes.txt"] == NOTES


async def test_after_a_call_that_failed_it_tries_again_and_not_for_ever(house: House):
    house.messages.append(Message("user", said("What is 7 * 8?")))
    for place in range(3):
        failing = ToolCall(f"c{place}", "run_python", json.dumps({"code": f"{place} / 0"}))
        house.messages += [
            Message("assistant", (), (failing,)),
            Message("tool", said("[exit code 1]\n[stderr]\nZeroDivisionError"), answers=failing.id),
        ]
        if not place:
            assert not house.codec().allowed.reply
    assert house.codec().allowed == AllowedAnswer()


async def test_the_same_call_twice_in_a_row_ends_in_words(house: House):
    house.messages.append(Message("user", said("Tell me something nice.")))
    for place in range(2):
        call = ToolCall(f"c{place}", "list_dir", '{"path":"."}')
        house.messages += [Message("assistant", (), (call,)), Message("tool", said("a"), answers=call.id)]
    assert house.codec().allowed == AllowedAnswer()


def test_a_call_is_shown_again_as_the_model_made_it():
    contents = {"a.txt": "x\n"}
    args = {"path": "a.txt", "to": "b.txt", "text": "a b", "name": "a", "code": "print(1)", "old": "x", "new": "y"}
    for name in (
        "list_dir",
        "read_file",
        "search",
        "find_file",
        "run_file",
        "rename_file",
        "delete_file",
        "make_folder",
    ):
        tool = next(tool for tool in LITTLE if tool.name == name)
        given = {param: args[param] for param in tool.params}
        assert in_little(translated(tool, given, contents, "c")) == (name, given)


def test_tools_of_others_with_the_same_name_are_not_taken_for_ours(house: House):
    specs = {name: tool.spec for name, tool in house.tools.items()}
    assert "list_dir" in usable(specs)
    assert "list_dir" not in usable({"list_dir": specs["grep"]})


WORLD = World(("notes.txt", "src/util.py"), ("src",), whole=True)


def told(name: str, result: str, asked: str = "", **args: str) -> str:
    return retold(ToolCall("c", name, json.dumps(args)), result, asked, WORLD)


def test_a_table_is_told_with_its_figures():
    assert told("read_file", SALES, path="sales.csv") == (
        f"{SALES.rstrip()}\n(sales.csv: 3 rows under the header, 4 lines; shop: North 2 times, South 1 times; "
        "amount: total 425, average 141.6667, highest 210 for March, lowest 95 for February)"
    )


def test_the_line_that_is_asked_for_is_told():
    counted = "a.txt: 3 lines, 3 words"
    assert told("read_file", "a\nb\nc\n", "What is line 2?", path="a.txt") == f"a\nb\nc\n({counted}; line 2 is: b)"
    assert told("read_file", "a\nb\nc\n", "and the third line?", path="a.txt") == f"a\nb\nc\n({counted}; line 3 is: c)"
    assert told("read_file", "a\nb\nc\n", "the last line", path="a.txt") == f"a\nb\nc\n({counted}; line 3 is: c)"
    assert told("read_file", "a\nb\nc\n", "What is line 9?", path="a.txt") == f"a\nb\nc\n({counted})"


def test_what_was_found_is_told_with_definitions_first_and_nothing_found_with_what_there_is():
    found = "src/main.py:3:use(slug)\nsrc/util.py:1:def slug():"
    assert told("grep", found, pattern="slug", ignore_case="true").split("\n") == [
        "src/util.py line 1: def slug():",
        "src/main.py line 3: use(slug)",
        "('slug': 2 lines in 2 files)",
    ]
    nothing = "No file has the text 'zebra'. The files are: notes.txt, src/util.py."
    assert told("grep", "[nothing was found]", pattern="zebra") == nothing
    assert told("find_files", "[nothing was found]", pattern="note.txt").startswith(
        "There is no file note.txt. There is notes.txt."
    )


def test_a_failed_program_is_told_by_its_end_and_a_good_one_by_its_output():
    assert told("run_python", "[exit code 0]\n42\n", code="print(42)") == "42"
    assert (
        told("run_python", "[exit code 1]\n[stderr]\nZeroDivisionError", code="1/0")
        == "Error: [stderr]\nZeroDivisionError"
    )


def test_the_day_is_told_where_it_matters():
    assert today("Which year is it?", NOW) == "Today is Monday, 16 November 2026."
    assert today("What time is it?", NOW) == "Today is Monday, 16 November 2026, 07:05."
    assert today("and tomorrow?", NOW).endswith("Tomorrow is Tuesday, 17 November; yesterday was Sunday, 15 November.")


async def test_the_day_and_the_words_of_a_result_stay_the_same_to_the_byte(house: House):
    await house.says("What is in notes.txt, and which day is it?")
    first = house.codec().question({}, AllowedAnswer()).messages
    (house.root / "later.txt").write_text("x")
    house.messages.append(Message("assistant", said("Milk.")))
    house.messages.append(Message("user", said("Thanks")))
    head = first.removesuffix("<|im_start|>assistant\n")
    assert house.codec().question({}, AllowedAnswer()).messages.startswith(head)


async def test_no_string_but_a_text_can_go_on_after_two_closing_braces(house: House):
    house.messages.append(Message("user", said("Set the port in conf/app.json to 81")))
    await house.run(house.codec().settled or pytest.fail("it is read first"))
    grammar = grammar_of((), house.codec().allowed)
    assert r'"\"new\"" ":" line' in grammar
    assert r'words ::= "\"" (plain | "}" plain)* "}"? "\""' in grammar
    house.messages.append(Message("user", said("Write a new file b.py")))
    assert r'"\"content\"" ":" string' in grammar_of((), house.codec().allowed)


async def test_after_a_compaction_nothing_is_taken_for_what_stood_at_the_same_place(house: House):
    await house.says("What is in notes.txt?")
    first = house.codec().question({}, AllowedAnswer()).messages
    assert "Buy oat milk" in first
    house.messages.clear()
    (house.root / "notes.txt").write_text("Nothing\n")
    (house.root / "new.txt").write_text("New\n")
    await house.says("What is in notes.txt?")
    again = house.codec().question({}, AllowedAnswer()).messages
    assert "Buy oat milk" not in again
    await house.says("What is in new.txt?")
    assert house.made[-1] == ("read_file", {"path": "new.txt"})


async def test_what_is_to_be_remembered_is_remembered_without_asking_the_model_and_then_told(tmp_path: Path):
    house = House(tmp_path, {})
    allowed = await house.says("Please remember that my dog is called Bruno.")
    assert (house.notebook.kept, allowed) == (["My dog is called Bruno"], REPLY_ONLY)


def test_what_its_tools_are_carried_out_by_is_offered_to_it():
    assert {tool.needs for tool in LITTLE} <= ESSENTIAL | _IN_LITTLE
