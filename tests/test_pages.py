"""What the pages for programmers show is run: a page whose code does not work is worse than none."""

import asyncio
import os
import pydoc
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import everloop
from everloop import Effect, MailRefused, Role, testing, tool
from everloop.testing import Call, Say, ScriptedModel

DOCS = Path(__file__).parents[1] / "docs"

NOT_THERE = "Error: there is no tool 'stock'. The tools are: read_file, web_fetch, message, web_search."


def code_of(page: str) -> str:
    return "\n\n".join(re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL))


def run_as_tests(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_page.py").write_text(code)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "asyncio_mode=auto",
        "test_page.py",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ}, check=False)


def test_the_tests_of_the_page_on_testing_pass_and_are_all_of_them(tmp_path: Path):
    code = code_of("testing.md")
    ran = run_as_tests(tmp_path, code)
    assert (ran.returncode, f"{code.count('async def test_')} passed" in ran.stdout) == (0, True), ran.stdout


def test_a_page_that_says_something_untrue_would_be_noticed(tmp_path: Path):
    code = code_of("testing.md").replace('== "There are 12 lamps."', '== "There are none."')
    assert run_as_tests(tmp_path, code).returncode == 1


def test_whatever_a_model_can_say_is_on_the_page():
    page = (DOCS / "testing.md").read_text()
    over_http = {"Http", "Raw", "CutAt"}
    acts = {act.__name__ for act in testing.script.Act.__args__} - over_http
    assert [name for name in sorted(acts) if f"`{name}(" not in page and f"{name}(" not in page] == []


def test_help_on_a_scripted_model_can_be_read():
    shown = max(len(line) for line in help_on(ScriptedModel).splitlines())
    assert shown < 250


def help_on(thing: object) -> str:
    return pydoc.plain(pydoc.render_doc(thing))


@pytest.fixture
def page() -> dict[str, Any]:
    made: dict[str, Any] = {}
    exec(code_of("python.md"), made)
    return made


async def test_the_users_of_the_page_are_kept_apart(page: dict[str, Any], tmp_path: Path):
    model = ScriptedModel(lambda shown: Say("fine") if shown.step else Call("stock", {"item": "lamp"}))
    async with everloop.open(tmp_path, provider=model, tools=[page["stock"]], roles=page["roles"]) as agent:
        said = [await page["answer"](agent, who, "/session list", f"m-{who}") for who in ("anna", "eve", "anna")]
        lines = [line async for line in page["server_sent"](agent, "eve", "hi")]
        with pytest.raises(MailRefused):
            await agent.ask("hi", "web:anna")
    assert said == ["fine"] * 3
    assert [prompt.said[-1][1] for prompt in model.prompts[1::2]] == [
        *("lamp: 12", NOT_THERE, NOT_THERE),
    ]
    assert all(line.startswith('data: {"name":"') for line in lines)


async def test_the_chat_of_the_page_answers_its_questions(page: dict[str, Any], tmp_path: Path):
    @tool(Effect.UNSAFE, guarded=True)
    async def order(item: str) -> str:
        """Order."""
        return "ordered"

    model = ScriptedModel([Call("order", {"item": "lamp"}), Say("done")])
    async with everloop.open(tmp_path, provider=model, tools=[order]) as agent:
        assert await page["ask_in_a_chat"](agent, "order a lamp") == "done"
    assert model.prompts[1].said[-1] == ("tool", "ordered")


async def test_what_was_cut_off_comes_back_as_the_page_says(page: dict[str, Any], tmp_path: Path):
    model = ScriptedModel([(Say("half "), testing.Wait(asyncio.Event()))])
    async with everloop.open(tmp_path, {"agents": {"shutdown_seconds": 0}}, provider=model) as agent:
        asking = asyncio.create_task(agent.user("web:anna").ask("hi", event="m1"))
        await model.called(1)
    await asyncio.gather(asking, return_exceptions=True)
    async with everloop.open(tmp_path, provider=ScriptedModel([Say("whole")])) as agent:
        assert await page["catch_up"](agent, "web:anna") == ["whole"]
        assert await page["catch_up"](agent, "web:anna") == []
        assert await page["answer"](agent, "anna", "hi", "m1") == "whole"


def test_the_roles_of_the_page_are_roles(page: dict[str, Any]):
    assert page["roles"] == {"web:anna": Role.USER}
