"""Whether anybody knows the models that settings name, asked when somebody sets one: a mistake is told then, and not
by the first message that cannot be answered."""

import os
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from ..errors import SettingsError
from ..providers.catalog import HOSTS
from ..providers.choose import EMBEDDED, has_gateway, host_of, vendors_of
from ..providers.keys import Keys
from ..providers.prices import find_window
from ..settings import Settings
from ..settings.edit import Path as SettingPath
from ..settings.edit import key_of

NAMED = ("model", "small_model", "fallbacks")  # of agents.defaults


def check_models(home: Path, settings: Settings, changed: Sequence[SettingPath]) -> list[str]:
    """What is doubtful about the models that were just set. Raises SettingsError for one that nobody can have; who
    writes provider/model with a provider that there is has the last word."""
    keys = Keys(settings.providers.accounts, os.environ, {}, home)
    return [
        doubt
        for path in changed
        for name in _models_at(settings, path)
        if (doubt := _doubt(key_of(path), name, [*settings.models], keys))
    ]


def _models_at(settings: Settings, path: SettingPath) -> Iterator[str]:
    if path[:2] == ("agents", "defaults") and path[2] in NAMED:
        value = getattr(settings.agents.defaults, path[2])
        yield from (value,) if isinstance(value, str) else value


def _doubt(key: str, name: str, presets: list[str], keys: Keys) -> str:
    provider, slash, model = name.partition("/")
    if name in ("", "auto", *presets) or provider == EMBEDDED:
        return ""
    host = host_of(provider, keys)
    if host is not None:
        account = keys.accounts.get(provider)
        is_own = host.port or host.name not in HOSTS or (account and account.api_base)  # it alone knows what it has
        if not model or is_own or find_window(host.name, model):
            return ""
        return f"({model} is in no table of {provider}'s models: `everloop models test {name}` tries it)"
    if has_gateway(keys) or (not slash and vendors_of(name)):
        return ""
    raise SettingsError(f"{key}: {_unknown(name, provider, presets, keys)}")


def _unknown(name: str, provider: str, presets: list[str], keys: Keys) -> str:
    near = get_close_matches(provider, [*HOSTS, *keys.accounts, EMBEDDED, *presets, "auto"], 1)
    hint = f"Did you mean {near[0]}{name.removeprefix(provider)}? " if near else ""
    return (
        f"no provider or preset is called {provider!r}, and no table has such a model. {hint}"
        "Write provider/model, as ollama/NAME for one of this machine; providers are listed by: everloop models --all"
    )
