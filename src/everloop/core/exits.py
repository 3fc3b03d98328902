"""What may leave a conversation that has read strangers' words, and for what a person is asked.

Whoever obeys a stranger's page can carry out what they know in an address that they fetch or in words that they search
for (exfiltration). What a person gave is free. What only a stranger gave says no more than which of it was chosen, so a
few of these are free in each turn. What nobody gave may say anything, and is asked about.
"""

from typing import Literal

from msgspec import Struct

from .given import Given, plain, site_of, words_in

PER_SITE, FETCHES, SEARCHES = 3, 12, 3  # in one turn, of what only strangers gave
_WORDS = 24  # of a query that nobody said so; people and models search for few
_FILLERS = 4  # words of no weight that nobody said, in one query
_STRANGE = 8  # words that only strangers gave, in one query
_NUMBERS = 2  # numbers among these

# Words that say nothing of what they are searched with: of a sentence, and of searching.
_LIGHT = (
    "a about after all an and any are as at be been before best between book buy by can cheap cheapest cheaper compare "
    "compared comparison cost could current de der des did die difference do docs documentation does during en error "
    "est et example examples explained faq fix for free from get good guide had has have help how if in information "
    "into is it its la las latest le les list los mean meaning mit more most much my near new news not of official on "
    "online open or out over per price prices pricing que recent recommended release review reviews should site so "
    "size solution specs than that the their there these this to today top tutorial und under update updates use using "
    "used für versus vs was what when where which while who why will with without work works would year you your "
    "com org net www http https filetype intitle inurl 的 是 什么 怎么 如何 最新 价格"
)
_COUNTED = "zero two three four five six seven eight nine ten null eins zwei drei vier acht neun"
_FILLER = frozenset(_LIGHT.split())
_COUNTING = frozenset(_COUNTED.split())

Giver = Literal["person", "stranger", ""]


class Exits(Struct, frozen=True, gc=False, omit_defaults=True):
    """What has left in this turn, unasked, of what only strangers gave: pages by their sites, and searches."""

    sites: dict[str, int] = {}
    searches: int = 0

    @property
    def fetches(self) -> int:
        return sum(self.sites.values())

    def after(self, way: "Way", sources: "Sources") -> "Exits":
        """With this one, if it is one that only strangers gave."""
        if way.url and sources.giver_of(way.url) == "stranger":
            site = site_of(way.url)
            return Exits({**self.sites, site: self.sites.get(site, 0) + 1}, self.searches)
        if way.query and sources.weigh(way.query).strange:
            return Exits(self.sites, self.searches + 1)
        return self


class Way(Struct, frozen=True, gc=False):
    """How a call leads out: by an address, or by words."""

    url: str = ""
    query: str = ""


class Weighed(Struct, frozen=True, gc=False):
    """A query: the words that nobody said who may be quoted, and those that only strangers said. `odd` says why the
    query as a whole is one to ask about."""

    unsaid: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
    odd: str = ""


class Sources:
    """Who has said what in a conversation. `public` is what anyone can read, such as pages; of other strangers' texts,
    which may be somebody's own papers, only the addresses count as given."""

    __slots__ = ("_weighed", "people", "public", "strangers")

    def __init__(self) -> None:
        self.people, self.strangers, self.public = Given(loosely=True), Given(), Given()
        self._weighed: dict[str, Weighed] = {}

    def add(self, text: str, *, strange: bool = False, public: bool = False) -> None:
        self._weighed = {}
        (self.public if public else self.strangers if strange else self.people).add(text)

    def giver_of(self, url: str) -> Giver:
        if self.people.has_address(url):
            return "person"
        return "stranger" if self.strangers.has_address(url) or self.public.has_address(url) else ""

    def weigh(self, query: str) -> Weighed:
        if query not in self._weighed:
            self._weighed[query] = self._weigh(query)
        return self._weighed[query]

    def _weigh(self, query: str) -> Weighed:
        words = words_in(query)
        unknown = list(dict.fromkeys(word for word in words if not self.people.has_word(word)))
        fillers = [word for word in unknown if word in _FILLER or _is_year(word)]
        rest = [word for word in unknown if word not in fillers]
        strange = tuple(word for word in rest if not _spells(word) and self.public.has_word(word))
        unsaid = tuple(word for word in rest if word not in strange)
        odd = ""
        if len(words) > _WORDS and not self.people.has_text(query):
            odd = f"it has more than {_WORDS} words"
        elif len(fillers) > _FILLERS:
            odd = f"it has words that nobody said: {', '.join(fillers)}"
        elif len(strange) > _STRANGE or sum(map(str.isdigit, strange)) > _NUMBERS:
            odd = f"it has many words that only strangers gave: {', '.join(strange)}"
        elif not words and plain(query):
            odd = "it has no words"
        return Weighed(unsaid, strange, odd)


def _is_year(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) == 4 and "1990" <= word <= "2049"


def _spells(word: str) -> bool:
    """Whether it is of the kind by which any text can be spelled, letter by letter or digit by digit."""
    return len(word) == 1 or word in _COUNTING
