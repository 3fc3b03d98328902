"""What may follow in the line that is being typed: commands and their words, conversations, models, skills, files of
the workspace, and the answers that a question takes."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from msgspec import Struct
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from ...readings.commands import COMMANDS, SlashCommand
from ...readings.visible import in_one_line
from ..cells import beginning
from .mentions import begun, mention_of

MOST = 40  # that are offered
LONGEST_META = 80  # cells that are told of each
LOOKED = 20_000  # entries of folders that are looked at for one word
SKIPPED = {".git", "node_modules", "__pycache__", ".venv"}


class Named(Struct, frozen=True):
    """Something that can be named in a line, and what is told of it."""

    text: str
    meta: str = ""
    shown: str = ""


Source = Callable[[], Awaitable[list[Named]]]


class NameSources(Struct, frozen=True):
    """The commands that there are, and what may be named behind them, once the house is open: by the command, or by it
    and its word (`/session resume`)."""

    commands: Callable[[], Iterable[SlashCommand]] = COMMANDS.values
    names: Mapping[str, Source] = {}
    folders: tuple[Path, ...] = ()


class ChatCompleter(Completer):
    """`answers` are those of the question that is asked, if one is."""

    def __init__(self, sources: Callable[[], NameSources], answers: Callable[[], tuple[str, ...]]) -> None:
        self._sources = sources
        self._answers = answers

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        return ()  # they are all looked for without holding anything up

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        before = document.text_before_cursor
        for each in (await self._found(before))[:MOST]:
            yield each

    async def _found(self, before: str) -> list[Completion]:
        sources, answers = self._sources(), self._answers()
        if answers:
            return [*_fitting(before, (Named(each) for each in answers))]
        if mention := begun(before):
            return [_completion(mention, each) for each in islice(_files(mention[1:], sources.folders), MOST)]
        if not before.startswith("/") or "\n" in before:
            return []
        command, space, rest = before.partition(" ")
        if not space:
            return [*_fitting(before, map(_named, sources.commands()))]
        word, space, more = rest.partition(" ")
        if space and (source := sources.names.get(f"{command} {word}".lower())):
            return [*_fitting(more.lstrip(), await source())]
        return [*_fitting(rest, await _words(command.lower(), sources))]


async def _words(command: str, sources: NameSources) -> list[Named]:
    known = next((each.words for each in sources.commands() if each.name == command), {})
    words = [Named(f"{word} " if each.takes else word, each.help) for word, each in known.items()]
    source = sources.names.get(command)
    return [*(await source() if source else []), *words]


def _named(command: SlashCommand) -> Named:
    return Named(f"{command.name} " if command.takes else command.name, command.help, command.name)


def _fitting(typed: str, names: Iterable[Named]) -> Iterator[Completion]:
    """Those that begin so, then those that have it somewhere, in their name or in what is told of it."""
    wanted, later = typed.casefold(), []
    for each in names:
        made = _completion(typed, each)
        if each.text.casefold().startswith(wanted):
            yield made
        elif len(wanted) > 1 and wanted in f"{each.text} {each.meta}".casefold():
            later.append(made)
    yield from later


def _completion(typed: str, named: Named) -> Completion:
    shown, meta = in_one_line(named.shown or named.text.strip()), beginning(in_one_line(named.meta), LONGEST_META)
    return Completion(named.text, -len(typed), display=shown, display_meta=meta)


def _files(typed: str, folders: tuple[Path, ...]) -> Iterator[Named]:
    """Of the workspace, by any part of their path; others by the folder that is typed."""
    typed = typed.removeprefix('"')
    if typed.startswith(("/", "~", ".")):
        yield from _in_folder(typed, folders)
    elif folders:
        yield from _beneath(typed.casefold(), folders[0])


def _in_folder(typed: str, folders: tuple[Path, ...]) -> Iterator[Named]:
    head, slash, start = typed.rpartition("/")
    try:
        folder = Path(f"{head}{slash}" or ".").expanduser()
    except RuntimeError:  # the folder of a person that there is not
        return
    if not folder.is_absolute() and folders:
        folder = folders[-1] / folder
    for name in _listed(folder):
        if name.startswith(start) and (start or not name.startswith(".")):
            path = f"{head}{slash}{name}"
            yield Named(mention_of(f"{path}/" if (folder / name).is_dir() else path))


def _beneath(wanted: str, folder: Path) -> Iterator[Named]:
    looked = 0
    for place, below, names in os.walk(folder):
        below[:] = sorted(each for each in below if each not in SKIPPED and not each.startswith("."))
        for name in sorted(names):
            looked += 1
            path = os.path.relpath(os.path.join(place, name), folder)
            if looked > LOOKED:
                return
            if wanted in path.casefold() and not name.startswith("."):
                yield Named(mention_of(path))


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:LOOKED]
    except OSError:
        return []
