"""`everloop context` as people run it."""

import re
from typing import Any

import msgspec
from tests.cli.person import Person, asked_in, is_one_plain_sentence

from everloop.cli.context import to_text
from everloop.core.prompt import Usage
from everloop.readings.contents import Contents, PromptPiece
from everloop.readings.recall import RECALLED
from everloop.testing import Call, Say, Shown, Spend


async def looked(person: Person, *more: str) -> dict[str, Any]:
    ran = await person.run("context", "--json", *more)
    assert (ran.status, ran.err) == (0, "")
    told: dict[str, Any] = msgspec.json.decode(ran.out)
    return told


def names(told: dict[str, Any]) -> list[str]:
    return [part["name"] for part in told["parts"] if not part["of"]]


async def shown(person: Person, part: str) -> str:
    return (await person.run("context", "--show", part)).out


async def test_before_anything_is_said_it_shows_what_would_be_told(person):
    told = await looked(person)
    assert (told["session"], told["thread"], told["used"] > 2000, told["counted"]) == ("cli:direct", "", True, False)
    assert names(told) == ["identity", "skills", "tools", "messages", "tail"]
    assert told["prefix"] == {"changed": [], "at": 0, "coming": []}
    assert not (person.home / "workspace").exists()  # looking makes nothing


async def test_each_part_is_shown_with_its_tokens_and_adds_up_to_what_is_used(person, model):
    model.play([Call("list_dir"), (Say("Two files."), Spend(Usage(3000, 40)))])
    assert (await person.run("agent", "-m", "what is here?")).status == 0
    told = await looked(person)
    assert names(told) == ["identity", "agents.md", "soul.md", "skills", "tools", "messages", "tail"]
    sizes = {part["name"]: part["tokens"] for part in told["parts"]}
    tools = [part for part in told["parts"] if part["of"] == "tools"]
    assert len(tools) >= 15
    assert abs(sizes["tools"] - sum(part["tokens"] for part in tools)) <= len(tools)
    assert (told["used"], told["counted"]) == (3040, True)
    assert told["window"] - told["answer"] == told["limit"]
    assert told["full"] == round(told["used"] / told["limit"], 4)


async def test_a_part_is_shown_as_the_model_is_shown_it(person, model):
    model.play([Say("hello \x1b[2Jthere")])
    await person.run("agent", "-m", "hi")
    asked = model.requests[-1].body
    system = asked["messages"][0]["content"]
    told = [(await shown(person, part)).rstrip("\n") for part in ("identity", "AGENTS.md", "soul.md", "skills")]
    assert "\n\n---\n\n".join(told) == system
    assert await shown(person, "messages") == "user:\n    hi\nassistant:\n    hello \\u001b[2Jthere\n"
    assert (await shown(person, "list_dir")).startswith("list_dir: List a folder")
    assert re.match(r"Current time: .*\nChannel: cli, chat: direct\n$", await shown(person, "tail"))


async def test_it_says_which_part_changed_last_and_what_will_change_next(person, model):
    model.play(lambda shown: Say("hello"))
    await person.run("agent", "-m", "one")
    assert (await looked(person))["prefix"] == {"changed": [], "at": 0, "coming": []}
    (person.home / "workspace" / "AGENTS.md").write_text("Sing.")
    assert (await looked(person))["prefix"] == {"changed": [], "at": 0, "coming": ["agents.md"]}
    await person.run("agent", "-m", "two")
    assert (await looked(person))["prefix"] == {"changed": ["agents.md"], "at": 5, "coming": []}
    assert "The prefix changed last at entry 5: agents.md.\n" in (await person.run("context")).out


async def test_the_lines_that_come_back_for_the_last_message_are_a_part_of_their_own(person, model):
    prose = "and so it went on for a while, as it does. " * 60

    def play(shown: Shown) -> Say:
        if shown.system.startswith("You summarise"):
            return Say("They talked.")
        return Say("It hangs in the garden, the spare lantern." if asked_in(shown)[-1] == "lantern" else "noted")

    model.play(play)
    for text in ("lantern", *(f"{word} {prose}" for word in ("one", "two", "three")), "/compact", "go on"):
        await person.run("agent", "-m", text)
    assert names(await looked(person))[-3:] == ["messages", "tail", "recalled"]
    assert await shown(person, "recalled") == "\n"
    await person.run("agent", "-m", "Where did we put the spare lantern?")
    told = await shown(person, "recalled")
    assert told.startswith(RECALLED)
    assert "agent: It hangs in the garden, the spare lantern." in told
    assert model.prompts[-1].said[-1][1].endswith(told.strip())
    sizes = {part["name"]: part["tokens"] for part in (await looked(person))["parts"]}
    assert sizes["recalled"] == len(told.strip()) // 3


async def test_another_session_and_what_is_not_there(person, model):
    model.play([Say("hello")])
    await person.run("agent", "-m", "hi", "-s", "work:taxes")
    told = await looked(person, "-s", "work:taxes")
    assert (told["session"], bool(told["thread"])) == ("work:taxes", True)
    assert (await looked(person))["thread"] == ""
    for wrong in (("--show", "nothing"), ("-s", "nowhere")):
        ran = await person.run("context", *wrong)
        assert (ran.status, ran.out) == (1, "")
        assert is_one_plain_sentence(ran.err)


def test_the_table():
    pieces = (
        PromptPiece("identity", 60),
        PromptPiece("tools", 217),
        PromptPiece("exec", 217, of="tools"),
        PromptPiece("messages", 500),
    )
    contents = Contents(
        *("cli:direct", "3f2a", "openai/m", 10_000, 8000, 800, True, pieces),
        changed=("agents.md", "tools"),
        changed_at=41,
        coming=("user.md",),
    )
    assert to_text(contents) == (
        "cli:direct, 3f2a: openai/m reads 10,000 tokens\n"
        "PART                 TOKENS  SHARE\n"
        "identity                 60   0.6%\n"
        "tools                   217   2.2%\n"
        "  exec                  217   2.2%\n"
        "messages                500   5.0%\n"
        "room for the answer   2,000  20.0%\n"
        "free                  7,200  72.0%\n"
        "The next prompt fills 800 of 8,000 tokens, 10% (as its host has counted).\n"
        "The prefix changed last at entry 41: agents.md, tools.\n"
        "It will change with the next turn: user.md."
    )


async def test_the_window_is_the_one_that_models_shows_and_the_answer_the_one_that_a_request_asks_for(person, model):
    model.play([Say("hello")])
    told = await looked(person)
    listed = msgspec.json.decode((await person.run("models", "custom", "--json")).out)["models"]
    await person.run("agent", "-m", "hi")
    assert (told["window"], told["assumed"], told["answer"]) == (128_000, False, 8192)
    assert [row["window"] for row in listed] == [128_000]
    assert model.requests[-1].body["max_tokens"] == 8192


async def test_a_window_of_which_nobody_says_anything_is_said_to_be_assumed(person, model):
    person.environment["EVERLOOP_AGENTS__DEFAULTS__MODEL"] = "custom/not-in-the-list"
    told = await looked(person)
    assert (told["window"], told["assumed"], told["answer"]) == (8192, True, 2048)
    assert "Nobody says how much custom/not-in-the-list can read, so 8,192 tokens are assumed" in (
        (await person.run("context")).out
    )
