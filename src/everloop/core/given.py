"""Who gave an address or a word: what was said in a conversation, looked up by whole addresses and whole words.

Prompt injection ends at the exits: what a stranger's page has a model say can leave only as an address that is fetched
or as words that are searched for. So it is known of both whether somebody gave them. A part of what was given is not
what was given: the choice of where to cut it would tell as much as any text.

Texts are only gathered when they are added, and read when somebody first asks: most conversations never do.
"""

import re
import unicodedata
from collections.abc import Iterator

_LEFT = r"(?<![A-Za-z0-9=/&?%.~+@#-])"  # what stands before it is not a part of it
_STOP = "\\s<>\"'`|\\\\^{}“”„«»‘’。，；：！？、）」』】》"
_ADDRESS = re.compile(rf"{_LEFT}https?://[^{_STOP}]+", re.IGNORECASE)
_LABEL = r"[^\W_](?:[^\W_]|-){0,62}"
_BARE = re.compile(rf"(?<![\w=/&?%.~+@#:-])(?:{_LABEL}\.){{1,8}}[^\W\d_]{{2,24}}(?::\d{{1,5}})?(?:[/?][^{_STOP}]*)?")
_PARTS = re.compile(r"(https?)://([^/?#\\\s]+)([^#\s]*)(?:#\S*)?", re.IGNORECASE)
_PORTS = {"http": ":80", "https": ":443"}
_TRAILING = ".,;:!?*_~…"
_SHORT = 3  # letters of a second-level name that sites are registered below, such as co.uk

_ALONE = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # scripts without spaces between words
_WORD = re.compile(rf"[{_ALONE}]+|[^\W_{_ALONE}]+")
_ENDINGS = ("ing", "ed", "en", "er", "n")
_STEM = 3  # letters that are left of a word at least


class Given:
    """What one side has said. `loosely` takes addresses as people write them: also without `https://`, with or without
    `www.` and a last slash."""

    __slots__ = ("_addresses", "_bare", "_loosely", "_pairs", "_texts", "_unread", "_words")

    def __init__(self, loosely: bool = False) -> None:
        self._loosely = loosely
        self._unread: list[str] = []
        self._texts: list[str] = []
        self._addresses: set[str] = set()
        self._bare: set[str] = set()
        self._words: set[str] = set()
        self._pairs: set[str] = set()  # neighbours, where words are not spaced

    def add(self, text: str) -> None:
        self._unread.append(text)

    def has_address(self, address: str, *, loosely: bool = False) -> bool:
        """Whether it was given as it is; `loosely`, also without its scheme, `www.` or one last slash."""
        self._read()
        known = address_of(address)
        return bool(known) and (known in self._addresses or (loosely and _bare(known) in self._bare))

    def has_word(self, word: str) -> bool:
        """Whether it was said, or only inflected otherwise. `word` is one of `words_in`."""
        self._read()
        if word in self._words or ((stem := stem_of(word)) and stem in self._words):
            return True
        return bool(re.match(f"[{_ALONE}]", word)) and _is_covered(word, self._pairs)

    def has_text(self, text: str) -> bool:
        self._read()
        wanted = plain(text)
        return any(wanted in each for each in self._texts)

    def _read(self) -> None:
        unread, self._unread = self._unread, []
        for text in unread:
            self._addresses.update(_addresses_in(text))
            if self._loosely:
                self._bare.update(_bare_in(text))
            told = plain(text)
            if self._loosely:  # a person's few words; pages are not looked for as a whole
                self._texts.append(told)
            for word in set(_words(told)) - self._words:
                self._words.update(filter(None, (word, stem_of(word))))
                self._pairs.update(word[at : at + 2] for at in range(len(word) - 1) if not word.isascii())


def _addresses_in(text: str) -> Iterator[str]:
    return filter(None, (address_of(_whole(found[0])) for found in _ADDRESS.finditer(text)))


def _bare_in(text: str) -> Iterator[str]:
    """Addresses as people name them, without what they leave out."""
    yield from map(_bare, _addresses_in(text))
    for found in _BARE.finditer(text):
        if known := address_of(f"https://{_whole(found[0])}"):
            yield _bare(known)


def _whole(run: str) -> str:
    """An address without what closes the sentence or the bracket that it stands in."""
    opened = 0
    for at, letter in enumerate(run):
        opened += (letter in "([") - (letter in ")]")
        if opened < 0:
            run = run[:at]
            break
    return run.rstrip(_TRAILING)


def address_of(url: str) -> str:
    """An address as it is compared: what makes no difference to who is asked, and for what, is left out. "" if it is
    none."""
    found = None if re.search(r"\s", url) else _PARTS.fullmatch(url)  # white space would be sent, as %20 and the like
    if found is None:
        return ""
    scheme = found[1].lower()
    user, at, host = found[2].rpartition("@")
    rest = found[3] if found[3].startswith("/") else f"/{found[3]}"
    return f"{scheme}://{user}{at}{host.lower().removesuffix(_PORTS[scheme])}{rest}"


def _bare(address: str) -> str:
    return address.partition("://")[2].removeprefix("www.").removesuffix("/")


def host_of(url: str) -> str:
    """The name or number that an address leads to, without the port."""
    host = address_of(url).partition("://")[2].partition("/")[0].rpartition("@")[2]
    return host if host.endswith("]") else re.sub(r":\d*$", "", host)


def site_of(url: str) -> str:
    """Whose the host of an address is, as nearly as its name tells: below their own, anyone can have any number."""
    host = host_of(url).rstrip(".")
    labels = host.split(".")
    if len(labels) < 3 or labels[-1].isdigit() or host.startswith("["):
        return host
    registry = len(labels[-1]) == 2 and len(labels[-2]) <= _SHORT
    return ".".join(labels[-3 if registry else -2 :])


def words_in(text: str) -> list[str]:
    """The words of a text as they are compared, in order, each as often as it stands there."""
    return list(_words(plain(text)))


def plain(text: str) -> str:
    """Without what no reader would take for a difference: case, width, runs of white space."""
    usual = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(usual.casefold().split())


def _words(told: str) -> Iterator[str]:
    return (found[0] for found in _WORD.finditer(told))


def stem_of(word: str) -> str:
    """What inflected forms have in common, roughly; "" of what is not inflected so."""
    if not word.isalpha() or len(word) < _STEM:
        return ""
    stem = word if word.endswith("ss") else _without(word, "s")
    while shorter := next((each for ending in _ENDINGS if (each := _without(stem, ending)) != stem), ""):
        stem = shorter
    stem = f"{stem[:-1]}i" if stem.endswith("y") else _without(stem, "e")
    doubled = len(stem) > _STEM and stem[-1] == stem[-2]
    return f"~{stem[:-1] if doubled else stem}"


def _without(word: str, ending: str) -> str:
    return word.removesuffix(ending) if len(word) - len(ending) >= _STEM else word


def _is_covered(word: str, pairs: set[str]) -> bool:
    """Whether every letter of it belongs to two neighbours that were said."""
    said = [word[at : at + 2] in pairs for at in range(len(word) - 1)]
    return bool(said) and all(before or after for before, after in zip([False, *said], [*said, False], strict=True))
