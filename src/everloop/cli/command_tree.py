"""The commands as argparse has them, as a plain tree: for those who complete what somebody types."""

import argparse
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

Place = tuple[str, ...]  # the words of a command: (), ("models",), ("models", "key", "set")


class CompletedOption(Struct, frozen=True):
    names: tuple[str, ...]
    about: str
    takes_value: bool
    choices: tuple[str, ...] = ()


class CommandNode(Struct, frozen=True):
    """What may follow the words of `place`: further words, options, and arguments of which there is a list."""

    place: Place
    words: Mapping[str, str]  # with what each is for
    options: tuple[CompletedOption, ...]
    arguments: tuple[str, ...] = ()


def command_nodes(parser: argparse.ArgumentParser, place: Place = ()) -> Iterator[CommandNode]:
    """This command and all below it."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    words = {str(each.dest): str(each.help or "") for action in inner for each in action._choices_actions}
    yield CommandNode(place, words, tuple(_options(parser)), tuple(_arguments(parser)))
    for action in inner:
        for name, below in action.choices.items():
            yield from command_nodes(below, (*place, name))


def _options(parser: argparse.ArgumentParser) -> Iterator[CompletedOption]:
    for action in parser._actions:
        if action.option_strings:
            choices = _listed(action.choices)
            yield CompletedOption(tuple(action.option_strings), action.help or "", action.nargs != 0, choices)


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if not action.option_strings and not isinstance(action, argparse._SubParsersAction):
            yield from _listed(action.choices)


def _listed(choices: Sequence[object] | Mapping[str, object] | object) -> tuple[str, ...]:
    """Of a range of numbers nobody is told each."""
    return tuple(map(str, choices)) if isinstance(choices, tuple | list | dict) else ()
