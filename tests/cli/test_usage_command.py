"""`everloop usage` as people run it, after some answers of a scripted model."""

import sqlite3
from datetime import UTC, date, datetime, timedelta

import msgspec
import pytest
from tests.cli.person import Person, Ran

from everloop.cli.usage import to_text
from everloop.core.prompt import Usage
from everloop.ports.rows import SpentRow
from everloop.testing import Say, Spend
from everloop.testing.model_server import ModelServer


@pytest.fixture
def person(person: Person) -> Person:
    person.environment["TZ"] = "UTC"
    return person


async def spend(person: Person, model: ModelServer, *usages: Usage) -> None:
    model.play([(Say("hello"), Spend(usage)) for usage in usages])
    for _ in usages:
        assert (await person.run("agent", "-m", "hi")).status == 0


def move(person: Person, at: datetime) -> None:
    """As if all that was used so far had been used at that time."""
    with sqlite3.connect(person.home / "everloop.db") as database:
        database.execute("UPDATE usage SET at = ?", (at.timestamp(),))
    database.close()


def price(person: Person, pattern: str, input: float, output: float) -> None:
    person.home.mkdir(exist_ok=True)
    (person.home / "config.toml").write_text(f'[prices."{pattern}"]\ninput = {input}\noutput = {output}\n')


async def told(person: Person, *arguments: str) -> dict[str, object]:
    return msgspec.json.decode((await person.run("usage", "--json", *arguments)).out)


@pytest.mark.parametrize(
    "arguments, says",
    [
        ([], "Nothing has been used in the last 30 days.\n"),
        (["--days", "7"], "Nothing has been used in the last 7 days.\n"),
        (["--days", "1"], "Nothing has been used in the last 1 day.\n"),
    ],
)
async def test_where_nothing_was_used_it_says_so(person, arguments, says):
    assert await person.run("usage", *arguments) == Ran(0, says, "")


async def test_as_json_it_is_one_object_with_every_number(person, model):
    price(person, "custom/*", 10.0, 100.0)
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    await spend(person, model, Usage(100, 20, 60), Usage(50, 5))
    move(person, noon)
    numbers = {"calls": 2, "input": 150, "output": 25, "cache_read": 60, "cache_write": 0, "reasoning": 0}
    numbers |= {"cost": 0.004, "unpriced": 0, "own_calls": 0, "own_cost": 0.0}
    assert await told(person) == {
        "days": 30,
        "since": (noon.date() - timedelta(days=29)).isoformat(),
        "rows": [{"day": noon.date().isoformat(), "model": "custom/scripted", "purpose": "", **numbers}],
        "total": numbers,
    }


async def test_days_are_those_of_the_clock_here_and_the_oldest_is_whole(person, model):
    today = datetime.now(UTC).date()
    await spend(person, model, Usage(1, 1))
    begin = datetime(today.year, today.month, today.day, tzinfo=UTC) - timedelta(days=2)
    move(person, begin)
    assert [row["day"] for row in (await told(person, "--days", "3"))["rows"]] == [begin.date().isoformat()]
    assert (await told(person, "--days", "2"))["rows"] == []
    person.environment["TZ"] = "EST5"  # a fixed five hours behind
    assert [row["day"] for row in (await told(person, "--days", "5"))["rows"]] == [
        (begin.date() - timedelta(days=1)).isoformat()
    ]


async def test_a_model_whose_price_is_not_known_is_marked(person, model):
    await spend(person, model, Usage(100, 20, 25))
    move(person, datetime.now(UTC))
    ran = await person.run("usage")
    head, row, total, note, end = ran.out.split("\n")
    assert (ran.status, ran.err, end) == (0, "", "")
    assert head == "DAY         MODEL            CALLS  INPUT  CACHED  OUTPUT  THOUGHT  COST"
    assert row[10:] == "  custom/scripted      1    100     25%      20        0     ?"
    assert total == "total                            1    100     25%      20        0     ?"
    assert note == "? and >: the price of some models is not known, so that their calls are missing in the cost."


