import datetime
import json
import runpy
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace as Thing

import msgspec
import pytest

from everloop.core.prompt import Usage
from everloop.providers import prices
from everloop.providers.prices import Price, Prices, Tier, find_price, find_window

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "make_prices.py"))
DAY = datetime.date(2026, 11, 15)

MINI = Price(0.25, 2.0, 0.025)
PRO = Price(1.25, 10.0, 0.125, None, (Tier(200_000, 2.5, 15.0, 0.25),))
SONNET = Price(3.0, 15.0, 0.3, 3.75, (Tier(200_000, 6.0, 22.5, 0.6, 7.5),))


@pytest.mark.parametrize(
    "provider, model, window, price",
    [
        ("openai", "gpt-5-mini", 400_000, MINI),
        ("anthropic", "claude-sonnet-4-5", 200_000, SONNET),
        ("minimax", "MiniMax-M2", 204_800, Price(0.3, 1.2, 0.03, 0.375)),
        ("xai", "grok-4-fast", 2_000_000, Price(0.2, 0.5, 0.05)),
        ("gemini", "gemini-2.5-pro", 1_048_576, PRO),
        ("groq", "openai/gpt-oss-120b", 131_072, Price(0.15, 0.6, 0.075)),
        ("openrouter", "deepseek/deepseek-r1:free", 64_000, Price(0.0, 0.0)),
    ],
)
def test_a_model_has_the_window_and_the_price_of_the_file(provider, model, window, price):
    assert (find_window(provider, model), find_price(provider, model)) == (window, price)


@pytest.mark.parametrize(
    "provider, model, price",
    [
        ("openai", "gpt-5-mini-2025-08-07", MINI),
        ("openai", "gpt-5-mini-20250807", MINI),
        ("openai", "gpt-5-mini-2031-01-02", MINI),
        ("anthropic", "claude-sonnet-4-5-20250929", SONNET),
        ("azure", "gpt-5-mini-2025-08-07", MINI),
        ("azure", "gpt-4o-2024-05-13", Price(5.0, 15.0)),  # dearer than those of later dates
    ],
)
def test_a_dated_name_is_that_models(provider, model, price):
    assert find_price(provider, model) == price


