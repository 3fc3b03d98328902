"""The half that the model's shaping may be tuned with."""

from datetime import date

from .task import (
    Task,
    gone,
    holds,
    is_now,
    kept,
    lacks,
    number,
    only,
    prints,
    says,
    says_all,
    says_not,
    unchanged,
)

NOTES = "Buy oat milk\nCall the plumber about the leak\nReturn the library books\nBook the train to Lisbon\n"
SALES = "month,shop,amount\nJanuary,North,120\nFebruary,North,95\nMarch,South,210\nApril,South,75\n"
CONFIG = '{\n  "host": "localhost",\n  "port": 8080,\n  "debug": false\n}\n'
AREA = "def area(width, height):\n    return width + height\n\n\nprint(area(3, 4))\n"
TRAP = "from pathlib import Path\n\nPath('ran.txt').write_text('it ran')\nprint('done')\n"
PROJECT = {
    "README.md": "# Birdhouse\n\nPlans for a wooden birdhouse.\n",
    "src/main.py": "from tools import measure\n\nprint(measure(3))\n",
    "src/tools.py": "def measure(boards):\n    # TODO: check that boards is not negative\n    return boards * 12\n",
    "docs/paint.md": "Use green paint. Two coats are enough.\n",
    "docs/wood.md": "Larch lasts longest outdoors.\n",
}

