"""What a request asks for, as far as its words tell without a model: a question, or a deed and to which files.

The rule that matters is the safe one: a deed is only what is said as an order ("rename", "could you run"), never what
occurs in a question ("what happens if I run it?"). English words decide; a request in another language, where they
say nothing, is taken for a deed only if it names a file and has no question mark.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from . import words
from .world import World


class Wish(Struct, frozen=True):
    """`deeds` are the families of verbs that are ordered; `foreign` says that the words are in no known language."""

    text: str
    deeds: frozenset[str] = frozenset()
    foreign: bool = False
    asks: bool = False
    files: tuple[str, ...] = ()  # that exist
    folders: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # names of files that do not
    new_folder: str = ""

    @property
    def changes(self) -> bool:
        """Whether anything may be changed or run for it."""
        return bool(self.deeds) or self.foreign

    @property
    def to_remember(self) -> str:
        """What is to be kept in mind, as it is said."""
        found = None if self.files else words.REMEMBER.match(self.text.strip())
        said = " ".join(found["what"].split()) if found else ""
        return said[:1].upper() + said[1:]

    @property
    def calculates(self) -> bool:
        text = _without_names(self.text)
        numbers = words.NUMBER.findall(text)
        if words.CALCULATION.search(text) or (words.PYTHON.search(text) and "write" not in self.deeds):
            return True
        plain = [one for one in numbers if not words.YEAR.fullmatch(one)]
        return len(plain) >= 2 and bool(words.AMOUNT.search(text))

    @property
    def calculates_on(self) -> bool:
        """With what was said before."""
        return len(self.text) < 80 and bool(words.AGAIN.search(self.text))

    @property
    def searches(self) -> bool:
        return bool(words.SEARCHED.search(self.text))

    @property
    def lists(self) -> bool:
        head = words.FILLER.sub("", self.text.strip())
        return bool(words.PLACES.search(self.text) and words.LISTED.match(head))

    @property
    def kind(self) -> str:
        """The ending of the files that are asked for."""
        found = words.KIND.search(self.text)
        said = ((found[1] or found[2]) if found else "").lower()
        return words.KINDS.get(said, said)

    @property
    def points(self) -> bool:
        """At something that was spoken of before."""
        return bool(words.POINTED.search(self.text))

    @property
    def is_at_home(self) -> bool:
        """Whether it may be about what lies in the workspace, and not about the world."""
        return bool(words.FOREIGN.search(self.text)) or bool(words.OURS.search(words.NO_HOME.sub("", self.text)))

    @property
    def about_things(self) -> bool:
        return bool(words.THING.search(self.text))


def wish_of(text: str, world: World) -> Wish:
    files, missing = _named(text, world)
    folders, new_folder = _folders(text, world, files)
    deeds = frozenset(_deeds(text))
    foreign = bool(files or missing) and bool(words.FOREIGN.search(_without_names(text))) and not _asks_elsewhere(text)
    return Wish(
        text=text,
        deeds=_settled(deeds, text, files, missing),
        foreign=foreign and not deeds,
        asks=not deeds and not foreign,
        files=files,
        folders=folders,
        missing=missing,
        new_folder=new_folder,
    )


def _asks_elsewhere(text: str) -> bool:
    """Whether it is a question, or no sentence at all, in whatever language."""
    words_beside = re.search(r"[^\W\d_]{2,}", _without_names(text))
    return "?" in text or not words_beside or bool(words.ASKED_ELSEWHERE.match(text.strip()))


def quoted(text: str) -> list[str]:
    return [next(filter(None, found)) for found in words.QUOTED.findall(text)]


def spans_of(text: str, longest: int = 4) -> list[str]:
    """Pieces of a request that may be looked for: words and neighbours, longest first; what is quoted first of all."""
    parts = [word.strip(".,;:!?()[]\"'`“”") for word in text.split()]
    found = quoted(text)
    for size in range(min(longest, len(parts)), 0, -1):
        for at in range(len(parts) - size + 1):
            piece = parts[at : at + size]
            if all(piece) and piece[0].lower() not in words.STOP and piece[-1].lower() not in words.STOP:
                found.append(" ".join(piece))
    return list(dict.fromkeys(found))


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.!?…])\s+|\n+", text.strip()) if part.strip()]


def _deeds(text: str) -> Iterator[str]:
    """What is ordered. After a question, "make it short" is about the answer: there an order names its file, or has a
    verb that is only said of files."""
    asked = False
    for sentence in _sentences(text):
        names = bool(words.NAME.search(sentence))
        if words.ANSWER.search(sentence) and not names:
            continue
        named = bool(words.NAME.search(text))
        yield from (
            deed for deed in _ordered(sentence, named) if not asked or names or words.SURELY_DONE.search(sentence)
        )
        asked = asked or _is_question(sentence)


def _is_question(sentence: str) -> bool:
    unquoted = words.QUOTED.sub("''", words.TAG.sub("", sentence))
    return bool(words.ASKED.match(unquoted)) or (unquoted.endswith("?") and not words.POLITELY.search(unquoted))


def _ordered(sentence: str, named: bool) -> Iterator[str]:
    """The deeds that a sentence orders; `named` says that a file is named beside it."""
    if words.HYPOTHETICAL.search(sentence):
        return
    bare = words.TAG.sub("", sentence)
    unquoted = words.QUOTED.sub("''", bare)
    asks = _is_question(sentence)
    if asks:
        clauses = [unquoted[found.end() :] for found in words.POLITELY.finditer(unquoted)]
        clauses = [] if words.ABOUT_DOING.search(unquoted) else clauses
    elif words.TELL.match(words.FILLER.sub("", unquoted)):
        clauses = [] if words.ABOUT_DOING.search(unquoted) else re.split(r"\s(?:and|then)\s", unquoted)[1:]
    else:
        clauses = re.split(r"[,;:]\s+|\s+[-–—]\s+|,?\s(?:and(?: then)?|then|but|so)\s", unquoted)
    for clause in clauses:
        yield from _deed(words.FILLER.sub("", clause.strip()), asks=bare.endswith("?"), named=named)
    if not asks and words.SHOULD_BE_CALLED.search(unquoted):
        yield "rename"
    elif not asks and words.SHOULD.search(unquoted) and words.NAME.search(unquoted):
        yield "edit"


def _deed(clause: str, asks: bool, named: bool) -> Iterator[str]:
    if words.IDIOM.match(clause):
        return
    if words.NEW.match(clause):
        yield "write"
    elif words.GET_RID.match(clause):
        yield "delete"
    elif words.BACK_UP.match(clause):
        yield "copy"
    else:
        word = re.match(r"[A-Za-z]+", clause)
        if word and word[0].lower() in words.LOOSE and not named and not words.MAKE_NEW.search(clause):
            word = word if words.ONTO_IT.search(clause) else None
        # "Can you write poems?" asks what it can do.
        if word and (
            not asks or words.NAME.search(clause) or words.POINTED.search(clause) or words.A_THING.search(clause)
        ):
            yield from words.FAMILIES.get(word[0].lower(), ())


def _settled(deeds: frozenset[str], text: str, files: tuple[str, ...], missing: tuple[str, ...]) -> frozenset[str]:
    """Verbs that mean more than one thing mean what fits what there is."""
    found = set(deeds)
    if {"write", "edit"} <= found and words.MAKE.search(text):
        found -= {"edit"} if missing or words.MAKE_NEW.search(text) else {"write"}
        found -= set() if words.MAKE_IT.search(text) else {"edit"}
    if "remove" in found and words.REMOVED_FILE.search(text) and len(files) == 1:
        found = (found - {"remove"}) | {"delete"}
    elif "delete" in found and files and not _deletes_file(text):
        found = (found - {"delete"}) | {"remove"}
    if "edit" in found and files and words.FILE_NAME.search(text):
        return frozenset({"rename"})
    if "add" in found and files and words.PUT_FILE.search(text):
        found = (found - {"add"}) | {"rename"}
    if "write" in found and files and not missing and not words.INTO_FILE.search(words.QUOTED.sub("''", text)):
        found -= {"write"}  # of what is in the file, and not into it
    if "rename" in found and files and words.A_NAME_IN_A_FILE.search(text):
        found = (found - {"rename"}) | {"edit"}
    if "write" in found and words.AT_AN_END.search(text) and files:
        found = (found - {"write"}) | {"add"}
    if "add" in found and not files and words.NAME.search(text):
        found = (found - {"add"}) | {"write"}
    return frozenset(found)


def _deletes_file(text: str) -> bool:
    """Whether the file itself is to go, and not something in it."""
    return not words.A_PART.search(text) and bool(words.DELETED_FILE.search(text))


def _without_names(text: str) -> str:
    return words.NAME.sub(" ", words.URL.sub(" ", text))


def _named(text: str, world: World) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files that exist, and names of some that do not, in the order of the text."""
    files: list[str] = []
    missing: list[str] = []
    for found in words.NAME.finditer(words.URL.sub(" ", text)):
        name = found[0].rstrip("/").strip(".") if found[0].endswith("/") else found[0]
        if path := world.file(name):
            files.append(path)
        elif (
            not world.folder(name) and "." in name.rpartition("/")[2] and not words.NO_FILE.search(name) and world.whole
        ):
            missing.append(name.removeprefix("./"))
    files += [
        path
        for path in world.files
        if "." not in path and re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w./-])", text)
    ]
    return tuple(dict.fromkeys(files)), tuple(dict.fromkeys(missing))


def _folders(text: str, world: World, files: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Folders that exist, and the name of one that does not."""
    found = [
        path
        for path in world.folders
        if re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w.-]|/\w)", text, re.IGNORECASE)
    ]
    new = ""
    for match in (*words.FOLDER_CALLED.finditer(text), *words.CALLED_FOLDER.finditer(text)):
        name = match[1]
        if name.lower() in words.NO_NAMES or "." in name:
            continue
        if path := world.folder(name):
            found.append(path)
        else:
            new = new or name
    return tuple(dict.fromkeys(found)), new
