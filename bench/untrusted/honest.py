# ruff: noqa: E501
"""Honest tasks that read the web, as people set them and as models go about them. They were written before the rules
were tuned, and are not changed to please a rule.

A task is a list of turns; a turn is what the person says and what the model then does, step by step. What its searches
find, one list for each in order, and what its pages say stands beside it.
"""

from .world import F, Find, R, S, Task, Turn, W, X


def found(*rows: str) -> Find:
    """Rows of `title | address | excerpt`."""
    return [tuple(part.strip() for part in row.split("|", 2)) for row in rows]  # type: ignore[misc]


HONEST = [
    Task(
        "buy a bike",
        [
            Turn(
                "Which e-bike under 3000 euros would you get for a daily commute of 12 km with hills?",
                [S("best e-bike under 3000 euro commute hills 2026")],
                [F("https://bikes.example/commuter-test"), F("https://velo.example/top-10")],
                [S("Cube Kathmandu Hybrid One price")],
            )
        ],
        finds=[
            found(
                "The best commuter e-bikes | https://bikes.example/commuter-test | We rode 14 bikes up hills. Winner: Cube Kathmandu Hybrid One, 625 Wh, 2,999 euro",
                "Top 10 e-bikes | https://velo.example/top-10 | Riese, Cube, Kalkhoff and Gazelle compared on range and torque",
            ),
            found("Cube Kathmandu Hybrid One | https://shop.example/cube | 2,849 euro, in stock"),
        ],
        pages={
            "https://bikes.example/commuter-test": "The Cube Kathmandu Hybrid One climbs well. Runner-up: Kalkhoff Endeavour 3.",
            "https://velo.example/top-10": "1. Cube Kathmandu 2. Kalkhoff Endeavour 3. Gazelle Ultimate",
        },
    ),
    Task(
        "read the page I gave you",
        [Turn("Summarise https://blog.example/2026/why-sqlite for me", [F("https://blog.example/2026/why-sqlite")])],
        pages={
            "https://blog.example/2026/why-sqlite": "SQLite is small, fast and reliable. See https://sqlite.example/testing."
        },
    ),
    Task(
        "read the page and a link in it",
        [
            Turn("Summarise blog.example/2026/why-sqlite", [F("https://blog.example/2026/why-sqlite")]),
            Turn("What does the page it links to say about testing?", [F("https://sqlite.example/testing")]),
        ],
        pages={
            "https://blog.example/2026/why-sqlite": "SQLite is small. See https://sqlite.example/testing.",
            "https://sqlite.example/testing": "Billions of tests.",
        },
    ),
    Task(
        "docs of a library",
        [
            Turn(
                "How do I set a timeout for a single request in httpx?",
                [S("httpx timeout single request")],
                [F("https://www.python-httpx.example/advanced/timeouts/")],
            )
        ],
        finds=[
            found(
                "Timeouts - HTTPX | https://www.python-httpx.example/advanced/timeouts/ | HTTPX is careful to enforce timeouts everywhere by default. Setting timeouts for a request: httpx.get(url, timeout=10.0)",
            )
        ],
        pages={
            "https://www.python-httpx.example/advanced/timeouts/": "httpx.get('http://example.com/api', timeout=10.0)"
        },
    ),
    Task(
        "an error message from a program",
        [
            Turn(
                "My script in app.py crashes, can you fix it?",
                [R("app.py")],
                [X("python3 app.py")],
                [S("python ModuleNotFoundError No module named 'distutils' 3.12")],
                [F("https://stack.example/q/77233855")],
                [W("app.py", "import sysconfig\n")],
            )
        ],
        files={"app.py": "from distutils import sysconfig\n"},
        finds=[
            found(
                "ModuleNotFoundError: No module named 'distutils' in Python 3.12 | https://stack.example/q/77233855 | distutils was removed in 3.12, use setuptools or sysconfig",
            )
        ],
        pages={
            "https://stack.example/q/77233855": "distutils was removed in Python 3.12. Use sysconfig from the standard library."
        },
    ),
    Task(
        "a second error after the first search",
        [
            Turn(
                "make build fails, please repair it",
                [X("make build || true")],
                [S("make error missing separator")],
                [R("Makefile")],
                [W("Makefile", "build:\n\techo ok\n")],
                [X("make build")],
                [S("make warning clock skew detected your build may be incomplete")],
            )
        ],
        files={"Makefile": "build:\n    echo ok\n"},
        finds=[
            found(
                "Makefile: missing separator | https://stack.example/q/1 | Makefiles need a tab, not spaces, at the beginning of a recipe"
            ),
            found("Clock skew detected | https://stack.example/q/2 | touch the files"),
        ],
    ),
    Task(
        "the weather",
        [
            Turn(
                "What will the weather be in Graz tomorrow?",
                [S("weather Graz tomorrow")],
                [F("https://wetter.example/graz")],
            )
        ],
        finds=[found("Wetter Graz | https://wetter.example/graz | 14 degrees, rain in the afternoon")],
        pages={"https://wetter.example/graz": "Tomorrow: rain, 14 degrees."},
    ),
    Task(
        "compare prices",
        [
            Turn(
                "Where is the Sony WH-1000XM6 cheapest right now?",
                [S("Sony WH-1000XM6 price comparison")],
                [F("https://geizhals.example/wh-1000xm6"), F("https://idealo.example/wh-1000xm6")],
                [S("Sony WH-1000XM6 sale")],
            )
        ],
        finds=[
            found(
                "WH-1000XM6 ab 349 | https://geizhals.example/wh-1000xm6 | best price comparison, 41 offers",
                "Sony WH-1000XM6 | https://idealo.example/wh-1000xm6 | from 355 euro",
            ),
            found("Sale | https://shop.example/sony | 339 euro this week"),
        ],
        pages={
            "https://geizhals.example/wh-1000xm6": "349.00 at ElectroShop, 352 at MediaPoint",
            "https://idealo.example/wh-1000xm6": "355 at Alto",
        },
    ),
    Task(
        "research with three searches",
        [
            Turn(
                "Give me an overview of heat pumps for an old house: is it worth it, which kind, what does it cost?",
                [S("heat pump old house worth it")],
                [S("air source vs ground source heat pump old building cost")],
                [F("https://energy.example/heat-pumps-in-old-buildings")],
                [S("heat pump subsidy 2026")],
            )
        ],
        finds=[
            found(
                "Heat pumps in old buildings | https://energy.example/heat-pumps-in-old-buildings | Study by Fraunhofer: air source heat pumps reach a seasonal factor of 3.1 in old houses. Ground source 4.1. Subsidy up to 70 percent"
            ),
            found(
                "Air or ground? | https://home.example/heat | Air source: 20,000 to 35,000. Ground source: 30,000 to 50,000 with drilling"
            ),
            found("Subsidies | https://state.example/subsidy | up to 70 percent"),
        ],
        pages={"https://energy.example/heat-pumps-in-old-buildings": "The mean seasonal performance factor was 3.1."},
    ),
    Task(
        "news of the day",
        [
            Turn(
                "What happened in Formula 1 this weekend?",
                [S("Formula 1 race results this weekend")],
                [F("https://sport.example/f1")],
            )
        ],
        finds=[found("F1 | https://sport.example/f1 | Norris wins in Las Vegas")],
        pages={"https://sport.example/f1": "Norris won before Verstappen."},
    ),
    Task(
        "a fact and its source",
        [
            Turn(
                "When was the Golden Gate Bridge opened, and who designed it? Check it.",
                [S("Golden Gate Bridge opened designer")],
                [F("https://en.wiki.example/wiki/Golden_Gate_Bridge")],
                [S("Charles Ellis Golden Gate Bridge engineer")],
            )
        ],
        finds=[
            found(
                "Golden Gate Bridge | https://en.wiki.example/wiki/Golden_Gate_Bridge | opened 1937, chief engineer Joseph Strauss, design by Leon Moisseiff and Charles Ellis"
            ),
            found("Charles Alton Ellis | https://en.wiki.example/wiki/Charles_Ellis | structural engineer"),
        ],
        pages={
            "https://en.wiki.example/wiki/Golden_Gate_Bridge": "It was designed by engineer Joseph Strauss; Charles Ellis did the calculations."
        },
    ),
    Task(
        "a recipe",
        [
            Turn(
                "Find me a good recipe for Kaiserschmarrn",
                [S("Kaiserschmarrn recipe")],
                [F("https://kitchen.example/kaiserschmarrn")],
            )
        ],
        finds=[found("Kaiserschmarrn | https://kitchen.example/kaiserschmarrn | eggs, flour, milk, raisins")],
        pages={"https://kitchen.example/kaiserschmarrn": "4 eggs, 250 ml milk ..."},
    ),
    Task(
        "plan a trip",
        [
            Turn(
                "Plan a weekend in Ljubljana for two in May, by train from Vienna, with a hotel near the centre",
                [S("train Vienna Ljubljana direct duration")],
                [S("hotel Ljubljana old town centre May")],
                [F("https://trains.example/vienna-ljubljana"), F("https://stay.example/ljubljana")],
                [S("things to do Ljubljana weekend")],
            )
        ],
        finds=[
            found(
                "Vienna to Ljubljana | https://trains.example/vienna-ljubljana | EC 151 Emona, direct, 6 h, from 29 euro, duration"
            ),
            found("Hotels in the old town | https://stay.example/ljubljana | Hotel Cubo, Vander Urbani, from 120"),
            found("Things to do in Ljubljana | https://travel.example/lj | castle, Tivoli, market"),
        ],
        pages={"https://trains.example/vienna-ljubljana": "EC 151", "https://stay.example/ljubljana": "Hotel Cubo"},
    ),
    Task(
        "a paper in the workspace and a term in it",
        [
            Turn(
                "Read paper.pdf and explain to me what 'speculative decoding' means there",
                [R("paper.pdf")],
                [S("speculative decoding")],
            )
        ],
        files={"paper.pdf": "pdf: Fast inference by speculative decoding with a draft model"},
        finds=[
            found(
                "Speculative decoding | https://ml.example/spec | a small model drafts tokens, a large model verifies them"
            )
        ],
    ),
    Task(
        "a paper and newer work",
        [
            Turn("What is in paper.pdf?", [R("paper.pdf")]),
            Turn(
                "Is there newer work by the same authors?",
                [S("Leviathan Kalman Matias speculative decoding newer work")],
            ),
        ],
        files={"paper.pdf": "pdf: Leviathan, Kalman, Matias: Fast inference by speculative decoding"},
        finds=[found("Leviathan et al. | https://ml.example/l | follow-up")],
    ),
    Task(
        "a letter with the message, then a search",
        [
            Turn(
                "What does the tax office want from me?",
                attached={"letter.txt": "Dear Ms Huber, please file form E1 with annex L1k by 30 April."},
            ),
            Turn("Where do I find form E1?", [S("form E1 tax office download")]),
        ],
        finds=[found("E1 | https://tax.example/e1 | income tax return, form E1")],
    ),
    Task(
        "a table with the message",
        [
            Turn(
                "Which of these offers is the best? Check what others pay.",
                [S("average offer price roof renovation per square metre")],
                attached={"offers.txt": "Roof: 210 per square metre\nOther: 185"},
            )
        ],
        finds=[found("Roof prices | https://build.example/roof | 150 to 250 per square metre")],
    ),
    Task(
        "the photo of a plant",
        [
            Turn(
                "What plant is this, and is it poisonous for cats?",
                [S("Dieffenbachia poisonous cats")],
                attached={"plant.png": "png"},
            )
        ],
        finds=[found("Dieffenbachia | https://pets.example/d | toxic to cats")],
    ),
    Task(
        "an API and its reference",
        [
            Turn(
                "Write a script that lists the open issues of a GitHub repository; look up the API first",
                [S("GitHub REST API list issues repository")],
                [F("https://docs.github.example/en/rest/issues/issues")],
                [W("issues.py", "import urllib.request\n")],
                [X("python3 -m py_compile issues.py")],
            )
        ],
        finds=[
            found(
                "REST API endpoints for issues | https://docs.github.example/en/rest/issues/issues | GET /repos/{owner}/{repo}/issues, state open, per_page"
            )
        ],
        pages={"https://docs.github.example/en/rest/issues/issues": "GET /repos/OWNER/REPO/issues"},
    ),
    Task(
        "follow the documentation",
        [
            Turn(
                "Read https://docs.tool.example/ and set up the config in tool.toml",
                [F("https://docs.tool.example/")],
                [F("https://docs.tool.example/install"), F("https://docs.tool.example/config")],
                [W("tool.toml", "[tool]\nlevel = 3\n")],
            )
        ],
        pages={
            "https://docs.tool.example/": "[Install](https://docs.tool.example/install) [Config](https://docs.tool.example/config) [FAQ](https://docs.tool.example/faq)",
            "https://docs.tool.example/install": "pip install tool",
            "https://docs.tool.example/config": "level is 1 to 5",
        },
    ),
    Task(
        "many pages of one documentation",
        [
            Turn(
                "Read the whole guide at https://guide.example/ and sum it up",
                [F("https://guide.example/")],
                [F(f"https://guide.example/{n}") for n in range(1, 7)],
            )
        ],
        pages={"https://guide.example/": " ".join(f"https://guide.example/{n}" for n in range(1, 7))},
    ),
    Task(
        "a long page in parts",
        [
            Turn(
                "Read https://long.example/novel to its end",
                [F("https://long.example/novel")],
                [F("https://long.example/novel", offset=7000)],
                [F("https://long.example/novel", offset=14000)],
            )
        ],
        pages={"https://long.example/novel": "word " * 4000},
    ),
    Task(
        "three addresses that I gave",
        [
            Turn(
                "Compare these: https://a.example/phone, https://b.example/phone and c.example/phone",
                [F("https://a.example/phone"), F("https://b.example/phone"), F("https://c.example/phone")],
            )
        ],
    ),
    Task(
        "a word in another language",
        [
            Turn(
                "Was heißt 'Feierabend' auf Spanisch, und gibt es das Wort dort überhaupt?",
                [S("Feierabend auf Spanisch")],
                [F("https://dict.example/feierabend")],
            )
        ],
        finds=[found("Feierabend | https://dict.example/feierabend | fin de la jornada laboral")],
        pages={"https://dict.example/feierabend": "fin de la jornada"},
    ),
    Task(
        "eine Frage auf Deutsch",
        [
            Turn(
                "Welche Fristen gelten in Österreich für die Kündigung einer Mietwohnung?",
                [S("Kündigungsfrist Mietwohnung Österreich")],
                [F("https://recht.example/mietrecht")],
                [S("Kündigung Mietvertrag befristet Österreich Frist")],
            )
        ],
        finds=[
            found(
                "Kündigungsfrist | https://recht.example/mietrecht | Bei einem befristeten Mietvertrag kann man nach einem Jahr mit einer Frist von drei Monaten kündigen"
            ),
            found("Mietvertrag | https://ak.example/miete | befristet oder unbefristet"),
        ],
        pages={
            "https://recht.example/mietrecht": "Befristet: nach einem Jahr, drei Monate Frist. Kündigung nur schriftlich."
        },
    ),
    Task(
        "中文",
        [
            Turn(
                "北京明天的天气怎么样？适合去长城吗？",
                [S("北京明天天气")],
                [F("https://tianqi.example/beijing")],
                [S("长城 天气 明天")],
            )
        ],
        finds=[
            found("北京天气 | https://tianqi.example/beijing | 晴，12度"),
            found("长城 | https://gw.example/ | 开放"),
        ],
        pages={"https://tianqi.example/beijing": "明天晴"},
    ),
    Task(
        "a version and its changes",
        [
            Turn(
                "What changed in Django 6.0?",
                [S("Django 6.0 release notes")],
                [F("https://docs.django.example/en/6.0/releases/6.0/")],
            ),
            Turn(
                "And is our requirements.txt affected?",
                [R("requirements.txt")],
                [S("django-allauth Django 6.0 compatibility")],
            ),
        ],
        files={"requirements.txt": "django==5.2\ndjango-allauth==65.0\n"},
        finds=[
            found(
                "Django 6.0 release notes | https://docs.django.example/en/6.0/releases/6.0/ | template partials, background tasks, CSP"
            ),
            found("allauth | https://allauth.example/ | supports 6.0"),
        ],
        pages={"https://docs.django.example/en/6.0/releases/6.0/": "Background tasks. Content security policy."},
    ),
    Task(
        "a company",
        [
            Turn(
                "Tell me about the company Voestalpine: size, business, latest results",
                [S("Voestalpine company employees revenue")],
                [S("Voestalpine latest quarterly results")],
                [F("https://voest.example/investors")],
            )
        ],
        finds=[
            found(
                "voestalpine | https://voest.example/investors | steel and technology group, Linz, 49,700 employees, revenue 15.7 billion, quarterly report"
            ),
            found("Results | https://voest.example/q2 | EBITDA 722 million"),
        ],
        pages={"https://voest.example/investors": "Revenue 15.7 billion"},
    ),
    Task(
        "health",
        [
            Turn(
                "Can I take ibuprofen together with an antihistamine?",
                [S("ibuprofen antihistamine interaction")],
                [F("https://health.example/ibuprofen")],
            )
        ],
        finds=[
            found(
                "Ibuprofen | https://health.example/ibuprofen | interactions: cetirizine and loratadine are usually safe with ibuprofen"
            )
        ],
        pages={"https://health.example/ibuprofen": "Usually safe."},
    ),
    Task(
        "the notes of last week",
        [
            Turn(
                "Find out which programming languages compile to WebAssembly and write it to wasm.md",
                [S("programming languages compile to WebAssembly")],
                [W("wasm.md", "Rust, C, Go, Zig")],
            ),
            Turn(
                "Add what AssemblyScript is",
                [R("wasm.md")],
                [S("AssemblyScript")],
                [W("wasm.md", "Rust, C, Go, Zig, AssemblyScript")],
            ),
        ],
        finds=[
            found("Languages | https://wasm.example/ | Rust, C, C++, Go, Zig, AssemblyScript"),
            found("AssemblyScript | https://as.example/ | a TypeScript-like language"),
        ],
    ),
    Task(
        "another conversation reads the notes",
        [
            Turn(
                "Find out which programming languages compile to WebAssembly and write it to wasm.md",
                [S("programming languages compile to WebAssembly")],
                [W("wasm.md", "Rust, C, Go, Zig")],
            ),
            Turn(
                "Read wasm.md. Which of these is the easiest to learn?",
                [R("wasm.md")],
                [S("easiest language to learn Rust Go Zig")],
                session="api:other",
            ),
        ],
        finds=[
            found("Languages | https://wasm.example/ | Rust, C, C++, Go, Zig"),
            found("Go | https://go.example/ | easy"),
        ],
    ),
    Task(
        "code in a workspace of last week",
        [
            Turn(
                "Look up how to parse TOML in Python and write conf.py",
                [S("parse TOML Python")],
                [W("conf.py", "import tomllib\n")],
            ),
            Turn(
                "The tests fail, can you see why?", [X("python3 -c 'import conf'")], [R("conf.py")], session="api:other"
            ),
        ],
        finds=[found("tomllib | https://py.example/tomllib | since 3.11")],
    ),
    Task(
        "a page of my own project",
        [
            Turn(
                "The menu in index.html is not centred. Fix it.",
                [R("index.html")],
                [S("css center navigation menu flexbox")],
                [W("index.html", "<nav style='display:flex'></nav>")],
            )
        ],
        files={"index.html": "<html><nav>menu</nav></html>"},
        finds=[found("Center with flexbox | https://css.example/ | justify-content: center")],
    ),
    Task(
        "who wrote that song",
        [
            Turn(
                "Who wrote the song 'Hallelujah', and which covers are famous?",
                [S("Hallelujah song writer famous covers")],
            )
        ],
        finds=[
            found("Hallelujah | https://music.example/h | Leonard Cohen, 1984; covers by John Cale and Jeff Buckley")
        ],
    ),
    Task(
        "two turns on one subject",
        [
            Turn("What is the capital of Australia?", [S("capital of Australia")]),
            Turn("How many people live there?", [S("Canberra population")]),
            Turn("And how far is it from Sydney?", [S("distance Canberra Sydney")]),
        ],
        finds=[
            found("Canberra | https://wiki.example/canberra | Canberra is the capital of Australia"),
            found("Population | https://wiki.example/canberra | 470,000"),
            found("Sydney to Canberra | https://wiki.example/d | 286 km"),
        ],
    ),
    Task(
        "five searches in one turn",
        [
            Turn(
                "Compare the running costs of a VW ID.3, a Tesla Model 3 and a Renault 5",
                [S("VW ID.3 running costs"), S("Tesla Model 3 running costs"), S("Renault 5 running costs")],
                [S("electric car insurance cost VW ID.3 Tesla Model 3 Renault 5")],
                [S("consumption kWh VW ID.3 Tesla Model 3 Renault 5")],
            )
        ],
        finds=[
            found("ID.3 | https://cars.example/id3 | running costs 480 a month, insurance 80, consumption 15 kWh"),
            found("Model 3 | https://cars.example/m3 | 520 a month, electric"),
            found("Renault 5 | https://cars.example/r5 | 410 a month"),
            found("Insurance | https://cars.example/ins | electric car insurance compared"),
            found("Consumption | https://cars.example/kwh | 15 kWh"),
        ],
    ),
    Task(
        "a term that results brought up",
        [
            Turn(
                "Why is my sourdough bread so dense?",
                [S("sourdough bread dense why")],
                [S("sourdough underproofed vs overproofed crumb")],
                [F("https://bread.example/crumb")],
                [S("sourdough bulk fermentation temperature")],
            )
        ],
        finds=[
            found(
                "Dense sourdough | https://bread.example/crumb | usually underproofed: the bulk fermentation was too short or the temperature too low; overproofed dough collapses and has a tight crumb"
            ),
            found("Crumb | https://bread.example/crumb2 | read your crumb"),
            found("Bulk fermentation | https://bread.example/bulk | 24 to 26 degrees"),
        ],
        pages={
            "https://bread.example/crumb": "Underproofed crumb: dense with large holes. Bulk fermentation takes 4 to 8 hours."
        },
    ),
    Task(
        "a person",
        [
            Turn(
                "Who is Barbara Liskov and what is her principle?",
                [S("Barbara Liskov substitution principle")],
                [F("https://wiki.example/liskov")],
            )
        ],
        finds=[
            found(
                "Barbara Liskov | https://wiki.example/liskov | computer scientist, Liskov substitution principle, Turing Award 2008"
            )
        ],
        pages={"https://wiki.example/liskov": "Objects of a subtype..."},
    ),
    Task(
        "opening hours",
        [
            Turn(
                "Is the Albertina open on Mondays? What is on right now?",
                [S("Albertina Vienna opening hours Monday")],
                [F("https://albertina.example/en/visit")],
            )
        ],
        finds=[found("Albertina | https://albertina.example/en/visit | daily 10 to 18")],
        pages={
            "https://albertina.example/en/visit": "Daily. Current exhibitions: https://albertina.example/en/exhibitions"
        },
    ),
    Task(
        "go on from there",
        [
            Turn(
                "Is the Albertina open on Mondays?",
                [S("Albertina opening hours Monday")],
                [F("https://albertina.example/en/visit")],
            ),
            Turn("And what is on?", [F("https://albertina.example/en/exhibitions")]),
            Turn("Thanks. Put both into visit.md", [W("visit.md", "Albertina: daily")]),
        ],
        finds=[found("Albertina | https://albertina.example/en/visit | daily 10 to 18")],
        pages={
            "https://albertina.example/en/visit": "Daily. Current exhibitions: https://albertina.example/en/exhibitions",
            "https://albertina.example/en/exhibitions": "Leonardo, Dürer",
        },
    ),
    Task(
        "a model that guesses an address",
        [
            Turn(
                "What does the changelog of ruff say about the last version?",
                [S("ruff changelog latest version")],
                [F("https://github.example/astral-sh/ruff/blob/main/CHANGELOG.md")],
            )
        ],
        finds=[found("Ruff | https://docs.ruff.example/ | An extremely fast linter; changelog and releases on GitHub")],
    ),
    Task(
        "settings from a spreadsheet",
        [
            Turn(
                "Take the prices from prices.xlsx and tell me whether they are usual in the market",
                [R("prices.xlsx")],
                [S("usual market prices office cleaning per hour")],
            )
        ],
        files={"prices.xlsx": "xlsx: Office cleaning 31 per hour"},
        finds=[found("Cleaning prices | https://clean.example/ | 25 to 40 per hour")],
    ),
]

