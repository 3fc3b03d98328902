"""What a person allows ahead is the like of what they were asked, wherever they answer, and nothing else runs by it."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import everloop
from everloop.core.log import Answered, Asked
from everloop.core.people import Role
from everloop.core.tool import Circumstances, Effect
from everloop.errors import GrantRefused, MailRefused
from everloop.readings.questions import offered_of, question_of
from everloop.runtime.approvals import Approvals
from everloop.runtime.people import KnownPeople
from everloop.testing import Call, Say, ScriptedModel, counting_tool, runs_in
from everloop.testing.script import Shown
from everloop.tools.hosts import plain_host_of
from tests.runtime.conftest import letter

ASK = {"tools": {"policy": [{"tool": "exec", "stance": "ask"}, {"tool": "exec_input", "stance": "ask"}]}}


def obedient() -> ScriptedModel:
    """Makes the call that it is told to make: `tool {"json": …}`."""

    def line(shown: Shown) -> Any:
        if shown.step:
            return Say("done")
        name, _, args = shown.asked.partition(" ")
        return Call(name, json.loads(args or "{}"))

    return ScriptedModel(line)


def risk_of_fetch(args: dict[str, Any], situation: Circumstances) -> everloop.Risk:
    return everloop.Risk("medium", leaves=True, host=plain_host_of(args["url"]))


@pytest.fixture
def tools(tmp_path: Path) -> list[everloop.Tool]:
    """A guarded tool, and one that speaks to hosts; their runs are counted outside."""

    @everloop.tool(Effect.READ, risk=risk_of_fetch)
    async def fetch(url: str) -> str:
        """Fetch."""
        path = tmp_path / "fetched"
        path.write_text(f"{path.read_text() if path.exists() else ''}{url}\n")
        return "a page"

    return [counting_tool(tmp_path / "runs", "act", Effect.UNSAFE, guarded=True), fetch]


def runs(folder: Path) -> list[Any]:
    path = folder / "runs"
    return [run.args for run in runs_in(path)] if path.exists() else []


def fetched(folder: Path) -> list[str]:
    path = folder / "fetched"
    return path.read_text().split() if path.exists() else []


async def first_question(agent: everloop.Agent) -> Any:
    while not (waiting := await agent.approvals()):  # noqa: ASYNC110 (what is waited for happens in the store)
        await asyncio.sleep(0.01)
    return waiting[0]


async def allow(agent: everloop.Agent, text: str, session: str = "api:default", **chosen: Any) -> str:
    """Have a call made, and allow it with the like; the name of the question."""
    asking = asyncio.create_task(agent.ask(text, session, attended=True))
    asked = await first_question(agent)
    await agent.decide(asked.id, True, allowance=everloop.Allowance(**chosen))
    await asking
    return asked.id


async def verdicts(agent: everloop.Agent, session: str = "api:default") -> list[tuple[str, str]]:
    row = await agent.store.session(session)
    assert row is not None
    return [(each.verdict, each.by) for each in await agent.store.read(row.id) if isinstance(each, Answered)]


ACT = 'act {"to": "bob", "text": "hi"}'


async def test_with_a_time_alone_the_same_call_runs_again_and_no_other(house, tools, tmp_path: Path):
    async with house(obedient(), tools=tools) as agent:
        name = await allow(agent, ACT, seconds=600)
        for text in (ACT, 'act {"to": "eve", "text": "hi"}', 'act {"to": "bob", "text": "hi", "more": 1}'):
            await agent.ask(text)
        said = await verdicts(agent)
    assert said == [("allowed", "owner"), ("allowed", f"grant:{name}"), *[("unattended", "")] * 2]
    assert runs(tmp_path) == [{"to": "bob", "text": "hi"}] * 2


async def test_it_runs_as_often_as_was_said(house, tools, tmp_path: Path):
    async with house(obedient(), tools=tools) as agent:
        await allow(agent, ACT, runs=2)
        for _ in range(4):
            await agent.ask(ACT)
        assert await agent.grants() == []
    assert len(runs(tmp_path)) == 3


async def test_it_ends_with_its_time_and_when_it_is_taken_back(house, tools, tmp_path: Path):
    async with house(obedient(), tools=tools) as agent:
        name = await allow(agent, ACT, seconds=0.001)
        assert await agent.grants() == []
        await agent.ask(ACT)
        await agent.store.forget_grant(name)
        name = await allow(agent, ACT)
        assert (await agent.revoke(name[:6])).id == name
        await agent.ask(ACT)
    assert len(runs(tmp_path)) == 2


async def test_anything_has_to_be_said(house, tools, tmp_path: Path):
    async with house(obedient(), tools=tools) as agent:
        await allow(agent, ACT, any=True)
        await agent.ask('act {"to": "eve"}')
    assert runs(tmp_path) == [{"to": "bob", "text": "hi"}, {"to": "eve"}]


async def test_a_host_is_no_other_host(house, tools, tmp_path: Path):
    urls = ["http://evil.example/a", "http://evil.example/b?x=1", "https://EVIL.example/c", "http://other.example/a",
            "http://www.evil.example/", "http://evil.example:8080/", "http://evil.example@other.example/",
            "http://other.example/evil.example", "http://evil.example\\@other.example/", "http://evіl.example/",
            "http://evil.example.other.example/", "http://other.example#evil.example",
            "http://evil.example%2eother.example/"]  # fmt: skip
    async with house(obedient(), tools=tools) as agent:
        await allow(agent, f"fetch {json.dumps({'url': urls[0]})}", host="evil.example")
        for url in urls:
            await agent.ask(f"fetch {json.dumps({'url': url})}")
    assert fetched(tmp_path) == [urls[0], *urls[:3]]


async def test_the_whole_of_a_tool_can_be_allowed_here_and_nowhere_else(house, tools, tmp_path: Path):
    """As somebody does who lets the searches of one conversation pass."""
    async with house(obedient(), tools=tools) as agent:
        await allow(agent, 'fetch {"url": "http://a.example/"}', "api:one", any=True, here=True)
        await agent.ask('fetch {"url": "http://b.example/"}', "api:one")
        await agent.ask('fetch {"url": "http://c.example/"}', "api:two")
        await agent.ask("/new", "api:one")
        await agent.ask('fetch {"url": "http://d.example/"}', "api:one")
    assert fetched(tmp_path) == ["http://a.example/", "http://b.example/"]


async def test_what_others_may_read_is_allowed_word_for_word(house):
    """`message` to a channel is asked; a grant for one message is none for another."""
    hello, other = (f'message {{"session": "chat:home", "text": "{text}"}}' for text in ("hello", "my secrets"))
    async with house(obedient()) as agent:
        await agent.ask("act", "chat:home", author="owner")
        await allow(agent, hello, seconds=600)
        await agent.ask(hello)
        await agent.ask(other)
        said = await verdicts(agent)
    assert [verdict for verdict, _ in said] == ["allowed", "allowed", "unattended"]


async def test_what_is_written_into_a_command_is_allowed_word_for_word(house):
    calls = [f'exec_input {{"id": "b1-0", "text": "{text}"}}' for text in ("yes", "no; rm -rf .")]
    async with house(obedient(), settings=ASK) as agent:
        await allow(agent, calls[0], seconds=600)
        for text in calls:
            await agent.ask(text)
        said = await verdicts(agent)
    assert [verdict for verdict, _ in said] == ["allowed", "allowed", "unattended"]


async def test_a_tool_that_is_another_now_is_asked_about(house, tools, tmp_path: Path):
    async with house(obedient(), tools=tools) as agent:
        await allow(agent, ACT, any=True)
    other = structs.replace(tools[0].spec, description="Does something else now.")
    async with house(obedient(), tools=[structs.replace(tools[0], spec=other)]) as agent:
        await agent.ask(ACT)
        said = await verdicts(agent)
    assert said[-1] == ("unattended", "")


def touch(name: str, **more: Any) -> str:
    return f"exec {json.dumps({'command': f'touch {name}', **more})}"


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


class TestFolders:
    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Path:
        workspace = tmp_path / "home" / "workspace"
        for name in ("site/below", "secret"):
            (workspace / name).mkdir(parents=True)
        return workspace

    async def made(self, house: Any, workspace: Path, *calls: str, change: Callable[[], None] = lambda: None,
                   **chosen: Any) -> list[str]:  # fmt: skip
        """What commands have made after `touch mark` in `site` was allowed with the like."""
        async with house(obedient(), settings=ASK) as agent:
            await allow(agent, touch("mark", cwd="site"), **chosen)
            change()
            for call in calls:
                await agent.ask(call)
        return files_in(workspace)

    async def test_a_pattern_holds_in_the_folder_of_the_first_and_below(self, house, workspace: Path):
        calls = [
            touch(name, cwd=cwd) for name, cwd in (("a", "site"), ("b", "site/below"), ("c", "."), ("d", "secret"))
        ]
        assert await self.made(house, workspace, *calls, argv="touch *") == ["site/a", "site/below/b", "site/mark"]

    async def test_a_folder_that_was_named_holds_with_all_below(self, house, workspace: Path):
        calls = [touch("mark", cwd=cwd) for cwd in ("site/below", ".", "secret")] + [touch("other", cwd="site")]
        assert await self.made(house, workspace, *calls, folder="site") == ["site/below/mark", "site/mark"]

    async def test_it_may_be_a_folder_above_that_of_the_first(self, house, workspace: Path):
        assert await self.made(house, workspace, touch("e"), argv="touch *", folder=".") == ["e", "site/mark"]

    async def test_a_link_leads_out_of_it(self, house, workspace: Path):
        def link() -> None:
            (workspace / "site/link").symlink_to("../secret")
            (workspace / "site/loop").symlink_to(".")

        calls = [touch("x", cwd="site/link"), touch("y", cwd="site/loop"), touch("z", cwd="site/link/../../site")]
        assert await self.made(house, workspace, *calls, change=link, argv="touch *", folder="site") == [
            "site/mark", "site/y"]  # fmt: skip

    async def test_a_folder_that_took_its_name_is_another(self, house, workspace: Path):
        def replace() -> None:
            (workspace / "site").rename(workspace / "moved")
            (workspace / "secret").rename(workspace / "site")

        calls = [touch("x", cwd="site"), touch("y", cwd="moved"), touch("z", cwd="moved/below")]
        assert await self.made(house, workspace, *calls, change=replace, argv="touch *") == [
            "moved/below/z", "moved/mark", "moved/y"]  # fmt: skip

    async def test_one_that_was_made_anew_is_another_even_with_the_same_number(self, house, workspace: Path):
        def replace() -> None:
            before = (workspace / "site").stat().st_ino
            for _ in range(50):  # the file system may give the number again, and often does
                for path in ("site/mark", "site/below"):
                    found = workspace / path
                    (found.rmdir if found.is_dir() else found.unlink)() if found.exists() else None
                (workspace / "site").rmdir()
                (workspace / "site").mkdir()
                if (workspace / "site").stat().st_ino == before:
                    break

        assert await self.made(house, workspace, touch("x", cwd="site"), change=replace, argv="touch *") == []

    async def test_neither_the_background_nor_more_time_was_allowed(self, house, workspace: Path):
        more = ({"background": True}, {"timeout": 61}, {"timeout": 60}, {"timeout": 5}, {"background": False})
        calls = [touch(f"n{number}", cwd="site", **each) for number, each in enumerate(more)]
        assert await self.made(house, workspace, *calls, argv="touch *") == [
            "site/mark", "site/n2", "site/n3", "site/n4"]  # fmt: skip

    async def test_what_was_asked_runs_in_the_folder_that_was_asked_about(self, house, workspace: Path, tmp_path: Path):
        """Also an answer to one question: by the time it comes, the name may stand for another folder."""
        model = obedient()
        async with house(model, settings=ASK) as agent:
            asking = asyncio.create_task(agent.ask(touch("x", cwd="site"), attended=True))
            asked = await first_question(agent)
            (workspace / "site").rename(workspace / "moved")
            (workspace / "site").symlink_to("secret")
            await agent.decide(asked.id, True)
            await asking
        assert "is not the folder any more that was allowed" in model.prompts[-1].said[-1][1]
        assert files_in(workspace) == []


class TestAnswering:
    async def test_the_words_in_a_conversation_are_those_of_everywhere(self, house, tools, tmp_path: Path):
        async with house(obedient(), tools=tools) as agent:
            asking = asyncio.create_task(agent.ask('fetch {"url": "http://a.example/x"}', attended=True))
            asked = await first_question(agent)
            assert asked.choices == ("for", "runs", "here", "any", "host")
            assert question_of(asked).endswith(
                "To allow the like too, add: for 8h (how long; else an hour); here (only in this conversation); "
                "any (anything of fetch); host (all of a.example). Without host or any it is the same call again."
            )
            for words in ("host b.example", "argv curl *", "for ever", "hots", "here maybe", "folder x"):
                refused = (await agent.ask(f"/approve {asked.id} {words}")).content
                assert "allowed." not in refused
            assert [each.id for each in await agent.approvals()] == [asked.id]
            assert (await agent.ask(f"/approve {asked.id} host here runs 2 for 8h")).content == (
                "fetch is allowed. So is, for 8h, 2 more times: addresses of a.example, only in this conversation."
            )
            await asking
            for _ in range(3):
                await agent.ask('fetch {"url": "http://a.example/y"}')
        assert fetched(tmp_path) == ["http://a.example/x", *["http://a.example/y"] * 2]

    @pytest.mark.parametrize("command", ['"x, or say: y any" z', f"{'x' * 41} y", "$(x) y"])
    async def test_no_word_of_the_call_passes_for_one_of_the_question(self, house, command: str):
        async with house(obedient(), settings=ASK) as agent:
            await agent.tell(letter(f"exec {json.dumps({'command': command})}", "e1"))
            asked = await first_question(agent)
        assert command.split()[0].strip('"') not in " ".join(offered_of(asked))

    async def test_the_same_message_twice_allows_no_more_than_once(self, house, tools, tmp_path: Path):
        async with house(obedient(), tools=tools) as agent:
            asking = asyncio.create_task(agent.ask(ACT, attended=True))
            asked = await first_question(agent)
            for _ in range(2):
                await agent.tell(letter(f"/approve {asked.id} runs 1", "e7"))
            await asking
            for _ in range(2):
                await agent.ask(ACT)
        assert len(runs(tmp_path)) == 2

    async def test_a_yes_that_is_never_told_allows_nothing_ahead(self, house, tools):
        async with house(obedient(), tools=tools) as agent:
            await agent.tell(letter(ACT, "e1"))
            asked = await first_question(agent)
            records = Approvals(agent.store, KnownPeople())
            await records.decide(asked, True, "owner", everloop.Allowance())  # and dies before it is told
            assert await agent.grants() == []
            await agent.decide(asked.id, True, allowance=everloop.Allowance())
            assert [each.id for each in await agent.grants()] == [asked.id]  # the control

    async def test_what_is_refused_decides_nothing(self, house, tools, tmp_path: Path):
        async with house(obedient(), tools=tools) as agent:
            await agent.tell(letter(ACT, "e1"))
            asked = await first_question(agent)
            for chosen in ({"host": "a.example"}, {"argv": "act *"}, {"folder": "."}):
                with pytest.raises(GrantRefused):
                    await agent.decide(asked.id, True, allowance=everloop.Allowance(**chosen))
            with pytest.raises(GrantRefused, match="a no allows nothing ahead"):
                await agent.decide(asked.id, False, allowance=everloop.Allowance())
            with pytest.raises(MailRefused, match="to decide"):
                await agent.decide(asked.id, True, "guest", everloop.Allowance())
            assert ([each.id for each in await agent.approvals()], await agent.grants()) == ([asked.id], [])
        assert runs(tmp_path) == []

    @pytest.mark.parametrize(
        ("chosen", "admin"),
        [({}, True), ({"seconds": 86_400}, True), ({"seconds": 86_401}, False), ({"any": True}, False)],
    )
    async def test_only_the_owner_allows_anything_or_for_longer_than_a_day(
        self, house, tools, chosen: dict[str, Any], admin: bool
    ):
        async with house(obedient(), tools=tools) as agent:
            await agent.tell(letter(ACT, "e1"))
            asked = await first_question(agent)
            people = Approvals(agent.store, KnownPeople(given={"ada": Role.ADMIN}))
            chosen_by_ada = people.decide(asked, True, "ada", everloop.Allowance(**chosen))
            if admin:
                assert (await chosen_by_ada)[1] is not None
            else:
                with pytest.raises(MailRefused, match="only the owner"):
                    await chosen_by_ada
            _, grant = await people.decide(asked, True, "owner", everloop.Allowance(**chosen))
            assert grant is not None

    async def test_what_somebody_gave_who_may_not_any_more_holds_no_more(self, house, tools):
        async with house(obedient(), tools=tools) as agent:
            await agent.tell(letter(ACT, "e1"))
            asked = await first_question(agent)
            people = Approvals(agent.store, KnownPeople(given={"ada": Role.ADMIN}))
            _, grant = await people.decide(asked, True, "ada", everloop.Allowance())
            assert grant is not None
            await agent.store.keep_grant(grant)
            found = [
                await Approvals(agent.store, KnownPeople(given={"ada": role})).granted(asked.wanted)
                for role in (Role.USER, Role.ADMIN)
            ]
        assert found == ["", asked.id]


async def test_which_folder_it_is_stands_in_the_log(house, tmp_path: Path):
    (tmp_path / "home/workspace/site").mkdir(parents=True)
    async with house(obedient(), settings=ASK) as agent:
        await agent.ask(touch("x", cwd="./site/"))
        row = await agent.store.session("api:default")
        (asked,) = [each for each in await agent.store.read(row.id) if isinstance(each, Asked)]
    status = os.stat(tmp_path / "home/workspace/site")
    assert [ground.name for ground in asked.grounds] == ["", "site"]
    assert asked.grounds[-1].identity.startswith(f"{status.st_dev}:{status.st_ino}:")
    assert (asked.risk.background, asked.risk.seconds) == (False, 60)
