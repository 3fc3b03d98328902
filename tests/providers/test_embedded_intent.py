"""What a request asks for: above all, that nothing is changed or run for what was only a question."""

import pytest

from everloop.core.message import Message, said
from everloop.core.tool import ToolCall
from everloop.providers.embedded.intent import spans_of, wish_of
from everloop.providers.embedded.little import LITTLE
from everloop.providers.embedded.rules import allowed
from everloop.providers.embedded.turn import turn_of
from everloop.providers.embedded.world import World

WORLD = World(
    ("notes.txt", "setup.py", "settings.json", "docs/guide.md", "clean.sh", "todo.md"),
    ("docs",),
    whole=True,
    place="/w",
)
TOOLS = {tool.name: tool for tool in LITTLE}

QUESTIONS = (
    "What happens if I run setup.py?",
    "What would happen if you deleted notes.txt?",
    "what does clean.sh do",
    "Is it safe to run clean.sh? What does it do?",
    "Is it safe to run setup.py, and what does it change?",
    "Should I delete notes.txt or keep it?",
    "should i rename notes.txt to old.txt",
    "How do I rename notes.txt to old.txt?",
    "How can I run setup.py?",
    "Tell me how to delete notes.txt",
    "Explain how to change the port in settings.json and restart",
    "Is there a file budget.xlsx? Answer yes or no.",
    "Do we have a file named taxes.pdf",
    "Did you change settings.json?",
    "Have you run setup.py already?",
    "Why would I move notes.txt into docs?",
    "Can I delete todo.md?",
    "Could I overwrite notes.txt?",
    "Would it help to rename docs/guide.md?",
    "Can you write poems?",
    "Can you delete files?",
    "Could you tell me what setup.py does when I run it?",
    "Can you tell me if I should delete notes.txt?",
    "Could you explain what happens when you run clean.sh?",
    "What is the port in settings.json?",
    "Which line of notes.txt would you change?",
    "Run setup.py?",
    "Delete notes.txt?",
    "I wonder whether to delete notes.txt",
    "What did you write into notes.txt yesterday?",
    "Who created notes.txt, and when?",
    "Does setup.py delete anything?",
    "what's the command to remove notes.txt",
    "when should I run setup.py and clean.sh?",
    "Would you recommend deleting todo.md?",
    "Do you think you should change the port in settings.json to 9090?",
    "Is 'delete notes.txt' a valid command?",
    'What does "run setup.py" mean?',
    "How much is 12 * 7?",
    "Hello!",
    "My name is Bob.",
    "I wrote notes.txt yesterday.",
    "Thanks, that was great!",
    "Who wrote Hamlet?",
    "Wie viele Zeilen hat notes.txt?",
    "Summarize notes.txt for me.",
    "Show me notes.txt and tell me what is missing",
    "read todo.md",
    "List the files here",
    "Find all TODO comments",
    "What is in notes.txt? Make it short.",
    "Which files are here? Put them in a table.",
    "What does notes.txt say? Write your answer in one sentence.",
    "Translate notes.txt into German.",
    "Turn on the lights",
    "Set an alarm for seven.",
    "Order a pizza and make it quick.",
    "Write me a haiku about rain.",
    "Start with the capital of France.",
    "Don't delete notes.txt",
    "Never run setup.py",
    "Please do not run setup.py.",
    "Please don't change anything, just tell me what settings.json does",
    "I'm thinking about deleting notes.txt, what do you think?",
    "Before I delete notes.txt: what's in it?",
    "open notes.txt",
    "cat notes.txt",
    "notes.txt",
    "write a short summary of notes.txt",
    "Was steht in notes.txt",
    "que dice notes.txt",
    "how many .md files do I have?",
    "Could you delete the file notes.txt if I asked?",
    "Can you run a script?",
    "Can you run Python?",
    "Suppose I run setup.py. What happens?",
    "If you delete notes.txt, can I get it back?",
    "You should delete notes.txt, right?",
    "run setup.py or clean.sh - which is better?",
    "Please tell me whether to delete notes.txt.",
    "Describe what setup.py does, then run through the risks",
    "Run me through setup.py",
    "Take a look at notes.txt",
    "Start by reading setup.py",
    "Make a list of the names in notes.txt",
    "Create a summary of the points in notes.txt",
    "Write a table of what is in todo.md",
    "Add up the numbers in notes.txt",
    "Update me on todo.md",
    "Move on to todo.md",
    "Check notes.txt and correct me if I'm wrong",
    "Sort out what todo.md says",
    "Correct.",
)
ORDERS = (
    ("Run setup.py", "run"),
    ("could you run setup.py?", "run"),
    ("Can you please execute clean.sh and tell me what it says?", "run"),
    ("What does setup.py print? Please run it.", "run"),
    ("Delete notes.txt.", "delete"),
    ("please get rid of todo.md", "delete"),
    ("remove the file notes.txt", "delete"),
    ("Rename notes.txt to old.txt", "rename"),
    ("Would you rename notes.txt to old.txt?", "rename"),
    ("move notes.txt into docs", "rename"),
    ("notes.txt should be called old.txt", "rename"),
    ("Copy notes.txt to spare.txt, ok?", "copy"),
    ("make a backup of notes.txt", "copy"),
    ("back up notes.txt as spare.txt", "copy"),
    ("Change the port in settings.json to 9090", "edit"),
    ("In settings.json set the port to 9090", "edit"),
    ("There is a bug in setup.py. Fix it.", "edit"),
    ("Hey, could you fix the bug in setup.py?", "edit"),
    ("the port in settings.json should be 9090", "edit"),
    ("Add milk to todo.md", "add"),
    ("I forgot the eggs, put them on todo.md", "add"),
    ("Append 'the end' to notes.txt", "add"),
    ("Remove the second line from notes.txt", "remove"),
    ("delete the line about milk in todo.md", "remove"),
    ("Create a file a.txt that says hi", "write"),
    ("Change the name of notes.txt to ideas.txt", "rename"),
    ("Put notes.txt into the docs folder", "rename"),
    ("write 'bye' into notes.txt", "write"),
    ("Read notes.txt and write a summary into summary.txt", "write"),
    ("I need a new file plan.md with a heading", "write"),
    ("Can you write a script hello.py that prints hello?", "write"),
)