@pytest.mark.parametrize(
    "provider, model, window, price",
    [
        ("openrouter", "anthropic/claude-sonnet-4.5", 1_000_000, SONNET),  # a row of its own
        ("openrouter", "anthropic/claude-sonnet-4-5", 200_000, SONNET),  # the maker's
        ("openrouter", "anthropic/claude-sonnet-4.5:nitro", 200_000, None),
        ("openrouter", "somebody/claude-sonnet-4-5", None, None),
        ("azure", "gpt-5-mini", 400_000, MINI),
        ("azure", "our-own-name", None, None),
        ("aihubmix", "gpt-5-mini", 400_000, None),
        ("github", "openai/gpt-5-mini", 400_000, None),
        ("github", "xai/grok-3", 131_072, None),
        ("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, Price(3.3, 16.5, 0.33, 4.125)),
        ("bedrock", "global.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, Price(3.0, 15.0, 0.3, 3.75)),
        ("bedrock", "ca.anthropic.claude-opus-4-7-v1:0", 1_000_000, None),
        ("bedrock", "openai.gpt-5.4", 1_050_000, Price(2.75, 16.5, 0.275)),
        ("huggingface", "openai/gpt-oss-120b", 131_072, None),
        ("huggingface", "openai/gpt-oss-120b:groq", 131_072, Price(0.15, 0.75)),
        ("siliconflow", "Pro/deepseek-ai/DeepSeek-V3.2", 128_000, None),
        ("siliconflow", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", None, None),
        ("dashscope", "qwen3-max", 262_144, None),
        ("zhipu", "glm-4.6", 202_752, None),
        ("gemini", "models/gemini-2.5-pro", 1_048_576, PRO),
    ],
)
def test_a_gateway_tells_the_makers_window_and_passes_on_a_price_only_where_it_asks_the_same(
    provider, model, window, price
):
    assert (find_window(provider, model), find_price(provider, model)) == (window, price)


@pytest.mark.parametrize(
    "provider, model",
    [
        ("openai", "no-such-model"),
        ("openai", ""),
        ("nobody", "gpt-5-mini"),
        ("ollama", "gpt-oss:20b"),
        ("groq", "claude-sonnet-4-5"),
        ("openrouter", "openrouter/auto"),
    ],
)
def test_what_is_not_known_is_none(provider, model):
    assert (find_window(provider, model), find_price(provider, model)) == (None, None)


def test_a_call_costs_what_was_read_and_what_was_written():
    assert Price(2.0, 10.0).cost(Usage(input=1_000, output=500, reasoning=400)) == (1_000 * 2 + 500 * 10) / 1e6
    assert Price(2.0, 10.0).cost(Usage()) == 0.0


def test_cached_tokens_have_their_own_prices():
    usage = Usage(input=100_000, output=1_000, cache_read=80_000, cache_write=15_000)
    # 5,000 at 3, 80,000 at 0.3, 15,000 at 3.75 and 1,000 at 15 dollars for a million
    assert SONNET.cost(usage) == pytest.approx(0.015 + 0.024 + 0.05625 + 0.015)


def test_without_a_price_for_the_cache_it_costs_as_any_input():
    usage = Usage(input=100_000, cache_read=80_000, cache_write=15_000)
    assert Price(4.0, 8.0).cost(usage) == pytest.approx(0.4)
    assert Price(4.0, 8.0, cache_read=0.0).cost(usage) == pytest.approx(0.08)


def test_above_a_tier_the_whole_call_costs_more():
    assert SONNET.cost(Usage(200_000, 1_000)) == pytest.approx(0.6 + 0.015)
    assert SONNET.cost(Usage(200_001, 1_000)) == pytest.approx(1.200006 + 0.0225)
    assert SONNET.cost(Usage(300_000, 0, cache_read=100_000)) == pytest.approx(1.2 + 0.06)


def test_of_several_tiers_the_highest_that_is_reached_counts():
    price = Price(1.0, 0.0, tiers=(Tier(256, 4.0, 0.0), Tier(32, 2.0, 0.0)))
    assert [price.cost(Usage(count)) * 1e6 for count in (32, 100, 1_000)] == pytest.approx([32, 200, 4_000])


def test_a_cache_that_is_larger_than_the_input_earns_nothing():
    assert Price(1.0, 1.0, 0.5).cost(Usage(input=10, cache_read=100)) == pytest.approx(50 / 1e6)


def test_the_users_price_goes_first():
    free, cheap, own = Price(0.0, 0.0), Price(1.0, 1.0), Price(2.0, 2.0)
    known = Prices({"openai/GPT-5-*": free, "*/our-model": own, "claude-*": cheap})
    asked = {
        ("openai", "gpt-5-mini"): free,
        ("openrouter", "openai/gpt-5-mini"): MINI,
        ("azure", "gpt-5-mini"): MINI,
        ("vllm", "our-model"): own,
        ("anthropic", "Claude-sonnet-4-5"): cheap,
        ("openrouter", "anthropic/claude-sonnet-4.5"): cheap,
        ("vllm", "another"): None,
    }
    assert {names: known.of(*names) for names in asked} == asked


def test_the_first_override_that_fits_counts():
    first, second = Price(1.0, 1.0), Price(2.0, 2.0)
    assert Prices({"gpt-5": first, "gpt-*": second}).of("openai", "gpt-5") == first
    assert Prices({"gpt-*": second, "gpt-5": first}).of("openai", "gpt-5") == second


def test_a_price_is_looked_up_once():
    known = Prices()
    assert known.of("anthropic", "claude-sonnet-4-5") is known.of("anthropic", "claude-sonnet-4-5")
    assert known.of("anthropic", "claude-sonnet-4-5") is not find_price("anthropic", "claude-sonnet-4-5")


def test_importing_does_not_read_the_file():
    code = """
import sys
opened = []
sys.addaudithook(lambda event, args: event == "open" and opened.append(str(args[0])))
from everloop.providers.prices import find_price
before = sum(name.endswith("prices.json") for name in opened)
find_price("openai", "gpt-5")
find_price("openrouter", "openai/gpt-5")
print(before, sum(name.endswith("prices.json") for name in opened))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["0", "1"]


def test_every_row_of_the_file_can_be_read():
    file = json.loads((ROOT / "src/everloop/providers/data/prices.json").read_bytes())
    written = {table: len(rows) for table, rows in file["tables"].items()}
    assert {table: len(prices._rows(table)) for table in written} == written
    assert file["source"].startswith("genai-prices ")
    assert file["license"].startswith("The MIT License")
    assert datetime.date.fromisoformat(file["date"]) >= DAY


def model(id: str, match: Thing, window: int | None = None, prices: Thing | list[Thing] | None = None) -> Thing:
    return Thing(id=id, match=match, context_window=window, prices=prices or Thing())


def dollars(**rates) -> Thing:
    return Thing(**{f"{name}_mtok": Decimal(rate) if isinstance(rate, str) else rate for name, rate in rates.items()})


def tiered(base: str, *tiers: tuple[int, str]) -> Thing:
    return Thing(base=Decimal(base), tiers=[Thing(start=start, price=Decimal(price)) for start, price in tiers])


def when(prices: Thing, **constraint) -> Thing:
    return Thing(prices=prices, constraint=Thing(**constraint) if constraint else None)


def row_of(match: Thing, window: int | None = None, prices: Thing | list[Thing] | None = None, id: str = "m"):
    return SCRIPT["row_from"](model(id, match, window, prices), DAY)


def test_a_tree_of_clauses_becomes_a_list_of_ways():
    tree = Thing(
        or_=[
            Thing(equals="GPT-5"),
            Thing(equals="gpt-5"),
            Thing(and_=[Thing(starts_with="Gpt-"), Thing(or_=[Thing(ends_with="-X"), Thing(regex=r"\D$")])]),
            Thing(contains="Five"),
        ]
    )
    assert row_of(tree) == [["=gpt-5", ["^gpt-", "$-x"], ["^gpt-", r"~\D$"], "*five"]]


def test_a_row_is_as_short_as_it_can_be():
    name = Thing(equals="m")
    assert row_of(name, 8192) == [["=m"], 8192]
    assert row_of(name, None, dollars(input="3", output="0.60")) == [["=m"], None, 3, 0.6]
    assert row_of(name, 8, dollars(input="1", output="2", cache_write="3")) == [["=m"], 8, 1, 2, None, 3]


def test_what_is_not_paid_by_tokens_has_no_price():
    assert row_of(Thing(equals="m"), 8, Thing(audio_hours=Decimal(1))) == [["=m"], 8]
    assert row_of(Thing(equals="m"), 8, dollars(input="0.1")) == [["=m"], 8, 0.1, 0]
    assert row_of(Thing(equals="m:free"), id="m:free") == [["=m:free"], None, 0, 0]


def test_tiers_have_all_prices():
    rates = dollars(
        input=tiered("1", (200, "2"), (400, "4")), output=tiered("5", (200, "7.5")), cache_read="0.1", cache_write=None
    )
    tiers = [[200, 2, 7.5, 0.1, None], [400, 4, 7.5, 0.1, None]]
    assert row_of(Thing(equals="m"), 800, rates) == [["=m"], 800, 1, 5, 0.1, None, tiers]


def test_of_prices_that_change_the_file_has_those_of_its_day():
    first, now, later = (dollars(input=rate, output=rate) for rate in ("1", "2", "3"))
    prices = [
        when(first),
        when(now, start_date=datetime.date(2026, 11, 15)),
        when(later, start_date=datetime.date(2026, 11, 16)),
    ]
    assert row_of(Thing(equals="m"), None, prices) == [["=m"], None, 2, 2]
    assert row_of(Thing(equals="m"), None, [prices[0], prices[2]]) == [["=m"], None, 1, 1]


def test_of_prices_that_depend_on_the_hour_the_file_has_the_dearest():
    old, day, night = (dollars(input=rate, output=rate) for rate in ("9", "2", "1"))
    since = {"start_date": datetime.date(2026, 1, 1)}
    hours = {"start_time": datetime.time(0, 30), "end_time": datetime.time(16, 30)}
    assert row_of(Thing(equals="m"), None, [when(night), when(day, **hours)]) == [["=m"], None, 2, 2]
    assert row_of(Thing(equals="m"), None, [when(day), when(night, **hours)]) == [["=m"], None, 2, 2]
    assert row_of(Thing(equals="m"), None, [when(old), when(day, **since), when(night, **hours)])[2] == 2


def test_tables_have_our_names():
    one = dollars(input="1", output="2")
    providers = [
        Thing(id="x-ai", models=[model("grok", Thing(equals="grok"), 100, one)]),
        Thing(id="huggingface_groq", models=[model("m", Thing(equals="a/M"), 100, one)]),
        Thing(id="huggingface_sambanova", models=[model("m", Thing(equals="a/M"), 50, one)]),
        Thing(id="cursor", models=[model("m", Thing(equals="m"))]),
    ]
    assert SCRIPT["tables_from"](providers, DAY) == {
        "huggingface": [[["=a/m"], 50]],
        "huggingface:groq": [[["=a/m"], 100, 1, 2]],
        "huggingface:sambanova": [[["=a/m"], 50, 1, 2]],
        "sambanova": [[["=a/m"], 50]],
        "xai": [[["=grok"], 100, 1, 2]],
    }


def test_the_file_has_a_row_in_a_line():
    tables = {"a": [[["=m"], 8], [["^n"], None, 0.5, 1]], "b": [[["*é"], 1]]}
    text = SCRIPT["render"](tables, "1.2", DAY, "MIT\n")
    assert text.splitlines() == [
        '{"source":"genai-prices 1.2",',
        '"date":"2026-11-15",',
        '"license":"MIT\\n",',
        '"tables":{',
        '"a":[',
        '[["=m"],8],',
        '[["^n"],null,0.5,1]',
        "],",
        '"b":[',
        '[["*é"],1]',
        "]",
        "}}",
    ]
    assert msgspec.json.decode(text)["tables"] == tables
