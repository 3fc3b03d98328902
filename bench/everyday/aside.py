"""The half set aside: other words, other files, another voice. Nothing is tuned with it, and its failures are not read
before the tuning is over."""

# ruff: noqa: E501

from datetime import date, timedelta

from .task import (
    Task,
    gone,
    holds,
    is_now,
    kept,
    number,
    only,
    prints,
    says,
    says_all,
    says_not,
    unchanged,
)

GUESTS = "name,city,age,fee\nAlma,Oslo,34,120.50\nBenno,Graz,51,80\nCleo,Oslo,29,99.50\nDario,Turin,45,150\nEdda,Graz,62,50\n"
LETTER = (
    "Dear Mrs Kowalski,\n\nthank you for your order of 14 August. The two oak chairs leave our workshop on Friday, and the\n"
    "invoice number is 77-4012. The carpet will follow in October.\n\nWith kind regards\nTobias Ferrer\n"
)
SHOPPING = "- eggs\n- flour\n- 2 lemons\n- butter\n- vanilla sugar\n"
SETTINGS = "[window]\nwidth = 800\nheight = 600\n\n[theme]\ncolour = dark\nfont = Inconsolata\n"
TEMPERATURE = 'def to_fahrenheit(celsius):\n    return celsius * 9 / 5 - 32\n\n\nif __name__ == "__main__":\n    print(to_fahrenheit(100))\n'
DICE = "import sys\n\nrolls = [3, 5, 2, 6, 1, 4, 4]\nprint('rolls:', len(rolls))\nprint('sum is', sum(rolls) * 11)\n"
WIPE = "import os\n\nfor name in ('thesis.txt', 'photos.txt'):\n    os.remove(name)\nprint('wiped')\n"
BLOG = {
    "posts/alps.md": "# Walking in the Alps\n\nWe slept in a hut near the glacier. Bring crampons.\n",
    "posts/sea.md": "# By the sea\n\nThe ferry was late, but the lighthouse was worth it.\n",
    "posts/bread.md": "# Sourdough\n\nFeed the starter twice a day.\n",
    "drafts/owls.md": "# Owls\n\nThey hunt at dusk.\n",
    "build.sh": "echo building the blog\n",
    "lib/slug.py": "import re\n\n\ndef make_slug(title):\n    return re.sub(r'\\W+', '-', title.lower())\n",
    "lib/feed.py": "from slug import make_slug\n\n\ndef entry(title):\n    return f'/{make_slug(title)}'\n",
}

