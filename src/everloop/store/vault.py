"""The vault: keys and tokens in closed boxes, so that a copy of the database tells nobody what they are.

A box is a head, 12 random bytes and what AES-GCM makes of the value. The head says how the key is had: the byte 1
stands for the key file in the home, the byte 2 and a salt for a passphrase. The head, the owner and the name are
sealed in, so that a box is of use nowhere but in its own place.

`cryptography` takes a while to load and is loaded by the first box that is closed or opened, in a thread.
"""

import asyncio
import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from ..errors import HomeError, VaultLocked
from ..ports import Secrets

KEY_FILE = "vault.key"
PASSPHRASE = "EVERLOOP_VAULT_PASSPHRASE"

_KEY_BYTES = 32
_NONCE_BYTES = 12
_SALT_BYTES = 16
_BY_FILE = b"\x01"
_BY_PASSPHRASE = b"\x02"
_OTHERS = 0o077


class Key(Protocol):
    """Where a vault's key comes from. Both may take a while and touch the disk. They raise VaultLocked, HomeError."""

    def opening(self, box: bytes) -> tuple[int, bytes]:
        """How long the box's head is, and the key that it asks for."""
        ...

    def closing(self, *, may_be_made: bool) -> tuple[bytes, bytes]:
        """The head of a new box, and the key for it."""
        ...


def key_of(home: Path, environ: Mapping[str, str]) -> Key:
    """The passphrase if the environment has one, the key file of the home otherwise. Nothing is made or read yet."""
    passphrase = environ.get(PASSPHRASE, "")
    return Passphrase(passphrase) if passphrase else KeyFile(home / KEY_FILE)


class EncryptedVault:
    """The Vault port over the boxes that a store keeps for one owner."""

    def __init__(self, store: Secrets, key: Key, owner: str = "owner") -> None:
        self._store = store
        self._key = key
        self._owner = owner

    async def get(self, name: str) -> str | None:
        box = await self._store.secret(self._owner, name)
        return None if box is None else await asyncio.to_thread(self.unseal, name, box)

    async def set(self, name: str, value: str) -> None:
        others = [other for other in await self._store.secrets(self._owner) if other != name]
        if others:
            await self.get(others[0])  # with another key than the rest, it could never be read together with them
        first = not others and not await self._store.has_secrets()  # of anybody: one key file is for all
        box = await asyncio.to_thread(self.seal, name, value, first)
        await self._store.keep_secret(self._owner, name, box)

    async def kept(self) -> dict[str, float]:
        return await self._store.secret_times(self._owner)

    async def names(self) -> list[str]:
        return await self._store.secrets(self._owner)

    async def forget(self, name: str) -> bool:
        return await self._store.forget_secret(self._owner, name)

    def unseal(self, name: str, box: bytes) -> str:
        """Slow. Raises VaultLocked."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            length, key = self._key.opening(box)
        except VaultLocked as error:
            raise VaultLocked(f"{name} in the vault cannot be read: {error}") from error
        head, nonce, sealed = box[:length], box[length : length + _NONCE_BYTES], box[length + _NONCE_BYTES :]
        try:
            return AESGCM(key).decrypt(nonce, sealed, self._place(head, name)).decode("utf-8", "surrogatepass")
        except (InvalidTag, ValueError):  # the latter: a box that is too short; its text adds nothing
            raise VaultLocked(
                f"{name} in the vault cannot be read: it was locked with another key or passphrase, or has been "
                f"changed since. Bring back the {KEY_FILE} or the {PASSPHRASE} of that time; or give it up with: "
                f"{_giving_up(name)}"
            ) from None

    def seal(self, name: str, value: str, first: bool) -> bytes:
        """Slow. `first`: a key file may be made. Raises VaultLocked, HomeError."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        head, key = self._key.closing(may_be_made=first)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return (
            head + nonce + AESGCM(key).encrypt(nonce, value.encode("utf-8", "surrogatepass"), self._place(head, name))
        )

    def _place(self, head: bytes, name: str) -> bytes:
        return head + msgspec.json.encode([self._owner, name])


