"""What models cost and how much they can read. Unknown is None: nothing here is guessed.

The facts are in data/prices.json, a table of rows for each provider, made by scripts/make_prices.py and read when they
are first asked for. A price is of tokens only: what a host takes for a search or a call comes on top.

A gateway often offers a model that its table lacks. Its maker's row then tells the window, because the model is the
same. It tells the price only where the gateway asks what the maker asks, as OpenRouter does for models that nobody
else may run, and Azure for those it sells; the others add to it or have price lists of their own.
"""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from ..core.prompt import Usage

_FILE = Path(__file__).with_name("data") / "prices.json"


class Tier(Struct, frozen=True):
    """The prices of a whole call that reads more than `above` tokens."""

    above: int
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class Price(Struct, frozen=True):
    """US dollars for a million tokens. What is read from or written to a cache costs as any input where it is None."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    tiers: tuple[Tier, ...] = ()

    def cost(self, usage: Usage) -> float:
        """The dollars of one call. Add up costs, not usages: a tier looks at each call by itself."""
        rates = self._rates(usage.input) if self.tiers else self
        read = rates.input if rates.cache_read is None else rates.cache_read
        write = rates.input if rates.cache_write is None else rates.cache_write
        # A host that miscounts its cache must not make a call earn money.
        fresh = max(0, usage.input - usage.cache_read - usage.cache_write)
        dollars = fresh * rates.input + usage.cache_read * read + usage.cache_write * write
        return (dollars + usage.output * rates.output) / 1_000_000

    def _rates(self, input: int) -> "Price | Tier":
        reached = [tier for tier in self.tiers if input > tier.above]
        return max(reached, key=lambda tier: tier.above) if reached else self


class Prices:
    """Prices as the user sees them: his own first, then those of the file.

    A key of `overrides` with a slash is a pattern for "provider/model"; one without is a pattern for the model's own
    name, without what stands before its last slash. The first that fits counts.
    """

    __slots__ = ("_known", "_overrides")

    def __init__(self, overrides: Mapping[str, Price] | None = None) -> None:
        self._overrides = {pattern.lower(): price for pattern, price in (overrides or {}).items()}
        self._known: dict[tuple[str, str], Price | None] = {}

    def of(self, provider: str, model: str) -> Price | None:
        asked = (provider, model)
        if asked not in self._known:
            self._known[asked] = self.override(provider, model) or find_price(provider, model)
        return self._known[asked]

    def override(self, provider: str, model: str) -> Price | None:
        """What the user says."""
        whole = f"{provider}/{model}".lower()
        own = whole.rpartition("/")[2]
        fitting = (
            price
            for pattern, price in self._overrides.items()
            if fnmatchcase(whole if "/" in pattern else own, pattern)
        )
        return next(fitting, None)


def find_price(provider: str, model: str) -> Price | None:
    """What the provider asks for the model, if that is known. A name that leaves the choice of a model to the
    provider has no price; the answer tells which model it was."""
    for name in _spellings(model):
        places = (_own_place(provider, name), *_places_that_set_the_price(provider, name))
        for row in _rows_at(places):
            return row.price()
    return None


@lru_cache(maxsize=256)
def find_window(provider: str, model: str) -> int | None:
    """How many tokens the model can read there, if that is known."""
    for name in _spellings(model):
        places = (_own_place(provider, name), *_places_that_tell_the_window(provider, name))
        for row in _rows_at(places):
            if row.window:
                return row.window
    return None


class _PriceRow(Struct, frozen=True, array_like=True):
    """A line of the file. scripts/make_prices.py describes it."""

    rule: tuple[str | tuple[str, ...], ...]
    window: int | None = None
    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    tiers: tuple[tuple[int, float, float, float | None, float | None], ...] = ()

    def fits(self, name: str) -> bool:
        return any(
            _holds(way, name) if isinstance(way, str) else all(_holds(test, name) for test in way) for way in self.rule
        )

    def price(self) -> Price | None:
        if self.input is None or self.output is None:
            return None
        tiers = tuple(Tier(*tier) for tier in self.tiers)
        return Price(self.input, self.output, self.cache_read, self.cache_write, tiers)


def _holds(test: str, name: str) -> bool:
    mark, word = test[0], test[1:]
    match mark:
        case "=":
            return name == word
        case "^":
            return name.startswith(word)
        case "$":
            return name.endswith(word)
        case "*":
            return word in name
    return re.search(word, name) is not None


class _File(Struct, frozen=True):
    tables: dict[str, Raw]


@cache
def _tables() -> dict[str, Raw]:
    return msgspec.json.decode(_FILE.read_bytes(), type=_File).tables


@cache
def _rows(table: str) -> tuple[_PriceRow, ...]:
    return msgspec.json.decode(_tables()[table], type=tuple[_PriceRow, ...])


class _Place(Struct, frozen=True):
    """A table, and what the model is called there."""

    table: str
    name: str


def _rows_at(places: tuple[_Place, ...]) -> Iterator[_PriceRow]:
    """The first row that fits at each place, as far as there is one."""
    for place in places:
        if place.table in _tables():
            yield from [row for row in _rows(place.table) if row.fits(place.name)][:1]


_DATE = re.compile(r"-(20\d\d)-?([01]\d)-?([0-3]\d)(?![^-:])")


def _spellings(model: str) -> list[str]:
    """A model's name as given, with its date in the other form, and without its date; rows know one or another."""
    name = model.lower().removeprefix("models/")
    return list(dict.fromkeys((name, _DATE.sub(r"-\1-\2-\3", name), _DATE.sub("", name))))


