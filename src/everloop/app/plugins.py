"""What other packages bring by an entry point of the group `everloop.tools`: tools, and slash commands."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..errors import SettingsError
from ..ports.tools import Tool
from ..readings.brought_commands import BroughtCommand
from .brought_tools import NAME

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint  # takes its time, and few have plugins

PLUGINS = "everloop.tools"  # the group of entry points


class PluggedIn(Struct, frozen=True):
    """`commands` are found by their names."""

    tools: tuple[Tool, ...] = ()
    commands: Mapping[str, BroughtCommand] = {}


def plugged_in(names: Iterable[str], taken: Iterable[str]) -> PluggedIn:
    """What other packages bring under these names. Raises SettingsError when one cannot be had."""
    from importlib.metadata import entry_points

    there = sorted(entry_points(group=PLUGINS), key=lambda point: point.name)
    seen = set(taken)
    tools: list[Tool] = []
    commands: dict[str, BroughtCommand] = {}
    for name in dict.fromkeys(names):
        for brought in _brought_in(name, _loaded(name, [point for point in there if point.name == name], there)):
            if isinstance(brought, Tool):
                _check_name(name, brought.spec.name, seen)
                seen.add(brought.spec.name)
                tools.append(brought)
            elif commands.setdefault(brought.command.name, brought) is not brought:
                raise SettingsError(f"tools.plugins: {name!r} brings {brought.command.name}, which another one brings")
    return PluggedIn(tuple(tools), commands)


def _loaded(name: str, found: Sequence["EntryPoint"], there: Iterable["EntryPoint"]) -> Any:
    if not found:
        known = ", ".join(dict.fromkeys(point.name for point in there))
        raise SettingsError(
            f"tools.plugins: no package brings {name!r}; {f'there is: {known}' if known else 'none is installed'}"
        )
    if len(found) > 1:
        packages = " and ".join(sorted(point.dist.name if point.dist else point.value for point in found))
        raise SettingsError(f"tools.plugins: {name!r} comes from two packages, {packages}; uninstall one of them")
    try:
        return found[0].load()
    except BaseException as error:  # a stranger's code runs here, and may try to end the program
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise SettingsError(f"tools.plugins: {name!r} cannot be loaded ({why})") from error


def _brought_in(name: str, loaded: Any) -> list[Tool | BroughtCommand]:
    brought = [*loaded] if isinstance(loaded, list | tuple) else [loaded]
    if not brought or not all(isinstance(each, Tool | BroughtCommand) for each in brought):
        raise SettingsError(
            f"tools.plugins: {name!r} is no tool; a plugin is what `@everloop.tool` or `@everloop.slash_command` "
            "makes, or a list of these"
        )
    return brought


def _check_name(plugin: str, name: str, taken: Collection[str]) -> None:
    if name in taken:
        raise SettingsError(f"tools.plugins: {plugin!r} brings a tool {name!r}, and there is one of this name already")
    if not NAME.fullmatch(name):  # one that a host does not know how to write would fail every call to a model
        raise SettingsError(
            f"tools.plugins: {plugin!r} brings a tool {name!r}; a name has up to 64 letters (a to z), digits, _ and -"
        )