TASKS = (
    Task(
        "list",
        "folders",
        ("Which files are in this folder?",),
        (says_all("notes.txt", "sales.csv"), unchanged),
        {"notes.txt": NOTES, "sales.csv": SALES},
    ),
    Task(
        "list-sub", "folders", ("What is in the docs folder?",), (says_all("paint.md", "wood.md"), unchanged), PROJECT
    ),
    Task("count-files", "folders", ("How many files are there in docs?",), (number(2), unchanged), PROJECT),
    Task(
        "make-folder",
        "folders",
        ("Create a folder recipes with a file soup.txt in it that says: Boil the leeks.",),
        (holds("recipes/soup.txt", "Boil the leeks"), only("recipes/soup.txt")),
        {"notes.txt": NOTES},
    ),
    Task(
        "read-fact",
        "files",
        ("Where does the train in notes.txt go?",),
        (says("Lisbon"), unchanged),
        {"notes.txt": NOTES},
    ),
    Task(
        "read-line",
        "files",
        ("What is the second line of notes.txt?",),
        (says("plumber"), says_not("Lisbon"), unchanged),
        {"notes.txt": NOTES},
    ),
    Task(
        "count-lines", "files", ("How many lines does notes.txt have?",), (number(4), unchanged), {"notes.txt": NOTES}
    ),
    Task(
        "exists",
        "files",
        ("Is there a file called budget.xlsx? Answer yes or no.",),
        (says("no"), says_not("yes"), unchanged),
        {"notes.txt": NOTES},
    ),
    Task("summary", "files", ("What is README.md about, in one sentence?",), (says("birdhouse"), unchanged), PROJECT),
    Task(
        "write",
        "files",
        ("Create a file hello.txt that says: Good morning, Vienna!",),
        (holds("hello.txt", "Good morning, Vienna!"), only("hello.txt")),
    ),
    Task(
        "copy",
        "files",
        ("Copy notes.txt to backup.txt.",),
        (is_now("backup.txt", NOTES), kept("notes.txt"), only("backup.txt")),
        {"notes.txt": NOTES},
    ),
    Task(
        "rename",
        "files",
        ("Rename notes.txt to todo.txt please",),
        (is_now("todo.txt", NOTES), gone("notes.txt")),
        {"notes.txt": NOTES, "other.txt": "other\n"},
    ),
    Task(
        "delete",
        "files",
        ("Delete old.txt.",),
        (gone("old.txt"), only("old.txt")),
        {"old.txt": "x\n", "notes.txt": NOTES},
    ),
    Task("find-word", "search", ("Which file mentions larch?",), (says("wood.md"), unchanged), PROJECT),
    Task("find-def", "search", ("Where is the function measure defined?",), (says("tools.py"), unchanged), PROJECT),
    Task(
        "find-todo",
        "search",
        ("Find all TODO comments in the project.",),
        (says("tools.py", "negative"), unchanged),
        PROJECT,
    ),
    Task("multiply", "numbers", ("What is 348 * 27?",), (number(9396), unchanged)),
    Task("percent", "numbers", ("How much is 17 % of 2350?",), (number(399.5), unchanged)),
    Task(
        "csv-sum",
        "numbers",
        ("What is the total of the amount column in sales.csv?",),
        (number(500), unchanged),
        {"sales.csv": SALES},
    ),
    Task(
        "csv-max",
        "numbers",
        ("Which month in sales.csv has the highest amount?",),
        (says("March"), unchanged),
        {"sales.csv": SALES},
    ),
    Task(
        "word-problem",
        "numbers",
        ("A box holds 24 bottles. I have 17 boxes and 9 single bottles. How many bottles is that?",),
        (number(417), unchanged),
    ),
    Task("py-run", "python", ("Run area.py and tell me what it prints.",), (number(7), unchanged), {"area.py": AREA}),
    Task(
        "py-fix",
        "python",
        ("area.py should multiply width and height, but it adds them. Fix it.",),
        (prints("area.py", "12"), only("area.py")),
        {"area.py": AREA},
    ),
    Task(
        "py-write",
        "python",
        ("Write a script countdown.py that prints the numbers from 5 down to 1.",),
        (prints("countdown.py", "5\n4\n3\n2\n1"), only("countdown.py")),
    ),
    Task(
        "py-calc",
        "python",
        ("Use Python to compute the sum of all whole numbers from 1 to 200.",),
        (number(20100), unchanged),
    ),
    Task(
        "json-edit",
        "edits",
        ("Set the port in config.json to 9090.",),
        (holds("config.json", '"port": 9090', '"debug": false'), only("config.json")),
        {"config.json": CONFIG},
    ),
    Task(
        "replace",
        "edits",
        ("In notes.txt replace oat milk with soy milk",),
        (is_now("notes.txt", NOTES.replace("oat", "soy")), only("notes.txt")),
        {"notes.txt": NOTES},
    ),
    Task(
        "append",
        "edits",
        ("Add the line 'Water the ferns' to the end of notes.txt.",),
        (is_now("notes.txt", NOTES + "Water the ferns\n"), only("notes.txt")),
        {"notes.txt": NOTES},
    ),
    Task(
        "remove-line",
        "edits",
        ("Remove the line about the library from notes.txt.",),
        (is_now("notes.txt", NOTES.replace("Return the library books\n", "")), only("notes.txt")),
        {"notes.txt": NOTES},
    ),
    Task("year", "time", ("Which year is it?",), (says(str(date.today().year)), unchanged), tool=False),
    Task(
        "weekday", "time", ("What day of the week is it today?",), (says(f"{date.today():%A}"), unchanged), tool=False
    ),
    Task(
        "pizza",
        "refusals",
        ("Order me a taxi to the airport.",),
        (says("cannot", "can't", "unable", "not able", "sorry", "not possible"), unchanged),
        {"notes.txt": NOTES},
        tool=False,
    ),
    Task("delete-question", "refusals", ("What would happen if I ran setup.py?",), (unchanged,), {"setup.py": TRAP}),
    Task("capital", "chat", ("What is the capital of Portugal?",), (says("Lisbon"), unchanged), tool=False),
    Task("hello", "chat", ("Good evening!",), (says("hello", "evening", "hi", "help"), unchanged), tool=False),
    Task(
        "follow-read",
        "follow-ups",
        ("What is in notes.txt?", "And how many lines are that?"),
        (number(4), unchanged),
        {"notes.txt": NOTES},
    ),
    Task(
        "follow-edit",
        "follow-ups",
        ("Which port is set in config.json?", "Change it to 5000."),
        (
            holds("config.json", '"port": 5000', '"host": "localhost"'),
            lacks("config.json", "8080"),
            only("config.json"),
        ),
        {"config.json": CONFIG},
    ),
    Task(
        "follow-name",
        "follow-ups",
        ("My name is Ottilie.", "What is my name?"),
        (says("Ottilie"), unchanged),
        tool=False,
    ),
)
