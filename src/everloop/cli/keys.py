"""`everloop models key`, `login` and `logout`: what opens the hosts, kept in the vault and never shown."""

import asyncio
import getpass
import os
import sys

from ..app import open_library, open_records
from ..core.errors import EverloopError
from ..providers import logins
from ..providers.catalog import Host
from ..providers.keys import Keys, checked_key, keyed_host, notes_on
from ..settings import home_of, load
from .terminal import Terminal


def find_host(name: str) -> Host:
    """The provider whose key is to be kept. Raises EverloopError when there is none, or it has no keys."""
    return keyed_host(name, load(home_of(os.environ), os.environ).providers.accounts)


def read_key(name: str) -> str:
    """From stdin, or from someone who types it unseen. Raises EverloopError for what cannot be a key."""
    return checked_key(_typed(name) if sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace"))


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
    for note in notes_on(host, key, Keys(accounts, os.environ, {host.name: key}, home_of(os.environ))):
        terminal.note(note)
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
