"""A persona is given places of channels that there are, and who changed its files stands in the audit."""

from pathlib import Path

import pytest

from everloop.app import open_desk
from everloop.app.channels import OURS
from everloop.app.persona_desk import open_personas
from everloop.app.records import open_records
from everloop.errors import MailRefused
from everloop.ports.channel import DOORS
from everloop.testing import RecordingChannel, ScriptedModel

KNOWN = f"there is {', '.join(sorted((*DOORS, *OURS)))}"


@pytest.mark.parametrize("place", ["channel:telegran", "server:telegran/7", "chat:telegran:7", "thread:telegran:7:8"])
async def test_a_place_of_a_channel_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path, place: str):
    async with open_personas(tmp_path) as desk:
        await desk.add("tutor", {"prompt": "Teach."}, {})
        for deed in (desk.use("tutor", place), desk.edit("tutor", {"places": [place]}, {})):
            with pytest.raises(MailRefused) as refused:
                await deed
            assert str(refused.value) == f"{place}: there is no channel 'telegran'; {KNOWN}"
        for known in ("default", "channel:webhook", "channel:platform/discord", "server:platform/discord/7"):
            assert (await desk.use("tutor", known)).startswith(f"At {known} tutor answers")


async def test_a_channel_that_is_set_or_that_a_program_brings_is_one(tmp_path: Path):
    given = {"provider": ScriptedModel([]), "channels": [RecordingChannel("brought")]}
    async with open_desk(tmp_path, {"channels": {"elsewhere": {"a": 1}}}, **given) as desk:
        await desk.personas.add("tutor", {"prompt": "Teach.", "places": ["chat:brought:7", "chat:elsewhere:7"]}, {})
        with pytest.raises(MailRefused, match=r"there is api, brought, cli, .*elsewhere, .*openai"):
            await desk.personas.use("tutor", "channel:missing")


async def test_files_of_a_persona_that_are_changed_alone_leave_a_line_in_the_audit(tmp_path: Path):
    async with open_personas(tmp_path) as desk:
        await desk.add("tutor", {"prompt": "Teach."}, {})
        await desk.edit("tutor", {}, {"SOUL.md": "You are a secret."})
    async with open_records(tmp_path) as records:
        lines = [(each.deed, each.subject, each.detail) for each in await records.store.audit()]
    assert ("persona.files", "tutor", '{"files":["SOUL.md"]}') in lines
    assert sum(deed == "persona.files" for deed, _, _ in lines) == 1
    assert "secret" not in str(lines)
