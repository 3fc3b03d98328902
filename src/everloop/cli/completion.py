"""`everloop completion`: a script by which a shell completes our commands. All words are in it: Tab starts nothing."""

import argparse
import sys
from collections.abc import Iterator

from msgspec.structs import replace

from .. import __version__
from ..settings.rows import NAME, leaves_of
from .command_tree import CommandNode, command_nodes
from .completion_scripts import SCRIPTS
from .terminal import Terminal

MORE = (
    "Where the folder is not there yet, make it with mkdir -p.\n"
    "bash: everloop completion bash > ~/.local/share/bash-completion/completions/everloop\n"
    "zsh: everloop completion zsh > ~/.zfunc/_everloop (with fpath+=~/.zfunc before compinit in ~/.zshrc)\n"
    "fish: everloop completion fish > ~/.config/fish/completions/everloop.fish"
)
ABOUT_A_SETTING = ("get", "set", "unset", "list")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", metavar="SHELL", choices=tuple(SCRIPTS), help=", ".join(SCRIPTS))


async def run(arguments: argparse.Namespace) -> int:
    script = SCRIPTS[arguments.shell](nodes(), __version__)
    Terminal(sys.stdout, sys.stderr).answer(script.removesuffix("\n"))
    return 0


def nodes() -> list[CommandNode]:
    """Every command, with what is understood where its first word is left out."""
    from . import build_parser  # which loads every command, this one too

    found = [*map(_with_settings, command_nodes(build_parser()))]
    agent = next(node for node in found if node.place == ("agent",))
    top = found[0]
    known = {name for option in top.options for name in option.names}
    options = [option for option in agent.options if not known & {*option.names}]
    return [replace(top, options=(*top.options, *options)), *found[1:]]


def _with_settings(node: CommandNode) -> CommandNode:
    if node.place[:1] != ("config",) or node.place[1:] not in {(word,) for word in ABOUT_A_SETTING}:
        return node
    return replace(node, arguments=(*node.arguments, *_settings()))


def _settings() -> Iterator[str]:
    return (".".join(leaf.path) for leaf in leaves_of() if NAME not in leaf.path)
