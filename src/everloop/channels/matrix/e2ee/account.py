"""Our device's own keys (an Olm account): what others know it by, and what they begin to speak with it with."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from vodozemac import Account, Curve25519PublicKey, PreKeyMessage

from ..homeserver import Homeserver, path_of
from .records import PICKLE, AccountRecord, KeyRecords
from .signing import canonical

OLM = "m.olm.v1.curve25519-aes-sha2"
MEGOLM = "m.megolm.v1.aes-sha2"
ONE_TIME_KEYS = 50


class OurKeys(Struct, frozen=True):
    identity: str
    signing: str


class OlmAccount:
    """Raises as Homeserver and ChannelRecords do."""

    def __init__(self, server: Homeserver, records: KeyRecords, user: str, device: str) -> None:
        self._server = server
        self._records = records
        self.user = user
        self.device = device
        self._keys: OurKeys | None = None

    async def keys(self) -> OurKeys:
        if self._keys is None:
            record = await self._records.update(AccountRecord, (), _made_once)
            account = Account.from_pickle(record.pickle, PICKLE)
            self._keys = OurKeys(account.curve25519_key.to_base64(), account.ed25519_key.to_base64())
        return self._keys

    async def now(self) -> Account:
        await self.keys()
        return Account.from_pickle((await self._records.get(AccountRecord)).pickle, PICKLE)

    async def published(self) -> str:
        """The signing key by which the homeserver knows this device; "" if it knows none, as after a logout."""
        body: dict[str, Any] = {"device_keys": {self.user: [self.device]}}
        said = await self._server.post(path_of("keys", "query"), body)
        try:
            return str(said["device_keys"][self.user][self.device]["keys"][f"ed25519:{self.device}"])
        except (KeyError, TypeError):
            return ""

    async def is_known(self) -> bool:
        """Whether the homeserver knows no other keys for this device."""
        return await self.published() in ("", (await self.keys()).signing)

    async def publish(self, left: int, *, fallback: bool) -> None:
        """Our device's keys where they are not known, and as many for others to begin with as are missing; `fallback`:
        that for when they are used up, too. They are kept before anybody can use them."""
        await self.keys()

        def make(record: AccountRecord) -> tuple[AccountRecord, AccountRecord]:
            account = Account.from_pickle(record.pickle, PICKLE)
            missing = ONE_TIME_KEYS - left - len(account.one_time_keys)
            if missing <= ONE_TIME_KEYS // 2 and not fallback:
                return record, record
            account.generate_one_time_keys(max(missing, 0))
            if fallback and not _fallback_key(account):
                account.generate_fallback_key()  # type: ignore[attr-defined]
            made = msgspec.structs.replace(record, pickle=account.pickle(PICKLE))
            return made, made

        record = await self._records.update(AccountRecord, (), make)
        if body := self._to_publish(record):
            await self._server.post(path_of("keys", "upload"), body)
            await self._records.update(AccountRecord, (), _published)

    def _to_publish(self, record: AccountRecord) -> dict[str, Any]:
        account = Account.from_pickle(record.pickle, PICKLE)
        body = {} if record.uploaded else {"device_keys": self._signed(account, self._device_keys(account))}
        if account.one_time_keys:
            body["one_time_keys"] = self._key_objects(account, account.one_time_keys, {})
        if last := _fallback_key(account):
            body["fallback_keys"] = self._key_objects(account, last, {"fallback": True})
        return body

    def _device_keys(self, account: Account) -> dict[str, Any]:
        return {
            "user_id": self.user,
            "device_id": self.device,
            "algorithms": [OLM, MEGOLM],
            "keys": {
                f"curve25519:{self.device}": account.curve25519_key.to_base64(),
                f"ed25519:{self.device}": account.ed25519_key.to_base64(),
            },
        }

    def _key_objects(self, account: Account, keys: Mapping[str, Any], more: dict[str, Any]) -> dict[str, Any]:
        return {
            f"signed_curve25519:{id}": self._signed(account, {"key": key.to_base64(), **more})
            for id, key in keys.items()
        }

    def _signed(self, account: Account, value: dict[str, Any]) -> dict[str, Any]:
        signature = account.sign(canonical(value)).to_base64()
        return {**value, "signatures": {self.user: {f"ed25519:{self.device}": signature}}}

    async def forget_upload(self) -> None:
        """The homeserver has our device's keys no more."""
        await self._records.update(AccountRecord, (), lambda now: (msgspec.structs.replace(now, uploaded=False), None))

    async def forget_key_of(self, identity: str, body: str) -> None:
        """A one-time key that somebody has begun with goes."""
        await self._records.update(AccountRecord, (), _without_key_of(identity, body))


def _fallback_key(account: Account) -> Mapping[str, Curve25519PublicKey]:
    """One that is not published yet."""
    key: Mapping[str, Curve25519PublicKey] = account.fallback_key  # type: ignore[attr-defined]
    return key


def _made_once(record: AccountRecord) -> tuple[AccountRecord, AccountRecord]:
    made = record if record.pickle else AccountRecord(Account().pickle(PICKLE))
    return made, made


def _published(record: AccountRecord) -> tuple[AccountRecord, None]:
    account = Account.from_pickle(record.pickle, PICKLE)
    account.mark_keys_as_published()
    return AccountRecord(account.pickle(PICKLE), uploaded=True), None


def _without_key_of(identity: str, body: str) -> Callable[[AccountRecord], tuple[AccountRecord, None]]:
    def change(record: AccountRecord) -> tuple[AccountRecord, None]:
        account = Account.from_pickle(record.pickle, PICKLE)
        try:
            account.create_inbound_session(Curve25519PublicKey.from_base64(identity), PreKeyMessage.from_base64(body))
        except ValueError:
            return record, None
        return msgspec.structs.replace(record, pickle=account.pickle(PICKLE)), None

    return change