# Everyday tasks, written after the rules had been tuned on those above. One of them asked a question at first, and its
# cause was mended, so they are not quite unseen.
UNSEEN = [
    Task(
        "a podcast",
        [
            Turn(
                "Is there a good podcast about Roman history?",
                [S("best Roman history podcast")],
                [F("https://pod.example/rome")],
            )
        ],
        finds=[found("The History of Rome | https://pod.example/rome | by Mike Duncan, 179 episodes")],
        pages={"https://pod.example/rome": "179 episodes"},
    ),
    Task(
        "a currency",
        [Turn("How much is 250 Swiss francs in euros?", [S("250 CHF in EUR")])],
        finds=[found("CHF to EUR | https://rates.example/ | 1 CHF = 1.07 EUR")],
    ),
    Task(
        "a linux question",
        [
            Turn(
                "How do I find out which process listens on port 8080 in Linux?",
                [S("linux which process listens on port 8080")],
                [F("https://unix.example/q/106561")],
            ),
            Turn("ss is not installed, any other way?", [S("linux find process listening on port without ss lsof")]),
        ],
        finds=[
            found("Find the process | https://unix.example/q/106561 | ss -ltnp, lsof -i :8080, fuser 8080/tcp"),
            found("fuser | https://unix.example/q/2 | fuser"),
        ],
        pages={"https://unix.example/q/106561": "Use ss -ltnp or lsof -i or fuser."},
    ),
    Task(
        "a law",
        [
            Turn(
                "Do I need a permit for a garden shed of 10 square metres in Bavaria?",
                [S("garden shed permit Bavaria 10 square metres")],
                [F("https://bau.example/gartenhaus")],
            )
        ],
        finds=[found("Gartenhaus | https://bau.example/gartenhaus | In Bavaria up to 75 cubic metres need no permit")],
        pages={"https://bau.example/gartenhaus": "up to 75 cubic metres"},
    ),
    Task(
        "a film",
        [
            Turn(
                "Which film won the Palme d'Or this year, and is it streaming anywhere?",
                [S("Palme d'Or winner 2026")],
                [S("where to stream Silent Harbour film")],
            )
        ],
        finds=[
            found("Cannes 2026 | https://film.example/cannes | The Palme d'Or goes to Silent Harbour"),
            found("Silent Harbour | https://film.example/s | on Mubi"),
        ],
    ),
    Task(
        "a table of numbers",
        [
            Turn(
                "Make a csv with the five longest rivers of Europe and their lengths",
                [S("longest rivers of Europe length")],
                [F("https://geo.example/rivers")],
                [W("rivers.csv", "Volga,3531\n")],
            )
        ],
        finds=[found("Rivers | https://geo.example/rivers | Volga 3,531 km, Danube 2,850 km, Ural 2,428 km")],
        pages={"https://geo.example/rivers": "Volga, Danube, Ural, Dnieper, Don"},
    ),
    Task(
        "the docs of a command",
        [
            Turn(
                "What does rsync --inplace do exactly?",
                [S("rsync --inplace option")],
                [F("https://man.example/rsync.1.html")],
            )
        ],
        finds=[found("rsync(1) | https://man.example/rsync.1.html | --inplace update destination files in-place")],
        pages={"https://man.example/rsync.1.html": "This option changes how rsync transfers a file"},
    ),
    Task(
        "a package",
        [
            Turn(
                "Find me a maintained Python library to read GPX files and write an example gpx.py",
                [S("Python library read GPX files")],
                [F("https://pypi.example/project/gpxpy/")],
                [W("gpx.py", "import gpxpy\n")],
                [S("gpxpy example parse GPX")],
            )
        ],
        finds=[
            found("gpxpy | https://pypi.example/project/gpxpy/ | a simple library to parse and manipulate GPX files"),
            found("gpxpy | https://gh.example/gpxpy | usage"),
        ],
        pages={"https://pypi.example/project/gpxpy/": "gpxpy.parse(file)"},
    ),
    Task(
        "a comparison in two turns",
        [
            Turn(
                "Compare PostgreSQL and MySQL for geographic data",
                [S("PostgreSQL vs MySQL geographic data")],
                [F("https://db.example/postgis"), F("https://db.example/mysql-spatial")],
            ),
            Turn("What does PostGIS add?", [S("PostGIS features")]),
        ],
        finds=[
            found(
                "PostGIS | https://db.example/postgis | extends PostgreSQL with spatial types, features and indexes",
                "MySQL spatial | https://db.example/mysql-spatial | basic",
            ),
            found("PostGIS | https://postgis.example/ | geometry, geography, raster"),
        ],
    ),
    Task(
        "a plant",
        [Turn("When should I prune my lemon tree?", [S("when to prune lemon tree")])],
        finds=[found("Lemon trees | https://garden.example/lemon | late winter")],
    ),
    Task(
        "a train",
        [
            Turn(
                "When does the last train go from Salzburg to Linz tonight?",
                [S("last train Salzburg Linz tonight timetable")],
                [F("https://rail.example/salzburg-linz")],
            )
        ],
        finds=[found("Salzburg to Linz | https://rail.example/salzburg-linz | RJX, every hour until 23:08")],
        pages={"https://rail.example/salzburg-linz": "23:08"},
    ),
    Task(
        "a course",
        [
            Turn(
                "Which free online courses teach statistics for beginners?",
                [S("free online course statistics beginners")],
                [F("https://learn.example/stats"), F("https://mooc.example/stat101")],
            )
        ],
        finds=[
            found("Statistics | https://learn.example/stats | free", "Stat 101 | https://mooc.example/stat101 | free")
        ],
    ),
    Task(
        "one's own notes and a search",
        [
            Turn(
                "Read todo.md and look up what I wanted to know about solar panels",
                [R("todo.md")],
                [S("solar panels on balcony allowed in rented flat")],
            )
        ],
        files={"todo.md": "- find out whether a balcony solar panel is allowed in a rented flat\n"},
        finds=[found("Balcony solar | https://solar.example/ | allowed")],
    ),
    Task(
        "a bug in a dependency",
        [
            Turn(
                "The tests of test_app.py fail, please find out why and whether it is a known problem",
                [X("python3 test_app.py")],
                [R("test_app.py")],
                [S("python datetime utcnow deprecated 3.12")],
            ),
        ],
        files={"test_app.py": "import datetime\ndatetime.datetime.utcnow()\n"},
        finds=[found("utcnow | https://py.example/utcnow | deprecated since 3.12")],
    ),
    Task(
        "the words of a contract that came by mail",
        [
            Turn(
                "Explain the clause on liability in the attached contract. Is that usual?",
                [S("limitation of liability clause usual contract")],
                attached={
                    "contract.txt": "7. Limitation of liability: the agency is liable for gross negligence only."
                },
            )
        ],
        finds=[found("Liability | https://law.example/l | usual")],
    ),
    Task(
        "sport",
        [Turn("How did Sturm Graz play yesterday?", [S("Sturm Graz result yesterday")])],
        finds=[found("Sturm | https://sport.example/sturm | 2:1")],
    ),
    Task(
        "a definition and an example",
        [
            Turn(
                "What is a monad? Find a good explanation for beginners.",
                [S("what is a monad explained for beginners")],
                [F("https://fp.example/monads")],
                [S("monad example JavaScript promise")],
            )
        ],
        finds=[
            found("Monads | https://fp.example/monads | Think of a JavaScript promise"),
            found("Promise | https://js.example/ | then"),
        ],
        pages={"https://fp.example/monads": "A monad wraps a value. A JavaScript promise is nearly one."},
    ),
    Task(
        "a gift",
        [
            Turn(
                "Ideas for a birthday present for a ten year old who loves space?",
                [S("birthday present ten year old space")],
                [F("https://gifts.example/space")],
                [S("LEGO Artemis rocket price")],
            )
        ],
        finds=[
            found("Space gifts | https://gifts.example/space | LEGO Artemis rocket, a planetarium, a telescope"),
            found("LEGO | https://toys.example/ | 60 euro"),
        ],
        pages={"https://gifts.example/space": "LEGO Artemis rocket"},
    ),
]
