"""Our account's own keys, with which our device is signed (cross-signing).

Clients have begun to send keys to no device that its owner has not signed. An account of which nobody has signed a
device yet gets its keys from us, which a homeserver lets happen without a password. Where another client has made them,
ours is not signed, and that is told. Each of the three keys is that of an Olm account of which nothing else is used.
"""

import logging
from typing import Any

from vodozemac import Account

from ....errors import VaultLocked
from ..homeserver import Homeserver, HomeserverRefused, path_of
from .account import OlmAccount
from .records import PICKLE, CrossSigningRecord, KeyRecords
from .signing import canonical

_log = logging.getLogger("everloop.channels.matrix")


class CrossSigning:
    """Raises as Homeserver and ChannelRecords do."""

    def __init__(self, server: Homeserver, records: KeyRecords, account: OlmAccount) -> None:
        self._server = server
        self._records = records
        self._account = account
        self._user = account.user

    async def start(self) -> None:
        """Once our device's keys are there."""
        try:
            record = await self._records.update(CrossSigningRecord, (), _made_once)
        except VaultLocked:  # of an earlier login, as whose device we are signed no more
            return
        said = await self._asked()
        if not _at(said, "master_keys", self._user):
            if not await self._publish(record):
                return
            said = await self._asked()
        if self._is_ours(said, record):
            await self._sign_device(said, record)

    async def is_foreign(self) -> bool:
        """Whether another client has made the account's keys, and our device is not signed with them."""
        said = await self._asked()
        signed_by = _at(said, "device_keys", self._user, self._account.device, "signatures", self._user)
        others = [name for name in signed_by if name != f"ed25519:{self._account.device}"]
        return bool(_at(said, "master_keys", self._user)) and not others and not await self._is_to_be_signed(said)

    async def _is_to_be_signed(self, said: Any) -> bool:
        try:
            return self._is_ours(said, await self._records.get(CrossSigningRecord))
        except VaultLocked:
            return False

    async def _asked(self) -> Any:
        return await self._server.post(path_of("keys", "query"), {"device_keys": {self._user: []}})

    def _is_ours(self, said: Any, record: CrossSigningRecord) -> bool:
        theirs = _at(said, "self_signing_keys", self._user, "keys")
        return bool(record.self_signing) and _public(record.self_signing) in theirs.values()

    async def _publish(self, record: CrossSigningRecord) -> bool:
        made = {
            name: {"user_id": self._user, "usage": [name], "keys": {_name(pickle): _public(pickle)}}
            for name, pickle in record.by_name().items()
        }
        body = {f"{name}_key": self._signed(each, record.master) for name, each in made.items()}
        try:
            await self._server.post(path_of("keys", "device_signing", "upload"), body)
        except HomeserverRefused as error:
            _log.warning("the homeserver does not let us sign our own device: %s", error)
            return False
        return True

    async def _sign_device(self, said: Any, record: CrossSigningRecord) -> None:
        device = _at(said, "device_keys", self._user, self._account.device)
        if not device or _name(record.self_signing) in _at(device, "signatures", self._user):
            return
        body = {self._user: {self._account.device: self._signed(device, record.self_signing)}}
        await self._server.post(path_of("keys", "signatures", "upload"), body)

    def _signed(self, value: dict[str, Any], pickle: str) -> dict[str, Any]:
        bare = {name: each for name, each in value.items() if name not in ("signatures", "unsigned")}
        signature = Account.from_pickle(pickle, PICKLE).sign(canonical(bare)).to_base64()
        return {**bare, "signatures": {self._user: {_name(pickle): signature}}}


def _made_once(record: CrossSigningRecord) -> tuple[CrossSigningRecord, CrossSigningRecord]:
    made = record if record.master else CrossSigningRecord(*(Account().pickle(PICKLE) for _ in range(3)))
    return made, made


def _public(pickle: str) -> str:
    return Account.from_pickle(pickle, PICKLE).ed25519_key.to_base64()


def _name(pickle: str) -> str:
    return f"ed25519:{_public(pickle)}"


def _at(said: Any, *names: str) -> dict[str, Any]:
    for name in names:
        said = said.get(name) if isinstance(said, dict) else None
    return said if isinstance(said, dict) else {}
