"""The e-mail channel is a channel: the conformance suite, with Dovecot and OpenSMTPD at the other end."""

from pathlib import Path

import pytest

import everloop
from everloop.net.trusted import TrustedHttp
from everloop.testing.conformance import CHECKS, Trial
from tests.channels.email.relay import MailPlatform
from tests.channels.email.servers import MailServer


@pytest.mark.parametrize("name", CHECKS)
async def test_email_is_a_channel(name: str, server: MailServer, http: TrustedHttp, tmp_path: Path):
    platform = MailPlatform(server, http)
    async with platform.relay.open():
        await CHECKS[name](Trial(platform, tmp_path / "home", everloop.open))
