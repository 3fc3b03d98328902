"""The campaign of kills over all channels (tests/torture/channels.py), in a short form."""

from pathlib import Path

import pytest
from tests.channels.email.servers import missing as no_mail_server
from tests.effort import in_full
from tests.torture.channel_platforms import PLATFORMS
from tests.torture.channels import kill_often


@pytest.mark.shortened
@pytest.mark.timeout(300)
async def test_each_message_on_each_channel_is_answered_and_a_second_time_only_with_a_mark(tmp_path: Path):
    if reason := no_mail_server():
        pytest.skip(reason)
    found = await kill_often(tmp_path, [*PLATFORMS], kills=in_full(20, 3), seed=1)
    assert [name for name in found if name.startswith("WRONG")] == []
    assert {name for name in PLATFORMS if found[f"{name}: messages"] < 3} == set()
