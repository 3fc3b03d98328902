"""The packages that bring channels: ours, and those of others, which are loaded only when they are asked for by name.

Beside `open_channel` a package may have `SETUP` (how it is set up) and, where one can log in instead of bringing a
token, `LOGIN` (what is asked then) and `log_in(values, http)`, which returns the settings to keep. One of ours may
have `advise()`: a sentence about what is not installed for it.
"""

from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from types import ModuleType

from ..errors import EverloopError, SettingsError
from ..ports import Http
from ..ports.channel import Setup, SetupField
from ..settings.unused import ELSEWHERE
from .channels import OURS, PLUGINS

OUR_PACKAGE = "everloop"

LogIn = Callable[[Mapping[str, str], Http], Awaitable[Mapping[str, str]]]


def installed() -> dict[str, str]:
    """The names of all channels that there are, and the packages that bring them; ours first."""
    from importlib.metadata import entry_points

    theirs = {point.name: point.dist.name if point.dist else "?" for point in entry_points(group=PLUGINS)}
    return {**dict.fromkeys(OURS, OUR_PACKAGE), **{name: by for name, by in theirs.items() if name not in OURS}}


def title_of(name: str) -> str:
    """Of ours, which cost little to look at."""
    return setup_of(name).title if name in OURS else name


def advice_of(name: str) -> str:
    """Of ours; "" where there is none."""
    advise = getattr(_module(name), "advise", None) if name in OURS else None
    return str(advise()) if advise else ""


def setup_of(name: str) -> Setup:
    """How it is set up; of one that does not say, by its name alone. Raises EverloopError."""
    found = getattr(_module(name), "SETUP", None)
    return found if isinstance(found, Setup) else Setup(title=name, steps=(), fields=())


def secret_fields(name: str) -> frozenset[str]:
    """The settings that a channel says are secret; none where its package is gone, or cannot be loaded."""
    try:
        return frozenset(field.name for field in setup_of(name).fields if field.secret)
    except EverloopError:
        return frozenset()


def login_of(name: str) -> tuple[tuple[SetupField, ...], LogIn] | None:
    """What is asked for a login, and what makes settings of it. Raises EverloopError."""
    module = _module(name)
    fields, log_in = getattr(module, "LOGIN", None), getattr(module, "log_in", None)
    return (tuple(fields), log_in) if fields and log_in else None


def _module(name: str) -> ModuleType:
    """Raises EverloopError."""
    if name in OURS:
        return import_module(OURS[name])
    from importlib.metadata import entry_points

    points = [*entry_points(group=PLUGINS, name=name)]
    if not points:
        raise EverloopError(f"there is no channel {name[:50]!r}{_reason(name)}. There is: {', '.join(installed())}")
    if len(points) > 1:
        raise SettingsError(f"channels.{name} comes from two packages; uninstall one of them")
    try:
        return import_module(points[0].module)
    except BaseException as error:  # a stranger's code runs here, and may try to end the program
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise SettingsError(f"channels.{name} cannot be loaded ({why})") from error


def _reason(name: str) -> str:
    return f" ({ELSEWHERE[name]} has none in this version)" if name in ELSEWHERE else ""
