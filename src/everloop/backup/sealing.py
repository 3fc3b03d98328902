"""A stream, encrypted chunk by chunk (AES-256-GCM) with a key that scrypt makes of a passphrase.

The file begins with a line of JSON that says how the key is made; it is sealed in with every chunk. A chunk's nonce
is its number and whether it is the last one, so that none can be changed, left out, put elsewhere or cut off unnoticed
(the STREAM construction). The salt is new for each file, and so is the key: no nonce is ever used twice.
"""

import hashlib
import secrets
from typing import BinaryIO

import msgspec
from msgspec import Struct

from ..errors import BackupDamaged, BackupLocked

MAGIC = b"everloop sealed backup 1\n"
CHUNK = 262_144
WORK = 2**15  # scrypt takes about a third of a second for it, and 32 MB
_TAG = 16
_LONGEST_HEAD = 1000
_MOST_WORK = 2**20  # of scrypt, that a stranger's file may ask for
_SALT = 16  # bytes


class _SealHead(Struct, frozen=True):
    salt: str
    n: int
    r: int = 8
    p: int = 3

    def key(self, passphrase: str) -> bytes:
        text, salt = passphrase.encode("utf-8", "surrogateescape"), bytes.fromhex(self.salt)
        return hashlib.scrypt(text, salt=salt, n=self.n, r=self.r, p=self.p, maxmem=2**28, dklen=32)


class Sealing:
    """Writes into `file`. `close` seals the last chunk; the file itself stays open."""

    def __init__(self, file: BinaryIO, passphrase: str, work: int = WORK) -> None:
        """`work` is what scrypt makes of it, for whoever tries passphrases."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # slow to load

        head = _SealHead(secrets.token_hex(_SALT), work)
        self._head = MAGIC + msgspec.json.encode(head) + b"\n"
        self._file, self._cipher = file, AESGCM(head.key(passphrase))
        self._waiting, self._number = bytearray(), 0
        file.write(self._head)

    def write(self, data: bytes) -> int:
        self._waiting += data
        while len(self._waiting) > CHUNK:  # the last one, which may be full, waits to be known as such
            self._seal(bytes(self._waiting[:CHUNK]), last=False)
            del self._waiting[:CHUNK]
        return len(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self._seal(bytes(self._waiting), last=True)

    def _seal(self, chunk: bytes, *, last: bool) -> None:
        self._file.write(self._cipher.encrypt(_nonce(self._number, last), chunk, self._head))
        self._number += 1


class Unsealing:
    """Reads what was sealed. Raises BackupLocked for another passphrase, BackupDamaged for another file."""

    def __init__(self, file: BinaryIO, passphrase: str, least: int = WORK) -> None:
        """`least` is the work of scrypt that every file of ours has: none that asks for less is opened."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if file.read(len(MAGIC)) != MAGIC:
            raise BackupDamaged("it is not a sealed backup of everloop, or of a newer one")
        line = file.readline(_LONGEST_HEAD)
        self._head, self._file = MAGIC + line, file
        self._cipher = AESGCM(_key_of(line, passphrase, least))
        self._next, self._number, self._open, self._is_over = file.read(CHUNK + _TAG), 0, b"", False

    def read(self, size: int = -1) -> bytes:
        pieces = [self._open]
        while not self._is_over and (size < 0 or sum(map(len, pieces)) < size):
            pieces.append(self._unseal())
        found = b"".join(pieces)
        size = len(found) if size < 0 else size
        self._open = found[size:]
        return found[:size]

    def _unseal(self) -> bytes:
        from cryptography.exceptions import InvalidTag

        sealed, self._next = self._next, self._file.read(CHUNK + _TAG)
        last = not self._next
        try:
            chunk = self._cipher.decrypt(_nonce(self._number, last), sealed, self._head)
        except (InvalidTag, ValueError):
            if not self._number:
                raise BackupLocked("the passphrase is another one, or the file was changed at its beginning") from None
            raise BackupDamaged(f"it was changed or cut off after {self._number * CHUNK:,} bytes") from None
        self._number += 1
        self._is_over = last
        return chunk


def is_sealed(file: BinaryIO) -> bool:
    """By how it begins; it is read from the beginning again afterwards."""
    begins = file.read(len(MAGIC))
    file.seek(0)
    return begins == MAGIC


def _key_of(line: bytes, passphrase: str, least: int) -> bytes:
    try:
        head = msgspec.json.decode(line, type=_SealHead)
        if not (least <= head.n <= _MOST_WORK and 8 <= head.r <= 32 and 1 <= head.p <= 16):
            raise ValueError("that is too little work, or too much")
        if head.n * head.r * head.p > _MOST_WORK * 8 or len(head.salt) != 2 * _SALT:
            raise ValueError("that is too much work, or no salt of ours")
        return head.key(passphrase)
    except (msgspec.DecodeError, ValueError, OverflowError, RecursionError) as error:
        raise BackupDamaged("its head is damaged") from error


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])