class KeyFile:
    """A key of random bytes in a file that only its owner may read. It is read anew each time: it may be replaced."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def opening(self, box: bytes) -> tuple[int, bytes]:
        _check_kind(box, _BY_FILE)
        key = self._read()
        if key is None:
            raise VaultLocked(f"the key file {self._path} is missing. Bring it back from where it was copied to")
        return 1, key

    def closing(self, *, may_be_made: bool) -> tuple[bytes, bytes]:
        # It is looked for after the store was asked: who makes a key does so before they keep the first box.
        key = self._read()
        if key is None and not may_be_made:
            raise VaultLocked(
                f"the vault has entries, but its key file {self._path} is missing. Bring it back from where it was "
                "copied to, or remove all entries to begin anew"
            )
        return _BY_FILE, key or self._make()

    def _read(self) -> bytes | None:
        try:
            with open(self._path, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                key = file.read(_KEY_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise VaultLocked(
                f"the key file {self._path} cannot be read ({error.strerror}): check its permissions"
            ) from error
        if mode & _OTHERS:
            raise VaultLocked(
                f"the key file {self._path} can be used by others (mode {mode & 0o777:o}). Close it with "
                f"chmod 600 {self._path}, and change what the vault holds if others may have seen it"
            )
        if len(key) != _KEY_BYTES:
            raise VaultLocked(f"the key file {self._path} is damaged. Bring it back from where it was copied to")
        return key

    def _make(self) -> bytes:
        """A whole file appears under the name or none does, and of several processes that try, one succeeds."""
        draft = self._path.with_name(f"{self._path.name}.{secrets.token_hex(8)}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write_durably(draft, secrets.token_bytes(_KEY_BYTES))
            try:
                os.link(draft, self._path)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
            _sync(self._path.parent)
        except OSError as error:
            raise HomeError(
                f"the key file {self._path} cannot be made ({error.strerror}): check the folder and the disk, or set "
                f"{PASSPHRASE}"
            ) from error
        made = self._read()
        if made is None:
            raise VaultLocked(f"the key file {self._path} has vanished while it was made. Try again")
        return made


class Passphrase:
    """A key that scrypt makes of a passphrase and a salt. That takes its time, so it is done once for each salt."""

    def __init__(self, text: str) -> None:
        self._text = text.encode("utf-8", "surrogateescape")
        self._keys: dict[bytes, bytes] = {}
        self._salt = b""  # of the boxes that are closed here: the first that was seen, or one of our own

    def opening(self, box: bytes) -> tuple[int, bytes]:
        _check_kind(box, _BY_PASSPHRASE)
        head = box[: 1 + _SALT_BYTES]
        return len(head), self._key(head[1:])

    def closing(self, *, may_be_made: bool) -> tuple[bytes, bytes]:
        salt = self._salt or secrets.token_bytes(_SALT_BYTES)
        return _BY_PASSPHRASE + salt, self._key(salt)

    def _key(self, salt: bytes) -> bytes:
        if salt not in self._keys:
            self._keys[salt] = hashlib.scrypt(self._text, salt=salt, n=2**15, r=8, p=3, maxmem=2**26, dklen=_KEY_BYTES)
            self._salt = self._salt or salt
        return self._keys[salt]


def _giving_up(name: str) -> str:
    """The command that removes an entry; its name says what it is."""
    kind, _, what = name.partition(":")
    commands = {
        "login": "models logout",
        "mcp": "mcp logout",
        "secret": "secrets forget",
        "own-key": "secrets key forget --who WHO",
        "credential": "secrets credential forget --who WHO",
    }
    return f"everloop {commands.get(kind, 'models key forget')} {what or name}"


def _check_kind(box: bytes, kind: bytes) -> None:
    if box[:1] == kind:
        return
    match box[:1]:
        case b"\x01":
            raise VaultLocked(f"it was locked with the key file {KEY_FILE}, not with a passphrase. Unset {PASSPHRASE}")
        case b"\x02":
            raise VaultLocked(f"it was locked with a passphrase. Set it in {PASSPHRASE}")
        case _:
            raise VaultLocked("it is damaged, or was written by a newer everloop. Upgrade everloop, or enter it again")


def _write_durably(path: Path, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
