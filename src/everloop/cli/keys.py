"""`everloop models key`, `login` and `logout`: what opens the hosts, kept in the vault and never shown."""

import asyncio
import getpass
import os
import sys
from difflib import get_close_matches

from ..app import open_library, open_records
from ..core.errors import EverloopError
from ..providers import logins
from ..providers.catalog import HOSTS, Host
from ..providers.keys import Keys
from ..settings import Settings, home_of, load
from .terminal import Terminal


def unknown_provider(name: str, settings: Settings) -> EverloopError:
    names = list(dict.fromkeys((*HOSTS, *settings.providers.accounts)))
    near = get_close_matches(name.lower(), names, 3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
    return EverloopError(f"there is no provider {name!r}; {hint}")


def find_host(name: str) -> Host:
    """The provider whose key is to be kept. Raises EverloopError when there is none, or it has no keys."""
    settings = load(home_of(os.environ), os.environ)
    host = HOSTS.get(name)
    if host is None and name not in settings.providers.accounts:
        raise unknown_provider(name, settings)
    if host and host.login:
        raise EverloopError(f"{name} has no keys. Log in with: everloop models login {name}")
    return host or Host(name, "")


def read_key(name: str) -> str:
    """From stdin, or from someone who types it unseen. Raises EverloopError for what cannot be a key."""
    key = (_typed(name) if sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace")).strip()
    if not key:
        raise EverloopError("no key was given, and nothing was kept")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise EverloopError("that is no key: it has several lines, or characters that no key has; nothing was kept")
    return key


def _typed(name: str) -> str:
    try:
        return getpass.getpass(f"The key of {name}: ")
    except EOFError:
        return ""


async def keep_key(host: Host, key: str, terminal: Terminal) -> int:
    async with open_records() as records:
        await records.vault.set(f"key:{host.name}", key)
        accounts = records.settings.providers.accounts
    terminal.note(f"The key of {host.name} is kept in the vault.")
    owner = next((other for other in HOSTS.values() if other.key_prefix and key.startswith(other.key_prefix)), host)
    if owner.name != host.name and host.name in HOSTS:
        terminal.note(f"It looks like a key of {owner.name}, though.")
    found = Keys(accounts, os.environ, {host.name: key}, home_of(os.environ)).find(host)
    if found and found.where != "vault":
        terminal.note(f"It is not used as long as there is another, which comes first: {found.where}.")
    return 0


async def list_keys(terminal: Terminal) -> int:
    async with open_records() as records:
        names = [name.removeprefix("key:") for name in await records.vault.names() if name.startswith("key:")]
    if names:
        terminal.answer("\n".join(names))
    else:
        terminal.note("There are no keys in the vault.")
    return 0


async def forget(name: str, what: str, terminal: Terminal) -> int:
    async with open_records() as records:
        if not await records.vault.forget(name):
            raise EverloopError(f"{what[0].lower()}{what[1:]} is not in the vault")
    terminal.note(f"{what} is forgotten.")
    return 0


async def login(name: str, terminal: Terminal) -> int:
    async with open_library() as library:
        await log_in(logins.load(name, library.http, library.vault), terminal)
    return 0


async def log_in(login: logins.Login, terminal: Terminal, sleep: logins.Sleep = asyncio.sleep) -> None:
    """Raises LoginDenied, LoginExpired and other ProviderErrors."""
    asking = await login.begin()
    terminal.answer(f"Open {asking.url} and enter the code {asking.code}")
    terminal.status("waiting until you have …")
    await login.finish(asking, sleep)
    terminal.note(f"You are logged in to {login.name}: {login.name}/MODEL is a model now.")
