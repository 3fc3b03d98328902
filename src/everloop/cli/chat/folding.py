"""Long pastes and pictures, which stand in the line that is being typed as a few words in brackets."""

import re
from pathlib import Path

LINES, LETTERS = 8, 1500  # of a paste that is folded
_LABEL = re.compile(r"\[(?:pasted [\d,]+ (?:lines|characters)|picture)(?: #\d+)?\]")


class Folded:
    """What stands behind the words in brackets."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._files: dict[str, Path] = {}

    def fold(self, text: str) -> str:
        """What stands for a paste: itself, if it is short."""
        if not _is_long(text):
            return text
        lines = len(text.removesuffix("\n").split("\n"))
        return self._name(f"pasted {lines:,} lines" if lines > 1 else f"pasted {len(text):,} characters", text)

    def fold_again(self, text: str) -> str:
        """What was unfolded and may have been changed since: the pastes that are still in it, or all of it, if it is
        long without them."""
        known = self.refold(text)
        return self.fold(text) if _is_long(known) else known

    def picture(self, path: Path) -> str:
        label = self._free("picture")
        self._files[label] = path
        return label

    def unfold(self, text: str) -> str:
        """As it is sent: with what was pasted. Pictures stay as their words, for one speaks of them by these."""
        return _LABEL.sub(lambda found: self._texts.get(found[0], found[0]), text)

    def behind(self, text: str) -> dict[str, str]:
        """What was pasted, by the words in brackets that stand for it there."""
        return {label: self._texts[label] for label in _LABEL.findall(text) if label in self._texts}

    def take_in(self, text: str, pasted: dict[str, str]) -> str:
        """A text of another chat, and what stood behind its words in brackets there: with words for it here."""
        return _LABEL.sub(lambda found: self.fold(pasted[found[0]]) if found[0] in pasted else found[0], text)

    def refold(self, text: str) -> str:
        """What was typed of it, with words in brackets for what was pasted."""
        for label, pasted in self._texts.items():
            text = text.replace(pasted, label)
        return text

    def pictures(self, text: str) -> list[Path]:
        return [path for label, path in self._files.items() if label in text]

    def _name(self, what: str, text: str) -> str:
        for label, pasted in self._texts.items():
            if pasted == text:
                return label
        label = self._free(what)
        self._texts[label] = text
        return label

    def _free(self, what: str) -> str:
        taken = {*self._texts, *self._files}
        label, number = f"[{what}]", 1
        while label in taken:
            number += 1
            label = f"[{what} #{number}]"
        return label


def _is_long(text: str) -> bool:
    return text.count("\n") >= LINES or len(text) > LETTERS


def label_before(text: str) -> int:
    """How many letters the words in brackets have that a text ends with, which go as one."""
    last = next((found for found in _LABEL.finditer(text) if found.end() == len(text)), None)
    return len(last[0]) if last else 0
