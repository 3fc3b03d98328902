"""What is too large for a channel is told as a link, which opens at the gateway for whoever has it."""

import aiohttp
import pytest

from everloop.app import serve
from everloop.app.outgoing_links import public_address
from everloop.core.people import Role
from everloop.ports.channel import Incoming
from everloop.settings.shape import GatewaySection
from everloop.testing import Call, Say, ScriptedModel
from tests.runtime.test_outgoing_files import Taking


class Sending(Taking):
    def __init__(self) -> None:
        super().__init__(largest=10)
        self.largest = 10

    async def run(self, deliver, resume: str) -> None:
        await super().run(deliver, resume)
        self.entered.add()


async def test_a_file_that_is_too_large_is_linked_and_the_link_opens_without_a_login(tmp_path):
    channel = Sending()
    lines = [Call("write_file", {"path": "a.txt", "content": "0123456789ab"}), Call("send_file", {"path": "a.txt"})]
    model = ScriptedModel([*lines, Say("here it is")])
    settings = {"gateway": {"port": 0, "allowed_hosts": ["agent.example"]}}
    given = {"provider": model, "channels": [channel], "roles": {"fake:anna": Role.USER}}
    async with serve(tmp_path, settings, **given) as gateway:
        await channel.entered.reached(1)
        await channel.deliver(Incoming(event="e1", chat="room", account="anna", text="hi"))
        await channel.sent(1)
        ((text, (file,)),) = channel.told
        assert (text, file.data, file.mention) == ("here it is", b"", f"a.txt: {file.link}")
        base, _, rest = file.link.partition("/files/")
        async with aiohttp.ClientSession() as client:
            opened = [
                await body(client, f"{gateway.url}/files/{rest}"),
                await body(client, f"{gateway.url}/files/{rest[:-2]}"),
            ]
    assert (base, opened) == ("https://agent.example", [(200, b"0123456789ab"), (404, None)])


async def body(client: aiohttp.ClientSession, url: str) -> tuple[int, bytes | None]:
    async with client.get(url) as answer:
        return answer.status, await answer.read() if answer.status == 200 else None


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        ({}, ""),
        ({"host": "127.0.0.1", "tls_cert": "c", "tls_key": "k"}, ""),
        ({"host": "0.0.0.0", "tls_cert": "c", "tls_key": "k"}, ""),
        ({"host": "192.0.2.1", "behind_proxy": True}, ""),
        ({"host": "192.0.2.1", "tls_cert": "c", "tls_key": "k"}, "https://192.0.2.1:18790"),
        ({"host": "2001:db8::1", "tls_cert": "c", "tls_key": "k"}, "https://[2001:db8::1]:18790"),
        ({"allowed_hosts": ("agent.example:8443",)}, "https://agent.example:8443"),
    ],
)
def test_there_are_links_only_where_the_settings_say_how_the_gateway_is_reached(place, wanted):
    assert public_address(GatewaySection(**place)) == wanted
