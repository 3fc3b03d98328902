"""The `llm` command-line tool as a client: https://llm.datasette.io"""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest

from everloop.testing import Call, Say, ScriptedModel
from tests.gateway.http_doors import TOKEN, Serve, Served

LLM = shutil.which("llm", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
pytestmark = pytest.mark.skipif(LLM is None, reason="the llm command is not installed")

MODEL = """\
- model_id: house
  model_name: everloop
  api_base: {url}/v1
  api_key_name: everloop
  supports_tools: true
"""


def set_up(folder: Path, url: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "extra-openai-models.yaml").write_text(MODEL.format(url=url))
    (folder / "keys.json").write_text(f'{{"everloop": "{TOKEN}"}}')


async def llm(served: Served, folder: Path, *words: str) -> str:
    set_up(folder, served.url)
    assert LLM is not None
    ran = await asyncio.create_subprocess_exec(
        *(LLM, *words),
        env={"LLM_USER_PATH": str(folder), "HOME": str(folder), "PATH": os.environ["PATH"], "LLM_LOAD_PLUGINS": ""},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await ran.communicate()
    assert ran.returncode == 0, errors.decode()
    return out.decode()


@pytest.mark.parametrize("how", [[], ["--no-stream"]])
async def test_it_is_answered_and_goes_on(serve: Serve, tmp_path: Path, how: list[str]):
    model = ScriptedModel([Say(["hel", "lo"]), Say("again")])
    async with serve(model) as served:
        assert await llm(served, tmp_path / "llm", "-m", "house", "hi", *how) == "hello\n"
        assert await llm(served, tmp_path / "llm", "-c", "-m", "house", "more", *how) == "again\n"
    assert model.prompts[1].said == [("user", "hi"), ("assistant", "hello"), ("user", "more")]


async def test_its_own_tools_are_called(serve: Serve, tmp_path: Path):
    model = ScriptedModel([Call("twice", {"number": 21}, "c1"), Say("It is 42.")])
    tool = "def twice(number: int) -> int:\n    'Twice a number.'\n    return 2 * number\n"
    async with serve(model) as served:
        told = await llm(served, tmp_path / "llm", "-m", "house", "what is twice 21?", "--functions", tool)
    assert told == "It is 42.\n"
    assert model.prompts[1].said[-1] == ("tool", "42")
