"""Texts as the numbers that a BERT model reads (WordPiece): words without case and accents, and of a word that the
vocabulary lacks the longest pieces that it has.

https://arxiv.org/abs/1810.04805. It is written here, for the usual library is of 12 MB and brings ten packages along.
"""

import gzip
import unicodedata
from collections.abc import Iterator
from pathlib import Path

VOCABULARY = Path(__file__).parent / "data" / "vocab.txt.gz"
MOST = 128  # numbers of a text; what is longer is cut
_LONGEST = 100  # letters of a word that is looked at
_CJK = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


class WordPiece:
    def __init__(self, path: Path = VOCABULARY) -> None:
        pieces = gzip.decompress(path.read_bytes()).decode().splitlines()
        self._numbers = {piece: number for number, piece in enumerate(pieces)}

    def numbers(self, text: str, most: int = MOST) -> list[int]:
        """At most so many, with those that mark where the text begins and ends."""
        known, found = self._numbers, [self._numbers["[CLS]"]]
        for word in words_in(text):
            if len(found) >= most - 1:
                break
            pieces = list(self._pieces(word))
            found += [known["[UNK]"]] if not all(pieces) else [known[piece] for piece in pieces]
        return [*found[: most - 1], known["[SEP]"]]

    def _pieces(self, word: str) -> Iterator[str]:
        """ "" where there is none."""
        start, end = 0, len(word)
        while start < len(word) <= _LONGEST:
            piece = f"##{word[start:end]}" if start else word[:end]
            if piece in self._numbers:
                yield piece
                start, end = end, len(word)
            elif (end := end - 1) == start:
                break
        if start < len(word):
            yield ""


def words_in(text: str) -> list[str]:
    """Runs of letters and digits; each sign, and each Chinese character, is a word of its own."""
    if not text.isascii():
        spaced = "".join(f" {letter} " if _is_chinese(letter) else letter for letter in text)
        text = "".join(
            letter for letter in unicodedata.normalize("NFD", spaced) if unicodedata.category(letter) != "Mn"
        )
    return "".join(map(_spaced, "".join(letter.lower() for letter in text))).split()


def _spaced(letter: str) -> str:
    if letter.isalnum():
        return letter
    if letter in "\t\n\r" or letter.isspace():
        return " "
    category = unicodedata.category(letter)
    if category in ("Cc", "Cf", "Co", "Cs") or letter == "\ufffd":  # is not seen
        return ""
    return f" {letter} " if category[0] == "P" or (letter.isascii() and letter.isprintable()) else letter


def _is_chinese(letter: str) -> bool:
    return any(first <= ord(letter) <= last for first, last in _CJK)