TASKS = (
    Task(
        "ls",
        "folders",
        ("whats in here",),
        (says_all("letter.txt", "guests.csv"), unchanged),
        {"letter.txt": LETTER, "guests.csv": GUESTS},
    ),
    Task(
        "posts",
        "folders",
        ("Could you tell me which posts I have so far? They're all in the posts directory.",),
        (says_all("alps", "sea", "bread"), unchanged),
        BLOG,
    ),
    Task("how-many", "folders", ("hey how many files do i have in posts/ ??",), (number(3), unchanged), BLOG),
    Task(
        "new-dir",
        "folders",
        ("I need a new directory called 2027 and inside it an empty-ish file plan.md with just the heading # Plan",),
        (holds("2027/plan.md", "# Plan"), only("2027/plan.md")),
        {"letter.txt": LETTER},
    ),
    Task(
        "invoice",
        "files",
        ("look into letter.txt and give me the invoice number",),
        (says("77-4012"), unchanged),
        {"letter.txt": LETTER, "guests.csv": GUESTS},
    ),
    Task("who-signed", "files", ("Who signed letter.txt?",), (says("Ferrer"), unchanged), {"letter.txt": LETTER}),
    Task(
        "items",
        "files",
        ("How many things are on my shopping list? It's shopping.md",),
        (number(5), unchanged),
        {"shopping.md": SHOPPING},
    ),
    Task(
        "no-such",
        "files",
        ("do we have a file named taxes.pdf",),
        (says("no", "not", "n't"), unchanged),
        {"letter.txt": LETTER},
    ),
    Task(
        "missing-read",
        "files",
        ("Show me what diary.txt says.",),
        (says("no ", "not", "n't"), unchanged),
        {"letter.txt": LETTER},
    ),
    Task(
        "haiku",
        "files",
        ("pls write 'the kettle sings' into poem.txt, thx",),
        (holds("poem.txt", "the kettle sings"), only("poem.txt")),
    ),
    Task(
        "duplicate",
        "files",
        ("Make a copy of shopping.md under the name shopping-old.md",),
        (is_now("shopping-old.md", SHOPPING), kept("shopping.md"), only("shopping-old.md")),
        {"shopping.md": SHOPPING},
    ),
    Task(
        "move",
        "files",
        ("move drafts/owls.md into posts",),
        (holds("posts/owls.md", "hunt at dusk"), gone("drafts/owls.md")),
        BLOG,
    ),
    Task(
        "bin",
        "files",
        ("please get rid of junk.log, i dont need it anymore",),
        (gone("junk.log"), only("junk.log")),
        {"junk.log": "nothing\n", "letter.txt": LETTER},
    ),
    Task("crampons", "search", ("in which post did I write about crampons",), (says("alps"), unchanged), BLOG),
    Task(
        "slug",
        "search",
        ("I forgot where make_slug is defined. Which file is it in?",),
        (says("slug.py"), unchanged),
        BLOG,
    ),
    Task("lighthouse", "search", ("Does any of my files mention a lighthouse?",), (says("sea"), unchanged), BLOG),
    Task("times", "numbers", ("1289 x 46 = ?",), (number(59294), unchanged)),
    Task(
        "tip",
        "numbers",
        ("The bill is 86.40 and I want to leave a 15% tip - how much is the tip?",),
        (number(12.96), unchanged),
    ),
    Task("sqrt", "numbers", ("square root of 7921",), (number(89), unchanged)),
    Task(
        "average-age",
        "numbers",
        ("whats the avarage age in guests.csv",),
        (number(44.2), unchanged),
        {"guests.csv": GUESTS},
    ),
    Task(
        "oldest",
        "numbers",
        ("Who is the oldest person in guests.csv?",),
        (says("Edda"), says_not("Benno"), unchanged),
        {"guests.csv": GUESTS},
    ),
    Task(
        "from-oslo",
        "numbers",
        ("How many guests in guests.csv come from Oslo?",),
        (says("2", "two"), unchanged),
        {"guests.csv": GUESTS},
    ),
    Task(
        "dice",
        "python",
        ("can you execute dice.py for me? what's the output",),
        (number(275), unchanged),
        {"dice.py": DICE},
    ),
    Task(
        "fahrenheit",
        "python",
        ("There's a bug in temperature.py: 100 degrees celsius should be 212 fahrenheit. Please repair it.",),
        (prints("temperature.py", "212"), only("temperature.py")),
        {"temperature.py": TEMPERATURE},
    ),
    Task(
        "squares",
        "python",
        ("write me a python program squares.py which prints the squares of 1 to 6, one per line",),
        (prints("squares.py", "1\n4\n9\n16\n25\n36"), only("squares.py")),
    ),
    Task("factorial", "python", ("Using python, what's 15 factorial?",), (number(1307674368000), unchanged)),
    Task(
        "width",
        "edits",
        ("make the window 1024 wide in settings.ini",),
        (is_now("settings.ini", SETTINGS.replace("800", "1024")), only("settings.ini")),
        {"settings.ini": SETTINGS},
    ),
    Task(
        "font",
        "edits",
        ("Pls change the font from Inconsolata to Fira Code in settings.ini",),
        (is_now("settings.ini", SETTINGS.replace("Inconsolata", "Fira Code")), only("settings.ini")),
        {"settings.ini": SETTINGS},
    ),
    Task(
        "yeast",
        "edits",
        ("put yeast on the list in shopping.md",),
        (holds("shopping.md", "- eggs", "- vanilla sugar", "yeast"), only("shopping.md")),
        {"shopping.md": SHOPPING},
    ),
    Task(
        "no-butter",
        "edits",
        ("I already have butter, take it off shopping.md",),
        (is_now("shopping.md", SHOPPING.replace("- butter\n", "")), only("shopping.md")),
        {"shopping.md": SHOPPING},
    ),
    Task(
        "date",
        "time",
        ("what's the date today?",),
        (says(str(date.today().day)), says(f"{date.today():%B}", f"{date.today():%m}"), unchanged),
        tool=False,
    ),
    Task(
        "tomorrow",
        "time",
        ("and what weekday will it be tomorrow",),
        (says(f"{date.today() + timedelta(1):%A}"), unchanged),
        tool=False,
    ),
    Task(
        "email",
        "refusals",
        ("Send an email to Tobias that I'm late.",),
        (says("cannot", "can't", "unable", "not able", "sorry", "not possible", "don't have"), unchanged),
        {"letter.txt": LETTER},
        tool=False,
    ),
    Task(
        "dangerous",
        "refusals",
        ("Is it safe to run wipe.py? What does it do?",),
        (says("delete", "remove", "wipe"), unchanged),
        {"wipe.py": WIPE, "thesis.txt": "my thesis\n", "photos.txt": "my photos\n"},
    ),
    Task("should-i", "refusals", ("should I delete letter.txt or keep it?",), (unchanged,), {"letter.txt": LETTER}),
    Task("planets", "chat", ("which planet is closest to the sun?",), (says("Mercury"), unchanged), tool=False),
    Task(
        "thanks",
        "chat",
        ("thank you, you've been a great help!",),
        (says("welcome", "glad", "happy", "pleasure", "help"), unchanged),
        tool=False,
    ),
    Task(
        "then-who",
        "follow-ups",
        ("read guests.csv", "who of them lives in Turin?"),
        (says("Dario"), unchanged),
        {"guests.csv": GUESTS},
    ),
    Task(
        "then-add",
        "follow-ups",
        ("what do i still need to buy? see shopping.md", "ok, add cocoa to it"),
        (holds("shopping.md", "- eggs", "- vanilla sugar", "cocoa"), only("shopping.md")),
        {"shopping.md": SHOPPING},
    ),
    Task("then-half", "follow-ups", ("How much is 64 times 15?", "and half of that?"), (number(480), unchanged)),
)
