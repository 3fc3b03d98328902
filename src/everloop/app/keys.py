"""Keys and logins of providers, for the commands that keep and forget them."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..providers import logins
from ..providers.catalog import HOSTS, Host
from ..providers.keys import Keys, checked_key, keyed_host, notes_on
from ..providers.logins import Login, Sleep
from ..settings import home_of, load
from .records import open_library, open_records

__all__ = [
    "LOGINS",
    "Host",
    "Login",
    "Sleep",
    "checked_key",
    "find_host",
    "forget",
    "keep_key",
    "kept_keys",
    "key_variables",
    "login_to",
]

LOGINS = logins.NAMES


def key_variables() -> list[str]:
    """The variables in which keys of providers are looked for."""
    return [name for host in HOSTS.values() for name in host.key_variables]


def find_host(name: str) -> Host:
    """The provider whose key is to be kept. Raises EverloopError when there is none, or it has no keys."""
    return keyed_host(name, load(home_of(os.environ), os.environ).providers.accounts)


async def keep_key(host: Host, key: str) -> list[str]:
    """What is to be known about it, in sentences. Raises VaultLocked, StoreError."""
    async with open_records() as records:
        await records.vault.set(f"key:{host.name}", key)
        accounts = records.settings.providers.accounts
    return notes_on(host, key, Keys(accounts, os.environ, {host.name: key}, home_of(os.environ)))


async def kept_keys() -> list[str]:
    """The providers that have a key in the vault."""
    async with open_records() as records:
        return [name.removeprefix("key:") for name in await records.vault.names() if name.startswith("key:")]


async def forget(name: str, *, login: bool = False) -> bool:
    """Whether there was a key, or a login, of this provider to forget."""
    async with open_records() as records:
        return await records.vault.forget(logins.kept_as(name) if login else f"key:{name}")


@asynccontextmanager
async def login_to(name: str) -> AsyncIterator[Login]:
    """The way to log in to one of LOGINS."""
    async with open_library() as library:
        yield logins.load(name, library.http, library.vault)
