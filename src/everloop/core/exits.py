"""What may leave a conversation that has read strangers' words, and for what a person is asked.

Whoever obeys a stranger's page can carry out what they know in an address that they fetch or in words that they search
for (exfiltration). What a person gave is free. What only a stranger gave says no more than which of it was chosen, so a
few of these are free in each turn. What nobody gave may say anything, and is asked about.
"""

from typing import Literal

from msgspec import Struct

from .given import Given, plain, site_of, words_in

PER_SITE, FETCHES, SEARCHES = 3, 12, 3  # in one turn, of what only strangers gave
LIGHT = 9  # searches in one turn with words of no weight that nobody said
_WORDS = 24  # of a query that nobody said so; people and models search for few
_FILLERS = 4  # words of no weight that nobody said, in one query
_STRANGE = 8  # words that only strangers gave, in one query
_NUMBERS = 2  # numbers among these

# Words of no weight: those of any sentence, and those by which people narrow a search.
_OF_SENTENCES = (
    "a about after all an and any are as at be been before between by can could de der des did die do does during "
    "en est et for from für had has have how if in into is it its la las le les los many may mit more most much "
    "my near not of on or other out over per que should so some than that the their them there these this to und "
    "under use used using very was what when where which while who why will with without would you your "
    "的 是 什么 怎么 如何"
)
_OF_SEARCHES = (
    "advantages age alternative alternatives amazon api area author available average beginner best book bug buy "
    "center centre change changelog changes cheap cheaper cheapest com compare compared comparison compatibility "
    "compatible configuration configure cons cost crash current date deal deals definition delivery difference "
    "directions disadvantages discount distance docs documentation download duration easiest easy error example "
    "examples explained failed faq filetype fix flight forecast forum free get github good guide height help "
    "history hotel hours http https information ingredients install installation intitle introduction inurl issue "
    "latest length license list lyrics manual map maximum mean meaning method minimum model name net new news "
    "nearby number official old online open opening order org origin overview part pdf photo pictures places plan "
    "population price prices pricing problem pros rate rating recent recipe recommended reddit reference release "
    "rent report requirements restaurant results review reviews route sale schedule score setup shipping shop "
    "simple site size solution source specs standard start statistics steps stock store street summary support "
    "symptoms table temperature template test things time timetable tips today tomorrow top total town train "
    "translation travel treatment tutorial typical update updates upgrade usual value version versus video vs "
    "warning weather website week weekend weight wikipedia wiki work works www year youtube monday tuesday "
    "wednesday thursday friday saturday sunday january february march april june july august september october "
    "november december 最新 价格"
)
_COUNTED = "zero two three four five six seven eight nine ten null eins zwei drei vier acht neun"
_FILLER = frozenset(f"{_OF_SENTENCES} {_OF_SEARCHES}".split())
_COUNTING = frozenset(_COUNTED.split())

Giver = Literal["person", "stranger", ""]


class Exits(Struct, frozen=True, gc=False, omit_defaults=True):
    """What has left in this turn, unasked, of what only strangers gave: pages by their sites, and searches. `light` are
    those searches with other words that nobody said, of no weight by themselves."""

    sites: dict[str, int] = {}
    searches: int = 0
    light: int = 0

    @property
    def fetches(self) -> int:
        return sum(self.sites.values())

    def after(self, way: "WayOut", sources: "Sources") -> "Exits":
        """With this one, if it is one that only strangers gave."""
        if way.url and sources.giver_of(way.url) == "stranger":
            site = site_of(way.url)
            return Exits({**self.sites, site: self.sites.get(site, 0) + 1}, self.searches, self.light)
        weighed = sources.weigh(way.query) if way.query else Weighed()
        if weighed.strange or weighed.light:
            return Exits(self.sites, self.searches + bool(weighed.strange), self.light + (not weighed.strange))
        return self

    def renewed(self, way: "WayOut", sources: "Sources") -> "Exits":
        """After a person has said yes to this one, which only strangers gave: as many again are free."""
        if way.url and sources.giver_of(way.url) == "stranger":
            left = {} if self.fetches >= FETCHES else {**self.sites, site_of(way.url): 0}
            return Exits({site: count for site, count in left.items() if count}, self.searches, self.light)
        weighed = sources.weigh(way.query) if way.query else Weighed()
        if weighed.unsaid or weighed.odd:
            return self
        return Exits(self.sites, 0 if weighed.strange else self.searches, 0 if weighed.light else self.light)

    def then(self, way: "WayOut", sources: "Sources") -> "Exits":
        """When this one has been decided on: it has left, or a person was asked first."""
        after = self.after(way, sources)
        many = max(after.sites.values(), default=0) > PER_SITE or after.fetches > FETCHES
        used_up = many or after.searches > SEARCHES or after.light > LIGHT
        return self.renewed(way, sources) if used_up else after


class WayOut(Struct, frozen=True, gc=False):
    """How a call leads out: by an address, or by words."""

    url: str = ""
    query: str = ""


class Weighed(Struct, frozen=True, gc=False):
    """A query: the words that nobody said who may be quoted, those that only strangers said, and those that nobody said
    and are of no weight. `odd` says why the query as a whole is one to ask about."""

    unsaid: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
    light: tuple[str, ...] = ()
    odd: str = ""


class Sources:
    """What may be quoted in a conversation: what people have said, and what strangers have made public, which are pages
    and what a person has sent along. Other strangers' texts give nothing: into what lies in a workspace, or is printed
    by a command, the model itself may have put anything."""

    __slots__ = ("_weighed", "people", "public")

    def __init__(self) -> None:
        self.people, self.public = Given(loosely=True), Given()
        self._weighed: dict[str, Weighed] = {}

    def add(self, text: str, *, public: bool = False) -> None:
        self._weighed = {}
        (self.public if public else self.people).add(text)

    def giver_of(self, url: str) -> Giver:
        """Another spelling of what a person gave is a choice, as that among what strangers gave is."""
        if self.people.has_address(url):
            return "person"
        given = self.people.has_address(url, loosely=True) or self.public.has_address(url)
        return "stranger" if given else ""

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
        return Weighed(unsaid, strange, tuple(fillers), odd)


def _is_year(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) == 4 and "1990" <= word <= "2049"


def _spells(word: str) -> bool:
    """Whether it is of the kind by which any text can be spelled, letter by letter or digit by digit."""
    return len(word) == 1 or word in _COUNTING
