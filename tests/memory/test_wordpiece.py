"""Texts as numbers: the same that the library gives which the model was trained with (tokenizers 0.23.3)."""

import pytest

from everloop.memory.wordpiece import WordPiece

KNOWN = [
    ("", [101, 102]),
    ("Where does Marta's brother live now?", [101, 2073, 2515, 18950, 1005, 1055, 2567, 2444, 2085, 1029, 102]),
    (
        "Order KX-4471-B costs 1,250.00 €!",
        [101, 2344, 1047, 2595, 1011, 4008, 2581, 2487, 1011, 1038, 5366, 1015, 1010, 5539, 1012, 4002, 1574, 999, 102],
    ),
    ("Ünïcödé Smørrebrød straße ŁÓDŹ", [101, 27260, 15488, 16415, 14343, 19892, 16415, 2094, 2358, 27807, 17814, 102]),
    ("東京 and 北京市", [101, 1879, 1755, 1998, 1781, 1755, 100, 102]),
    ("tabs\tand\nlines\xa0here", [101, 21628, 2015, 1998, 3210, 2182, 102]),
    ("zero\u200bwidth\xad soft", [101, 5717, 9148, 11927, 2232, 3730, 102]),
    ("emoji 🎉 end", [101, 7861, 29147, 2072, 100, 2203, 102]),
    ("antidisestablishmentarianism", [101, 3424, 10521, 4355, 7875, 13602, 3672, 12199, 2964, 102]),
    (
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        [101, 100, 102],
    ),
    ("Привет мир", [101, 1194, 16856, 10325, 25529, 15290, 22919, 1191, 10325, 16856, 102]),
    ("İstanbul ǅ", [101, 9960, 100, 102]),
    ("a_b#c~d|e", [101, 1037, 1035, 1038, 1001, 1039, 1066, 1040, 1064, 1041, 102]),
    ("日本語 テスト", [101, 1864, 1876, 1950, 1713, 30233, 30240, 102]),
    ("café naïve", [101, 7668, 15743, 102]),
    ("�gone\x00", [101, 2908, 102]),
]
PIECES = WordPiece()


@pytest.mark.parametrize(("text", "numbers"), KNOWN)
def test_a_text_has_the_numbers_that_the_model_was_trained_with(text: str, numbers: list[int]):
    assert PIECES.numbers(text) == numbers


def test_a_long_text_is_cut_and_still_ends():
    begun, end = PIECES.numbers("one two three four"), PIECES.numbers("")[1]
    assert PIECES.numbers("one two three four", most=4) == [*begun[:3], end]
    assert len(PIECES.numbers("word " * 1000)) == 128