@pytest.mark.parametrize("text", QUESTIONS)
def test_nothing_can_be_changed_or_run_for_what_is_no_order(text: str):
    turn = turn_of([Message("user", said(text))], WORLD, TOOLS)
    assert [choice.tool.name for choice in allowed(turn).choices if choice.tool.changes] == []


@pytest.mark.parametrize("text, deed", ORDERS)
def test_an_order_is_known_by_its_verb(text: str, deed: str):
    assert deed in wish_of(text, WORLD).deeds


@pytest.mark.parametrize("text", [text for text, _ in ORDERS])
def test_an_order_is_not_answered_by_words_alone(text: str):
    """The negative control of the questions: for these something is done first."""
    assert not allowed(turn_of([Message("user", said(text))], WORLD, TOOLS)).reply


def test_names_are_those_that_exist_and_those_that_do_not():
    wish = wish_of(
        "Copy notes.txt and ./docs/guide.md (see https://a.example/x.html, bob@mail.org) to new/b.txt", WORLD
    )
    assert (wish.files, wish.missing) == (("notes.txt", "docs/guide.md"), ("new/b.txt",))
    assert wish_of("What is in guide.md?", WORLD).files == ("docs/guide.md",)
    assert wish_of("What is in the docs folder?", WORLD).folders == ("docs",)
    assert wish_of("Create a folder recipes with a file soup.txt", WORLD).new_folder == "recipes"


def test_of_a_workspace_that_was_not_seen_whole_no_name_is_missing():
    assert wish_of("Is there a budget.xlsx?", World(("a.txt",), (), whole=False)).missing == ()


def test_what_may_be_looked_for_are_words_of_the_request():
    assert spans_of('Which file mentions "blue whales"?') == ["blue whales", "blue", "whales"]
    assert spans_of("Where is make_slug defined?") == ["make_slug"]


def test_after_a_file_was_spoken_of_only_what_points_at_it_changes_it():
    def choices(text: str, *after: Message) -> list[str]:
        read = ToolCall("c", "read_file", '{"path":"settings.json"}')
        before = (
            Message("user", said("Which port is in settings.json?")),
            Message("assistant", (), (read,)),
            Message("tool", said('{"port": 80}'), answers="c"),
            Message("assistant", said("80")),
        )
        turn = turn_of([*before, Message("user", said(text)), *after], WORLD, TOOLS)
        return [choice.tool.name for choice in allowed(turn).choices]

    again = ToolCall("d", "read_file", '{"path":"settings.json"}')
    reading = (Message("assistant", (), (again,)), Message("tool", said('{"port": 80}'), answers="d"))
    assert choices("Change it to 5000.") == ["read_file"]
    assert choices("Change it to 5000.", *reading) == ["edit_line"]
    assert choices("Set the port to 5000.", *reading) == ["edit_line"]
    assert choices("Set an alarm for seven.", *reading) == []
    for text in (
        "Make it shorter.",
        "Put it in a table.",
        "Rewrite it in French.",
        "Delete that last sentence from your answer.",
        "Remove the port from your answer.",
        "Copy that.",
        "Correct, thanks!",
        "Can you run a script?",
        "Sort them by name.",
        "What happens if you change it?",
    ):
        assert not {"read_file", *choices(text, *reading)} - {"read_file", "list_dir", "search", "python"}, text


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Remember that my dog is called Bruno.", "My dog is called Bruno"),
        ("please remember: I live in Oslo", "I live in Oslo"),
        ("don't forget that I am allergic to nuts!", "I am allergic to nuts"),
        ("do you remember my dog?", ""),
        ("remember when we met?", ""),
        ("Remember to call Bob", ""),
        ("what should I remember?", ""),
    ],
)
def test_what_is_to_be_remembered_is_kept_as_it_is_said(said: str, kept: str):
    assert wish_of(said, World()).to_remember == kept
