"""Characters as people see them (grapheme clusters, by the rules that matter for a cut: UAX 29)."""

import unicodedata

BACK = 64  # code points by which a cut may be early for the sake of one character
_JOINER = "\u200d"


def whole(text: str, cut: int) -> int:
    """The last place up to `cut` that is not within a character; `cut` itself if one is longer than any should be."""
    for at in range(cut, max(0, cut - BACK), -1):
        if at >= len(text) or not _joined(text, at):
            return at
    return cut


def _joined(text: str, at: int) -> bool:
    before, after = text[at - 1], text[at]
    if after.isascii() and before.isascii():
        return False
    return (
        after == _JOINER
        or before == _JOINER
        or unicodedata.category(after)[0] == "M"  # accents, vowel signs, variation selectors
        or unicodedata.combining(before) == 9  # a virama, which joins two consonants
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # colours of skin
        or "\u1160" <= after <= "\u11ff"  # a syllable of Hangul, written in its letters
        or (_regional(after) and _regional_before(text, at) % 2 == 1)  # the second half of a flag
    )


def _regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _regional_before(text: str, at: int) -> int:
    start = at
    while start and _regional(text[start - 1]):
        start -= 1
    return at - start
