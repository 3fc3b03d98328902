"""Our device, and those of others."""

from collections.abc import Mapping
from typing import Any

import pytest

from everloop.channels.matrix.device import OurDevice
from everloop.channels.matrix.e2ee.devices import Device, Devices
from everloop.channels.matrix.e2ee.encryption import Encryption
from everloop.channels.matrix.e2ee.hindrances import OTHER_KEYS, UNSIGNED
from everloop.channels.matrix.e2ee.signing import is_signed
from everloop.channels.matrix.homeserver import Homeserver, path_of
from everloop.errors import ChannelDown
from everloop.net.trusted import TrustedHttp
from tests.channels.matrix.party import SAID, room_of, said_by
from tests.channels.matrix.remembering import Memory
from tests.channels.matrix.secretive import further_device
from tests.channels.matrix.synapse import PASSWORD, Synapse


async def test_a_device_keeps_the_key_with_which_it_was_first_seen(party: Any):
    anna, bot = await party("anna"), await party("bot")
    (device,) = await bot.encryption._devices.of([anna.user])
    pinned: Devices = bot.encryption._devices
    other = Device(device.user, device.id, device.identity, "another key")
    assert await pinned._pinned(anna.user, [other]) == []
    assert await pinned._pinned(anna.user, [device]) == [device]


async def test_of_two_homes_with_one_token_only_the_first_encrypts(party: Any, synapse: Synapse):
    bot, http = await party("bot"), TrustedHttp()
    server = Homeserver(synapse.url, bot.account.token, http)
    here, there = OurDevice(server, bot.memory), OurDevice(server, Memory())
    assert [await each.hindrance() for each in (here, there)] == ["", OTHER_KEYS]
    with pytest.raises(ChannelDown, match="another client"):
        await Encryption(server, Memory(), bot.user, bot.account.device).start()
    await http.close()


async def test_our_device_is_signed_with_our_accounts_keys_unless_another_client_has_made_them(
    party: Any, synapse: Synapse
):
    bot, http = await party("bot"), TrustedHttp()
    await bot.encryption.start()  # again
    body: dict[str, Any] = {"device_keys": {bot.user: []}}
    said = await bot.server.post(path_of("keys", "query"), body)
    master, signing = (
        next(iter(said[kind][bot.user]["keys"].values())) for kind in ("master_keys", "self_signing_keys")
    )
    device = said["device_keys"][bot.user][bot.account.device]
    assert is_signed(said["self_signing_keys"][bot.user], bot.user, master, master)
    assert is_signed(device, bot.user, signing, signing)
    assert not is_signed({**device, "algorithms": []}, bot.user, signing, signing)

    other = further_device(synapse, bot.user)
    for memory, hindrance in ((bot.memory, ""), (Memory(), UNSIGNED)):  # the same home with a new login; another home
        server = Homeserver(synapse.url, other.token, http)
        our_device = OurDevice(server, memory)
        encryption = await our_device.encryption()
        assert encryption
        await encryption.start()
        assert await our_device.hindrance() == hindrance
        other = further_device(synapse, bot.user)
    await http.close()


async def test_who_has_lost_what_they_spoke_with_understands_us_again(party: Any):
    anna, bot = await party("anna"), await party("bot")
    room = await room_of(anna, bot)
    await anna.encrypt(room)
    await bot.take(await bot.mail())
    await bot.encrypt(room)
    await anna.take(await anna.mail())
    before = {key: kept for key, kept in bot.memory.kept.items() if " OlmSessions " not in key}
    bot.memory.kept = before  # as an old backup
    bot.begin()
    await anna.encrypt(room, messages=1)
    await bot.take((await bot.mail())[-1:])  # which cannot be read
    await anna.take((await anna.mail())[-1:])  # we have begun anew
    after = await anna.encrypt(room, messages=1)
    await bot.take((await bot.mail())[-1:])
    assert (await bot.encryption.read(room, said_by(anna.user, after))).content == SAID


async def test_after_a_logout_the_same_device_tells_its_keys_anew(party: Any, synapse: Synapse):
    anna, bot, http = await party("anna"), await party("bot"), TrustedHttp()
    before = (await anna.encryption._devices.of([bot.user]))[0]
    await bot.server.post(path_of("logout"), {})
    assert await anna.encryption._devices.of([bot.user]) == []
    asked = {"type": "m.login.password", "password": PASSWORD, "device_id": bot.account.device}
    login = await anna.server.post(path_of("login"), {**asked, "identifier": {"type": "m.id.user", "user": bot.user}})
    bot.server = Homeserver(synapse.url, login["access_token"], http)
    bot.begin()
    await bot.encryption.start()
    assert await anna.encryption._devices.of([bot.user]) == [before]
    room = await room_of(anna, bot)
    content = await anna.encrypt(room)
    await bot.take(await bot.mail())
    assert (await bot.encryption.read(room, said_by(anna.user, content))).content == SAID
    await http.close()


async def test_who_is_there_is_known_of_a_homeserver_that_is_away(party: Any):
    anna, bot = await party("anna"), await party("bot")
    there = await bot.encryption._devices.of([anna.user])
    away = Devices(AwayServer(anna.user), bot.encryption._records)
    assert await away.of([anna.user]) == there
    assert await Devices(AwayServer(""), bot.encryption._records).of([anna.user]) == []  # it says that there are none


class AwayServer:
    """A Homeserver that cannot ask another, of which somebody is; or knows none of them."""

    def __init__(self, user: str) -> None:
        self._failed = {user.partition(":")[2]: {"status": 503}}

    async def post(self, path: str, body: Mapping[str, Any], *, seconds: float = 0.0) -> Any:
        return {"device_keys": {}, "failures": self._failed}
