"""What whoever runs it is told about encryption, as the commands say it."""

from pathlib import Path

import pytest

from everloop.testing import Say
from everloop.testing.model_server import ModelServer
from tests.channels.matrix.synapse import Synapse
from tests.cli.person import Person

WITHOUT = "import sys\nsys.modules['vodozemac'] = None\n"
TOLD = "the extra [matrix-e2ee]: pip install 'everloop[matrix-e2ee]'"


@pytest.mark.parametrize("installed", [True, False])
async def test_channels_test_and_status_say_that_the_extra_is_missing(
    synapse: Synapse, tmp_path: Path, installed: bool
):
    bot = synapse.register("bot")
    async with ModelServer(lambda shown: [Say("")]) as model:
        person = Person(tmp_path, model)
        person.environment |= {
            "EVERLOOP_CHANNELS__MATRIX__HOMESERVER": synapse.url,
            "EVERLOOP_CHANNELS__MATRIX__ACCESS_TOKEN": bot.token,
        }
        if not installed:
            (tmp_path / "sitecustomize.py").write_text(WITHOUT)
            person.environment["PYTHONPATH"] = str(tmp_path)
        tested, status = await person.run("channels", "test", "matrix"), await person.run("channels", "status")
        await person.leave()
    assert (tested.status, TOLD in tested.err) == ((0, False) if installed else (1, True))
    assert f"It answers: {bot.user}" in tested.out
    assert (TOLD in status.err, status.status) == (not installed, 0)
