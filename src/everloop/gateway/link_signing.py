"""The signature of a link that opens a file for whoever has it, until it expires (HMAC)."""

import base64
import hmac
from collections.abc import Callable
from hashlib import sha256
from typing import Protocol
from urllib.parse import quote

import msgspec

from ..ports import Clock, Directory, Files
from ..readings.filenames import plain_name
from .file_links import last_of


class LinkAgent(Protocol):
    @property
    def clock(self) -> Clock: ...

    @property
    def files(self) -> Files: ...

    @property
    def store(self) -> Directory: ...

    @property
    def link_seconds(self) -> int:
        """For how long a link holds."""
        ...

    async def link_key(self) -> bytes | None:
        """None where the vault is locked: then nothing is signed, and no link holds."""
        ...


async def signer(agent: LinkAgent) -> Callable[[str, str, str], str]:
    """Makes the address of somebody's file, by whose it is, its reference and its name; where nothing can be signed,
    one that opens for themselves alone."""
    key, until = await agent.link_key(), int(agent.clock.now()) + agent.link_seconds

    def sign(owner: str, ref: str, name: str) -> str:
        plain = f"/api/files/{ref}/{quote(last_of(name), safe='')}"
        return signed_link(key, owner, ref, name, until) if key else plain

    return sign


def signed_link(key: bytes, owner: str, ref: str, name: str, until: int) -> str:
    body, name = msgspec.json.encode((owner, until)), plain_name(name)
    token = f"{_text(body)}.{signature_of(key, ref, name, body)}"
    return f"/files/{ref}/{quote(name, safe='')}?link={token}"


def signature_of(key: bytes, ref: str, name: str, body: bytes) -> str:
    signed = msgspec.json.encode([ref, name]) + b"\n" + body
    return _text(hmac.digest(key, signed, sha256))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