def test_calls_that_have_named_conversations_stand_in_a_row_of_their_own():
    rows = [SpentRow(20_514, "openai/gpt-5.4-mini", 3, Usage(9, 1), 0.5, 0, purpose) for purpose in ("", "titles")]
    assert [line.split("  ")[1] for line in to_text(rows).splitlines()[1:3]] == [
        "openai/gpt-5.4-mini",
        "openai/gpt-5.4-mini (for titles)",
    ]


def test_the_table_fits_its_numbers_and_ends_with_a_total():
    day = (date(2026, 3, 1) - date(1970, 1, 1)).days
    rows = [
        SpentRow(day, "anthropic/claude-haiku-5-5", 1200, Usage(45_678_901, 23_456, 40_000_000, 0, 999), 1.25, 0),
        SpentRow(day + 1, "openai/gpt-5.4-mini", 3, Usage(0, 12), 0.5, 1),
    ]
    assert to_text(rows) == "\n".join(
        [
            "DAY         MODEL                       CALLS   INPUT  CACHED  OUTPUT  THOUGHT      COST",
            "2026-03-01  anthropic/claude-haiku-5-5  1,200  45.68M     88%  23,456      999   $1.2500",
            "2026-03-02  openai/gpt-5.4-mini             3       0       –      12        0  >$0.5000",
            "total                                   1,203  45.68M     88%  23,468      999  >$1.7500",
            "? and >: the price of some models is not known, so that their calls are missing in the cost.",
        ]
    )


async def test_a_vault_that_is_locked_is_no_hindrance(person, model):
    await person.run("models", "key", "set", "groq", typed=b"sk-canary")
    (person.home / "vault.key").unlink()
    assert (await person.run("usage")).status == 0


@pytest.mark.parametrize("days", ["0", "-1", "many", "1.5", "36501", "9" * 400, "²"])
async def test_a_number_of_days_that_is_none(person, days):
    ran = await person.run("usage", "--days", days)
    assert (ran.status, ran.out) == (2, "")
    assert "--days must be a number of days from 1 to 36500" in ran.err or "--days needs a value" in ran.err


async def test_what_was_taken_back_stays_spent_and_usage_says_so(person, model):
    """However often, and also what was said in other words; a conversation of its own has its own."""
    price(person, "custom/*", 10.0, 100.0)
    await spend(person, model, Usage(100, 20), Usage(100, 20))
    whole = (await person.run("agent", "-m", "/usage")).out
    assert whole == "custom/scripted: 2 call(s), 200 tokens in (0 from the cache), 40 out, $0.0060\n"
    for _ in range(2):
        await person.run("agent", "-m", "/undo")
    assert (await person.run("agent", "-m", "/usage")).out == whole + (
        "Of this, 2 call(s), $0.0060, were before something was taken back or said in other words (/undo, "
        "/session edit, /session regenerate): what was spent stays spent.\n"
    )
    await person.run("agent", "-m", "/new")
    assert (await person.run("agent", "-m", "/usage")).out == "Nothing has been used in this conversation yet.\n"


async def test_it_is_added_up_by_something_else_and_drawn(person, model):
    price(person, "custom/*", 10.0, 100.0)
    await spend(person, model, Usage(100, 20), Usage(100, 20))
    assert (await person.run("usage", "--by", "channel")).out == (
        "CHANNEL  CALLS  INPUT  CACHED  OUTPUT  THOUGHT     COST\n"
        "cli          2    200      0%      40        0  $0.0060\n"
    )
    assert (await person.run("usage", "--by", "person", "--plot")).out == f"owner  {'█' * 30} $0.0060\n"
    drawn = (await person.run("usage", "--plot")).out
    assert drawn.endswith(f"  {'█' * 30} $0.0060\n")
    told = msgspec.json.decode((await person.run("usage", "--by", "job", "--json", "--who", "owner")).out)
    assert [(row["name"], row["calls"]) for row in told["rows"]] == [("turns", 2)]
    nobody = await person.run("usage", "--who", "nobody")
    assert (nobody.status, nobody.out) == (1, "")
    assert (await person.run("usage", "--by", "tool")).out == "Nothing has been used in the last 30 days.\n"
