"""Makes src/everloop/providers/data/prices.json, what models cost and how much they can read, from genai-prices.

    python -m venv prices-venv
    prices-venv/bin/pip install genai-prices
    prices-venv/bin/python scripts/make_prices.py

Of prices that change on a date, the file has those of one day: today, or the one given with `--date 2026-11-15`. The
same version of genai-prices and the same day give the same bytes; both are written into the file.

A table has a provider's rows, in the order in which they are tried, each as short as it can be:

    [rule, window, input, output, cache read, cache write, tiers]

A rule lists ways to fit a model, and a way is one test or a list of tests that must all hold. The first character of
a test says how the rest is compared with the model's name in small letters: `=` equals it, `^` begins it, `$` ends
it, `*` is in it, `~` is a regular expression that is found in it. Prices are in dollars for a million tokens. A tier
is [above so many input tokens, input, output, cache read, cache write].
"""

import argparse
import datetime
import itertools
import json
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent.parent / "src" / "everloop" / "providers" / "data" / "prices.json"

# Our name of a provider, and theirs.
TABLES = {
    "anthropic": "anthropic",
    "azure": "azure",
    "bedrock": "aws",
    "cerebras": "cerebras",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "fireworks": "fireworks",
    "gemini": "google",
    "groq": "groq",
    "minimax": "minimax",
    "mistral": "mistral",
    "moonshot": "moonshotai",
    "novita": "novita",
    "openai": "openai",
    "openrouter": "openrouter",
    "perplexity": "perplexity",
    "together": "together",
    "xai": "x-ai",
    "zai": "zai",  # the dollar prices of the same house as zhipu
    "zhipu": "zhipuai",
}
# Hugging Face sends a request on to one of these, which a model's name may choose with a suffix, as in `:groq`.
ROUTED = "huggingface"
# What genai-prices knows of these two it knows as Hugging Face's prices, so that only the windows are surely theirs.
ALSO_ROUTED = ("hyperbolic", "sambanova")

MARKS = {"equals": "=", "starts_with": "^", "ends_with": "$", "contains": "*", "regex": "~"}
RATES = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")

Row = list[Any]


def tables_from(providers: Iterable[Any], day: datetime.date) -> dict[str, list[Row]]:
    """All our tables, from the providers of genai-prices."""
    theirs = {provider.id: [row_from(model, day) for model in provider.models] for provider in providers}
    routed = {id.removeprefix(f"{ROUTED}_"): rows for id, rows in theirs.items() if id.startswith(f"{ROUTED}_")}
    tables = {ours: theirs[id] for ours, id in TABLES.items() if id in theirs}
    tables |= {f"{ROUTED}:{host}": rows for host, rows in routed.items()}
    tables |= {host: smallest_windows(routed[host]) for host in ALSO_ROUTED if host in routed}
    if routed:
        tables[ROUTED] = smallest_windows(itertools.chain.from_iterable(routed.values()))
    return dict(sorted(tables.items()))


def row_from(model: Any, day: datetime.date) -> Row:
    row = [rule_from(model.match), model.context_window, *rates_from(model, day)]
    while row[-1] is None:
        row.pop()
    return row


def rule_from(clause: Any) -> list[str | list[str]]:
    ways = [way[0] if len(way) == 1 else way for way in ways_to_fit(clause)]
    return [way for place, way in enumerate(ways) if way not in ways[:place]]


def ways_to_fit(clause: Any) -> list[list[str]]:
    """Any tree of `or` and `and`, as a list of ways of which each is a list of tests."""
    [(kind, value)] = vars(clause).items()
    if kind == "or_":
        return [way for part in value for way in ways_to_fit(part)]
    if kind == "and_":
        return [list(itertools.chain(*ways)) for ways in itertools.product(*map(ways_to_fit, value))]
    return [[MARKS[kind] + (value if kind == "regex" else value.lower())]]


def rates_from(model: Any, day: datetime.date) -> Row:
    """The four prices and the tiers. A model that is not paid for by tokens has none; what is left out is free."""
    prices = vars(price_on(day, model.prices))
    if not prices and model.id.endswith(":free"):
        return [0, 0]
    if prices.get("input_mtok") is None:
        return []
    rates = [prices.get(name) for name in RATES]
    if rates[1] is None:
        rates[1] = 0
    starts = sorted({tier.start for rate in rates for tier in getattr(rate, "tiers", ())})
    tiers = [[start, *(rate_above(start, rate) for rate in rates)] for start in starts]
    return [*(rate_above(-1, rate) for rate in rates), tiers or None]


def rate_above(start: int, rate: Any) -> float | None:
    """What a rate is once more than `start` tokens are read; before all tiers it is the base."""
    if rate is None or not hasattr(rate, "tiers"):
        return number(rate)
    reached = [tier for tier in rate.tiers if tier.start <= start]
    return number(max(reached, key=lambda tier: tier.start).price if reached else rate.base)


def number(value: Any) -> float | None:
    if value is None:
        return None
    return int(value) if value == int(value) else float(value)


def price_on(day: datetime.date, prices: Any) -> Any:
    """The price of that day. Where it depends on the hour it is the dearest: a cost is better told too high."""
    if not isinstance(prices, list):
        return prices
    valid = list(valid_on(day, prices)) or [prices[0].prices]
    return max(valid, key=lambda price: rate_above(-1, getattr(price, "input_mtok", None)) or 0)


def valid_on(day: datetime.date, prices: list[Any]) -> Iterator[Any]:
    """A later price goes before an earlier one; one that is bound to an hour leaves the other hours to those before."""
    for price in reversed(prices):
        if hasattr(price.constraint, "start_time"):
            yield price.prices
        elif price.constraint is None or price.constraint.start_date <= day:
            yield price.prices
            return


def smallest_windows(rows: Iterable[Row]) -> list[Row]:
    """Rows without prices, which promise no more of a model than every host can keep."""
    windows: dict[str, int] = {}
    for rule, *facts in rows:
        if facts and facts[0]:
            windows |= {test: min(facts[0], windows.get(test, facts[0])) for test in rule}
    return [[[test], window] for test, window in sorted(windows.items())]


def render(tables: dict[str, list[Row]], version: str, day: datetime.date, license: str) -> str:
    """One row in a line, so that a new version shows as the few lines that it changes."""
    head = {"source": f"genai-prices {version}", "date": day.isoformat(), "license": license}
    lines = [f"{compact(name)}:{compact(value)}" for name, value in head.items()]
    shown = [f"{compact(name)}:[\n" + ",\n".join(map(compact, rows)) + "\n]" for name, rows in tables.items()]
    return "{" + ",\n".join(lines) + ',\n"tables":{\n' + ",\n".join(shown) + "\n}}\n"


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def main() -> None:
    from genai_prices import data  # here, so that what needs no genai-prices can be tested without it

    parser = argparse.ArgumentParser()
    parser.add_argument("--date", type=datetime.date.fromisoformat, default=datetime.datetime.now(datetime.UTC).date())
    day = parser.parse_args().date
    source = metadata.distribution("genai-prices")
    license = source.read_text("licenses/LICENSE") or ""
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(render(tables_from(data.providers, day), source.version, day, license), "utf-8", newline="\n")


if __name__ == "__main__":
    main()
