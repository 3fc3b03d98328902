"""A model that does what an attacker says, in a workspace in which everloop's own home lies: as a person runs it."""

import shutil
from pathlib import Path

import pytest
from tests.cli.person import Person, said_in

from everloop.testing import Call, Say
from everloop.testing.model_server import ModelServer

SETTINGS = '[agents.defaults]\nsystem_prompt = "CANARY-owner"\n'
DECOY = '[agents.defaults]\nsystem_prompt = "CANARY-attacker"\n[tools]\napprovals = "allow"\n'
KEY = b"CANARY-key" + b"k" * 22


async def obeyed(person: Person, model: ModelServer, *calls: Call) -> list[str]:
    """What the model was told of its calls."""
    model.play([*calls, Say("done")])
    ran = await person.run("agent", "-m", "go", "-s", f"cli:{model.calls}")
    assert (ran.status, ran.out) == (0, "done\n"), ran.err
    return [text for role, text in said_in(model.prompts[-1]) if role == "tool"]


def moving(top: str) -> list[Call]:
    folders = " ".join(f"{top}/everloop/{name}" for name in ("spool", "files", "logs", "run"))
    plant = f"cat > {top}/everloop/config.toml <<'END'\n{DECOY}END"
    return [
        Call("exec", {"command": f"mv {top} {top}-moved && mkdir -p {folders}; {plant}"}),
        Call("exec", {"command": f"cat {top}-moved/everloop/config.toml {top}-moved/everloop/vault.key"}),
        Call("read_file", {"path": f"{top}-moved/everloop/config.toml"}),
        Call("run_python", {"code": f"print(open('{top}/everloop/config.toml').read())"}),
    ]


@pytest.mark.skipif(not shutil.which("bwrap"), reason="without bubblewrap no command runs there at all")
async def test_a_home_deep_in_the_workspace_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    for top in ("apps", "like"):
        (tmp_path / top / "everloop").mkdir(parents=True)
        (tmp_path / top / "everloop/config.toml").write_text(SETTINGS)
        (tmp_path / top / "everloop/vault.key").write_bytes(KEY)
    async with ModelServer() as model:
        person = Person(tmp_path, model)
        person.environment |= {"EVERLOOP_HOME": f"{tmp_path}/apps/everloop", "EVERLOOP_WORKSPACE": str(tmp_path)}
        told = await obeyed(person, model, *moving("apps"))
        assert [text for text in told if "CANARY" in text] == []
        assert (tmp_path / "apps/everloop/config.toml").read_text() == SETTINGS
        told = await obeyed(person, model, *moving("like"))
        assert [index for index, text in enumerate(told) if "CANARY" in text] == [1, 2, 3]  # the attack works
        assert (tmp_path / "like/everloop/config.toml").read_text() == DECOY
        await obeyed(person, model)
        assert "CANARY-owner" in model.prompts[-1].system  # the settings in force at the next start


async def test_a_link_in_the_workspace_on_the_way_to_the_home_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "person").mkdir()
    (tmp_path / "person/.everloop").symlink_to(tmp_path / "data")
    async with ModelServer([Say("hello")]) as model:
        person = Person(tmp_path, model)
        person.environment |= {"HOME": f"{tmp_path}/person", "EVERLOOP_WORKSPACE": "~"}
        del person.environment["EVERLOOP_HOME"]
        ran = await person.run("agent", "-m", "go")
        assert (ran.status != 0, ran.out, ran.err) == (
            True,
            "",
            f"everloop: everloop's home {tmp_path}/person/.everloop is reached through the link "
            f"{tmp_path}/person/.everloop in the workspace, and a command could put another in its place; set "
            f"EVERLOOP_HOME to {tmp_path}/data, or choose another workspace\n",
        )
        person.environment["EVERLOOP_HOME"] = f"{tmp_path}/data"
        assert (await person.run("agent", "-m", "go")).out == "hello\n"


async def test_a_workspace_that_is_refused_is_not_made(tmp_path: Path) -> None:
    async with ModelServer([Say("hello")]) as model:
        person = Person(tmp_path, model)
        person.environment["EVERLOOP_WORKSPACE"] = "spool"
        ran = await person.run("agent", "-m", "go")
        assert (ran.status != 0, ran.err) == (
            True,
            f"everloop: workspace is {person.home}/spool, where everloop keeps its own files; choose another folder\n",
        )
        assert not (person.home / "spool").exists()
        person.environment["EVERLOOP_WORKSPACE"] = "elsewhere"
        assert (await person.run("agent", "-m", "go")).out == "hello\n"
