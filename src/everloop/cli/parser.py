"""The words of a command line, read by argparse; what is wrong with them is one sentence of ours."""

import argparse
import re
from collections.abc import Collection, Sequence
from typing import Any, NoReturn

from .terminal import WrongUse

# How argparse says it, and how we do. A type's own sentence follows "argument NAME: ", and stays.
_WORDS = (
    (r"the following arguments are required: (.+), (.+)", r"\1 and \2 are missing"),
    (r"the following arguments are required: (.+)", r"\1 is missing"),
    (r"argument (\S+): expected (?:one|at least one) argument", r"\1 needs a value"),
    (r"argument (\S+): ignored explicit argument (.+)", r"\1 takes no value, unlike \2"),
    (r"argument (\S+): invalid choice: (.+?) \(choose from (.+)\)", r"\1 cannot be \2; there is: \3"),
    (r"argument (\S+): invalid int value: (.+)", r"\1 must be a whole number, unlike \2"),
    (r"argument (\S+): not allowed with argument (\S+)", r"\1 and \2 do not go together"),
    (r"ambiguous option: (\S+) could match (.+)", r"\1 could be \2"),
    (r"argument (\S+): it (.+)", r"\1 \2"),
    (r"argument (\S+): (.+)", r"\1: \2"),
)


FIRST = ("--version",)  # is typed in the place of a command


class Parser(argparse.ArgumentParser):
    """Raises WrongUse where argparse would print its usage and end the process. Words that stand behind options are
    `further` ones of this argument, which argparse gives only those before them. `others` tells where options stand
    that are somebody else's."""

    further = ""
    others = ""

    def add_argument(self, *names: Any, **how: Any) -> argparse.Action:
        if how.get("nargs") == "*":  # else argparse calls it required where another one is missing
            how.setdefault("default", [])
        return super().add_argument(*names, **how)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        found, left = super().parse_known_args(args, namespace)
        if self.further and not any(word.startswith("-") for word in left):
            getattr(found, self.further).extend(left)
            left = []
        if left and self._subparsers is None:  # else the command that it was for has said so
            self.error(self._about(left))
        return found, left

    def error(self, message: str) -> NoReturn:
        for theirs, ours in _WORDS:
            if (match := re.fullmatch(theirs, message, re.DOTALL)) is not None:
                message = match.expand(ours)
                break
        raise WrongUse(f"{message}. See: {self.prog} --help")

    def _about(self, left: Sequence[str]) -> str:
        word = left[0]
        if word.startswith("-") and word != "-":
            option = word.partition("=")[0]
            near = nearest(option, (*self._option_string_actions, *FIRST))
            return f"{self.prog} has no option {option}{near}{self.others}"
        words = ", ".join(map(repr, left))
        quoted = "; a message of several words is quoted" if "-m" in self._option_string_actions else ""
        return f"{self.prog} does not know what to do with {words}{quoted}"


def nearest(word: str, words: Collection[str]) -> str:
    from difflib import get_close_matches  # only a mistake needs it

    named = {each.lstrip("-"): each for each in words}  # dashes make any two options alike
    near = get_close_matches(word.lstrip("-"), named, 1)
    return f" (did you mean {named[near[0]]}?)" if near else ""
