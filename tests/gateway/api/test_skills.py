"""Skills through the API of an open gateway: each person's own, installed from an archive that was reviewed."""

from pathlib import Path

from everloop.testing import Call, Say, ScriptedModel
from tests.gateway.api.test_setup import opened
from tests.memory.test_skill_install import TEXT
from tests.memory.test_skill_unpack import tarred


async def test_an_archive_is_reviewed_installed_by_its_pin_shown_and_removed(tmp_path: Path):
    data = tarred(("greet/SKILL.md", TEXT))
    async with opened(tmp_path, provider=ScriptedModel(lambda shown: Say("hello"))) as door:
        async with door.client.post("/api/files?name=greet.tgz", data=data) as answer:
            kept = await answer.json()
        asked = {"file": kept["file"], "name": "greet.tgz"}
        review = (await door.send("POST", "/api/skill-reviews", asked))[1]["review"]
        unpinned = await door.send("POST", "/api/skills", {**asked, "pin": "sha256:0"})
        missing = await door.send("POST", "/api/skill-reviews", {"file": "file:" + "0" * 64})
        installed = await door.send("POST", "/api/skills", {**asked, "pin": review["pin"]})
        rows = (await door.get("/api/skills"))["skills"]
        shown = (await door.get("/api/skills/greet"))["skill"]
        none = await door.send("GET", "/api/skills/nosuch")
        removed = await door.send("DELETE", "/api/skills/greet")
        left = [row["name"] for row in (await door.get("/api/skills"))["skills"]]
    assert (review["name"], review["asks"], review["installed"]) == ("greet", ["nothing beside being read"], False)
    assert unpinned[0] == 409
    assert missing[0] == 404
    assert installed == (201, {"told": f"greet is installed, known by {review['pin']}. New conversations know it."})
    assert [(row["pin"], row["origin"]) for row in rows if row["name"] == "greet"] == [(review["pin"], "greet.tgz")]
    assert (shown["text"], shown["files"]) == (TEXT.decode(), ["SKILL.md"])
    assert none[0] == 404
    assert removed == (200, {"told": "greet is removed."})
    assert "greet" not in left


async def test_a_change_that_is_held_back_is_accepted_as_it_was_shown(tmp_path: Path):
    command = "mkdir -p skills/own; echo Own words. > skills/own/SKILL.md"
    model = ScriptedModel([Call("exec", {"command": command}), Say("done")])
    async with opened(tmp_path, provider=model) as door:
        await door.ask("go", "one")
        shown = (await door.get("/api/skills/own"))["skill"]
        other = await door.send("POST", "/api/skills/own/change", {"held": "0123456789", "allow": True})
        accepted = await door.send("POST", "/api/skills/own/change", {"held": shown["held"], "allow": True})
        after = (await door.get("/api/skills/own"))["skill"]
    assert shown["row"]["state"] == "held"
    assert "+Own words." in shown["change"]
    assert other[0] == 409
    told = "skills/own/SKILL.md is accepted as it is now; models are told it in new conversations."
    assert accepted == (200, {"told": told})
    assert (after["row"]["state"], after["held"], after["text"]) == ("available", "", "Own words.\n")