def _own_place(provider: str, name: str) -> _Place:
    """The provider's table, or that of the host to which a suffix sends the request, as in "model:groq"."""
    bare, _, host = name.partition(":")
    routed = f"{provider}:{host}"
    return _Place(routed, bare) if routed in _tables() else _Place(provider, name)


class _Maker(Struct, frozen=True):
    """Who makes models: `names` begin theirs, `spaces` stand before them at gateways, the first at OpenRouter."""

    spaces: tuple[str, ...]
    names: tuple[str, ...]
    tables: tuple[str, ...] = ()


_MAKERS = (
    _Maker(("anthropic",), ("claude",), ("anthropic",)),
    _Maker(("openai",), ("gpt-", "chatgpt-", "codex-", "o1", "o3", "o4"), ("openai",)),
    _Maker(("google",), ("gemini", "gemma"), ("gemini",)),
    _Maker(("x-ai", "xai"), ("grok",), ("xai",)),
    _Maker(("deepseek", "deepseek-ai"), ("deepseek",), ("deepseek",)),
    _Maker(("moonshotai", "moonshot"), ("kimi", "moonshot"), ("moonshot",)),
    _Maker(("z-ai", "zai", "zai-org", "zhipuai", "thudm"), ("glm",), ("zhipu", "zai")),
    _Maker(("minimax", "minimaxai"), ("minimax",), ("minimax",)),
    _Maker(
        ("mistralai", "mistral-ai", "mistral"),
        ("mistral", "ministral", "magistral", "codestral", "devstral", "mixtral", "pixtral", "open-mi"),
        ("mistral",),
    ),
    _Maker(("cohere", "coherelabs"), ("command",), ("cohere",)),
    _Maker(("qwen", "alibaba"), ("qwen", "qwq", "qvq")),
    _Maker(("meta-llama", "meta"), ("llama",)),
    _Maker(("nvidia",), ("nemotron",)),
    _Maker(("stepfun", "stepfun-ai"), ("step-",)),
    _Maker(("baidu",), ("ernie",)),
)

_PRICES_PASSED_ON: dict[str, tuple[str, ...]] = {
    "openrouter": ("anthropic", "openai", "gemini", "xai"),
    "azure": ("openai", "anthropic", "deepseek", "xai", "moonshot"),
}
# Groq, Cerebras and SambaNova are not here: they serve models with smaller windows. Nor are hosts on one's own machine,
# where whoever starts the server says how large the window is.
_WHOLE_WINDOWS = {
    *("aihubmix", "azure", "bedrock", "dashscope", "deepinfra", "fireworks", "github", "huggingface", "novita"),
    *("nvidia", "openrouter", "qianfan", "siliconflow", "stepfun", "together", "volcengine"),
    *(table for maker in _MAKERS for table in maker.tables),
}


def _places_that_set_the_price(provider: str, name: str) -> tuple[_Place, ...]:
    # A suffix such as ":nitro" or ":batch" has a price of its own.
    maker, own = (None, "") if ":" in name else _maker_of(name)
    return tuple(_Place(table, own) for table in _PRICES_PASSED_ON.get(provider, ()) if maker and table in maker.tables)


def _places_that_tell_the_window(provider: str, name: str) -> tuple[_Place, ...]:
    maker, own = _maker_of(name)
    if maker is None or provider not in _WHOLE_WINDOWS:
        return ()
    listed = _Place("openrouter", f"{maker.spaces[0]}/{own}")
    if "distill" in own:  # it has its teacher's name, but it is another model
        return (listed,)
    # What Hugging Face's table promises is no more than each of its hosts can keep, so it is asked last.
    hosted = (_Place("huggingface", f"{space}/{own}") for space in maker.spaces)
    return (*(_Place(table, own) for table in maker.tables), listed, *hosted)


def _maker_of(name: str) -> tuple[_Maker | None, str]:
    """Whose model it is, and how its maker calls it."""
    space, own = _split(name)
    by_space = (maker for maker in _MAKERS if space in maker.spaces)
    by_name = (maker for maker in _MAKERS if space in ("", "models") and own.startswith(maker.names))
    return next(by_space, None) or next(by_name, None), own


_SPACES = "|".join(space for maker in _MAKERS for space in maker.spaces)
_BEDROCK = re.compile(rf"(?:[a-z-]+\.)?({_SPACES})\.(.+?)(?:-v\d+)?")


def _split(name: str) -> tuple[str, str]:
    """What stands before a model's own name and says whose it is, and that name without the gateway's suffix."""
    path, _, last = name.rpartition("/")
    own = last.partition(":")[0]
    bedrock = _BEDROCK.fullmatch(own)
    return (bedrock[1], bedrock[2]) if bedrock else (path.rpartition("/")[2], own)
