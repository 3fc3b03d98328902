"""Parts of the rich chat that need no terminal."""

import asyncio
import io
import os
import pty
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.keys import Keys

import everloop
from everloop.cli.chat.attention import Attention
from everloop.cli.chat.completion import ChatCompleter, NameSources
from everloop.cli.chat.display import ChatDisplay
from everloop.cli.chat.folding import Folded, label_before
from everloop.cli.chat.history import TypedHistory
from everloop.cli.chat.key_input import KeyParser
from everloop.cli.chat.keyboard import Keyboard
from everloop.cli.chat.mentions import begun, dragged, mentioned
from everloop.cli.chat.others import Presence
from everloop.cli.chat.status_line import StatusLine
from everloop.cli.chat.talk import Chat, KnownSettings, Meanwhile
from everloop.cli.chat.window import ChatOutput
from everloop.cli.chat_view.theme import theme_named
from everloop.cli.here import Here, end
from everloop.cli.terminal import Terminal
from everloop.core.prompt import Usage
from everloop.errors import StoreFull
from everloop.ports.conversation import Conversation
from everloop.ports.events import AnswerBegan, AnswerEnded, ToolCalled
from everloop.readings.family import family
from everloop.testing import Say, ScriptedModel, Spend, Wait


async def test_who_is_cancelled_while_something_ends_is_cancelled():
    over = asyncio.Event()

    async def looks() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await over.wait()

    looking = asyncio.ensure_future(looks())
    await asyncio.sleep(0)
    ending = asyncio.ensure_future(end(looking))
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    over.set()
    await end(looking)
    assert looking.cancelled()


class TypedBefore(AbstractContextManager["TypedBefore"]):
    """TypedLines of somebody who has typed all of it already."""

    help = begun = ""
    confirms_leaving = False

    def __init__(self, *lines: str) -> None:
        self._lines = iter(lines)

    def __exit__(self, *_: object) -> None:
        pass

    async def read(self, prompt: str) -> str | None:
        return next(self._lines, None)

    async def ask(self, prompt: str, answers: Iterable[str] = ()) -> str | None:
        return None

    def redraw(self, prompt: str) -> None:
        pass

    def listening(self, *_: object) -> AbstractContextManager[None]:
        return nullcontext()

    def on_interrupt(self, *_: object) -> AbstractContextManager[None]:
        return nullcontext()


class FullOnce:
    """A method of a store whose disk is full for one call."""

    def __init__(self, method: Callable[..., Awaitable[Any]]) -> None:
        self._method = method
        self._is_full = True

    async def __call__(self, *given: Any, **more: Any) -> Any:
        if not self._is_full:
            return await self._method(*given, **more)
        self._is_full = False
        raise StoreFull("the disk is full")


async def test_a_full_disk_ends_no_chat(tmp_path: Path):
    out, err = io.StringIO(), io.StringIO()
    async with everloop.open(tmp_path, provider=ScriptedModel([Say("there is room")])) as agent:
        agent.store.receive = FullOnce(agent.store.receive)  # type: ignore[method-assign]
        lines = TypedBefore("hi", "and now?")
        here = Here(agent, "cli:direct", Terminal(out, err), lines, False, False, set())
        assert await Chat(here).talk(None) == 0
    assert (out.getvalue(), err.getvalue()) == ("there is room\n", "everloop: the disk is full\n")


class TypedMeanwhile(TypedBefore):
    """TypedLines of somebody who types while an answer comes: by `take`."""

    def listening(self, take: Callable[..., None], *_: object) -> AbstractContextManager[None]:
        self.take = take
        return nullcontext()


class Finishing(Terminal):
    """Tells when an answer was shown."""

    def __init__(self) -> None:
        super().__init__(io.StringIO(), io.StringIO())
        self.shown: list[str] = []
        self.finished = asyncio.Event()

    def finish(self, content: str) -> None:
        super().finish(content)
        self.shown.append(content)
        self.finished.set()


async def soon() -> None:
    """Whatever needs nothing but its turn has been done."""
    for _ in range(100):
        await asyncio.sleep(0)


async def test_what_is_typed_while_a_command_is_carried_out_is_waited_for_as_well(tmp_path: Path):
    """Else whoever takes something back from the background goes on before it is there."""
    gates = {name: asyncio.Event() for name in ("/model", "/help")}
    answers = asyncio.Event()
    model = ScriptedModel([[Wait(answers), Say("hello")], Say("and again")])
    async with everloop.open(tmp_path, provider=model) as agent:
        ask = agent.ask

        async def held(line: str, *given: Any, **more: Any) -> Any:
            await gates[line].wait()
            return await ask(line, *given, **more)

        agent.ask = held  # type: ignore[method-assign]
        terminal, lines = Finishing(), TypedMeanwhile()
        here = Here(agent, "cli:direct", terminal, lines, False, False, set())
        meanwhile = Meanwhile(here, KnownSettings(agent.model), here.questions(), lambda error: None)
        running = asyncio.ensure_future(meanwhile.run("hi"))
        await model.called(1)
        lines.take("/model")
        answers.set()
        await terminal.finished.wait()
        await soon()
        lines.take("/help")
        lines.take("more")
        first, second = meanwhile._commands
        gates["/model"].set()
        await first
        await soon()
        assert (running.done(), second.done()) == (False, False)
        gates["/help"].set()
        await running
        assert (second.done(), terminal.shown) == (True, ["hello", "and again"])


def test_of_whatever_goes_on_the_seconds_are_told():
    display = ChatDisplay(lambda text: None, lambda: None, lambda: 80, theme_named("plain", False))
    display.follow(AnswerBegan("t", 1, 1))
    display.follow(AnswerEnded("t", 1, 1, True))
    display.clear()  # as for a question
    display.follow(ToolCalled("t", 1, "exec", "{}", 0))
    assert display.live(10).splitlines()[-1].partition(" ")[2] == "working · 0 s · Esc stops"


async def test_the_status_line_knows_what_a_snapshot_brings_and_nothing_of_another_conversation(tmp_path):
    model = ScriptedModel([[Say("one"), Spend(Usage(1000, 20))], [Say("two"), Spend(Usage(500, 3))]])
    async with everloop.open(tmp_path, provider=model) as agent:
        status = StatusLine(agent, "cli:direct", lambda: None)
        shown = []
        for line in ("hi", "/session snapshot here", "on", "/session restore here", "/new"):
            async for event in agent.stream(line, "cli:direct"):
                status.follow(event)
            await status.look()
            shown.append(status.text(200).removesuffix(" · cli:direct"))
    name, full = agent.model, shown[0].rpartition(" · ")[2]
    assert full.endswith("% full")
    assert shown[:2] == [f"{name} · 1.0k tokens · {full}"] * 2
    assert shown[3:] == [f"{name} · 1.0k tokens", name]


async def test_where_the_status_line_has_little_room_it_leaves_out_whole_words(tmp_path):
    async with everloop.open(tmp_path, provider=ScriptedModel([[Say("one"), Spend(Usage(1000, 20))]])) as agent:
        status = StatusLine(agent, "cli:direct", lambda: None)
        await agent.ask("hi", "cli:direct")
        await status.look()
        whole = f"{agent.model} · 1.0k tokens · cli:direct"
        assert status.text(len(whole)) == whole
        assert status.text(len(whole) - 1) == f"{agent.model} · 1.0k tokens"
        assert status.text(4) == f"{agent.model[:3]}…"


class TestMentions:
    def test_files_that_there_are_go_along_and_other_words_stay(self, tmp_path: Path):
        (tmp_path / "notes.md").touch()
        (tmp_path / "my file.txt").touch()
        (tmp_path / "folder").mkdir()
        text = 'me@example.com @someone see @notes.md, @"my file.txt" and @folder (@notes.md)'
        told = "me@example.com @someone see notes.md, my file.txt and folder (@notes.md)"
        assert mentioned(text, [tmp_path]) == (told, [tmp_path / "notes.md", tmp_path / "my file.txt"])

    async def test_a_file_is_completed_by_its_folder_and_one_of_a_person_that_there_is_not_by_nothing(
        self, tmp_path: Path
    ):
        (tmp_path / "notes.md").touch()
        completer = ChatCompleter(lambda: NameSources(folders=(tmp_path,)), lambda: ())
        for typed, found in ((f"see @{tmp_path}/no", [f"@{tmp_path}/notes.md"]), ("see @~nobody-of-this-name/", [])):
            offered = completer.get_completions_async(Document(typed), CompleteEvent())
            assert [each.text async for each in offered] == found

    @pytest.mark.parametrize("form", ["{}", "'{}'", "file://{}", " {}\n"])
    def test_a_path_that_is_dragged_here_is_a_mention(self, tmp_path: Path, form: str):
        (tmp_path / "x.png").touch()
        assert dragged(form.format(tmp_path / "x.png")) == f"@{tmp_path / 'x.png'}"

    def test_one_that_is_dragged_as_an_address_may_hold_spaces(self, tmp_path: Path):
        (tmp_path / "my 100%.png").touch()
        assert dragged(f"file://{tmp_path}/my%20100%25.png") == f'@"{tmp_path}/my 100%.png"'

    @pytest.mark.parametrize(
        ("text", "mention"),
        [
            ("see @no", "@no"),
            ("see\n@", "@"),
            ('see @"my no', '@"my no'),
            ('see @"my notes.md"', ""),
            ("me@example", ""),
            ("see @notes.md and", ""),
        ],
    )
    def test_a_mention_goes_on_over_spaces_until_its_quote_is_closed(self, text: str, mention: str):
        assert begun(text) == mention

    @pytest.mark.parametrize("text", ["", "words", "/no/such/file", "/tmp and more", "two\nlines", "'", "\0"])
    def test_any_other_paste_is_none(self, text: str):
        assert dragged(text) == ""


def test_two_pastes_have_two_labels_and_the_same_one_has_one():
    folded, one, other = Folded(), "a\n" * 20, "b\n" * 20
    labels = [folded.fold(each) for each in (one, other, one)]
    assert labels == ["[pasted 20 lines]", "[pasted 20 lines #2]", "[pasted 20 lines]"]
    assert folded.unfold(f"x {labels[0]} y {labels[1]}") == f"x {one} y {other}"
    assert [label_before(f"x {labels[1]}"), label_before("x [words]")] == [len(labels[1]), 0]


def test_a_history_that_is_damaged_or_too_long_is_read_all_the_same(tmp_path: Path):
    path = tmp_path / "history"
    path.write_bytes(b'"one"\n"half\n' + b'"x"\n' * 300_000 + b'"last"\n')
    loaded = [*TypedHistory(path, Folded()).load_history_strings()]
    assert loaded[:2] == ["last", "x"]
    assert path.stat().st_size < 600_000
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_was_typed_before_there_was_a_home_is_kept_when_there_is_one(tmp_path: Path):
    history = TypedHistory(tmp_path / "home" / "history", Folded())
    history.append_string("the first of all")
    (tmp_path / "home").mkdir()
    history.keep()
    history.append_string("another")
    assert (tmp_path / "home" / "history").read_text() == '"the first of all"\n"another"\n'


@pytest.mark.parametrize("length", [1, 3, 7, 50])
def test_a_paste_is_one_key_in_whatever_pieces_it_comes(length: int):
    pressed: list[tuple[str, str]] = []
    parser = KeyParser(lambda key: pressed.append((key.key, key.data)))
    sent = "a\x1b[200~one\rtwo \x1b[201 \x1b[201~b\x1b[200~\x1b[201~c"
    for at in range(0, len(sent), length):
        parser.feed(sent[at : at + length])
    paste = Keys.BracketedPaste
    assert pressed == [("a", "a"), (paste, "one\rtwo \x1b[201 "), ("b", "b"), (paste, ""), ("c", "c")]


def test_of_a_paste_of_megabytes_each_piece_is_looked_at_once():
    pressed: list[str] = []
    parser, kept = KeyParser(lambda key: pressed.append(key.data)), set()
    parser.feed("\x1b[200~")
    for _ in range(4_000):
        parser.feed("x" * 1_000)
        kept.add((len(parser._end), parser._paste_buffer))  # what is looked through with the next, by us and by theirs
    parser.feed("\x1b[201~")
    assert ([len(each) for each in pressed], kept) == ([4_000_000], {(6, "")})


def nothing(*_: object) -> None:
    pass


async def test_whoever_closes_the_window_at_a_question_has_not_answered_it():
    keyboard = Keyboard(turned=nothing, popped=nothing, asked=nothing, answered=nothing, came=nothing)
    asking = asyncio.ensure_future(keyboard.ask("? "))
    await asyncio.sleep(0)
    keyboard.end()
    await asyncio.sleep(0)
    assert not asking.done()
    asking.cancel()


def test_to_a_terminal_that_is_gone_nothing_is_written():
    outer, inner = pty.openpty()
    with open(inner, "w") as terminal:
        output = ChatOutput(terminal, lambda: Size(24, 80))
        os.close(outer)
        for _ in range(2):
            output.write_raw("words")
            output.flush()


def test_a_history_knows_what_was_pasted_and_how_it_is_called_in_another_chat(tmp_path: Path):
    path, one, other = tmp_path / "history", "a\n" * 20, "see [pasted 20 lines]\n" * 20
    first = Folded()
    typed = f"look: {first.fold(one)} and {first.fold(other)}"
    TypedHistory(path, first).append_string(typed)
    second = Folded()
    second.fold("b\n" * 20)  # so that the words of the first chat stand for something else in this one
    [text] = TypedHistory(path, second).load_history_strings()
    assert text == "look: [pasted 20 lines #2] and [pasted 20 lines #3]"
    assert second.unfold(f"{text}!") == first.unfold(f"{typed}!") == f"look: {one} and {other}!"


def test_a_folded_paste_stays_folded_when_the_text_around_it_is_edited():
    folded, pasted = Folded(), "a\n" * 20
    label = folded.fold(pasted)
    assert folded.fold_again(f"now {pasted} more") == f"now {label} more"
    assert folded.fold_again(f"now {pasted[2:]} more") == "[pasted 20 lines #2]"  # it was changed itself
    assert folded.fold_again("little") == "little"


def test_a_title_cannot_end_the_code_that_it_stands_in():
    sent: list[str] = []
    Attention(sent.append, "osc777", True).entitle("a\x07b\x1b]0;c\x9cd\n;e")
    assert sent == ["\x1b]2;a\\u0007b\\u001b]0 c\\u009cd e\x07"]


def test_who_was_killed_is_not_there_any_more(tmp_path: Path):
    with Presence(tmp_path, "cli:a") as one:
        (tmp_path / "terminals" / "99999999").write_text("cli:a")
        assert one.others() == 0
        assert [each.name for each in (tmp_path / "terminals").iterdir()] != []


def test_a_family_begins_with_its_first_ancestor_and_also_one_in_a_ring_ends():
    def one(id: str, parent: str, at: float) -> Conversation:
        return Conversation(id, "cli:a", id, at, at, 1, 1, parent=parent)

    known = [one("d", "b", 4), one("c", "a", 3), one("b", "a", 2), one("a", "", 1), one("z", "", 0)]
    assert [(deep, each.id) for deep, each in family(known[0], known)] == [(0, "a"), (1, "b"), (2, "d"), (1, "c")]
    ring = [one("x", "y", 1), one("y", "x", 2)]
    assert {each.id for _, each in family(ring[0], ring)} == {"x", "y"}


def test_what_is_pasted_attaches_no_file_and_a_link_leads_nowhere(tmp_path: Path):
    folder, outside = tmp_path / "workspace", tmp_path / "key"
    folder.mkdir()
    outside.write_text("secret")
    (folder / "notes.md").write_text("mine")
    (folder / "link.md").symlink_to(outside)
    folded = Folded()
    pasted = "\n".join(["a log", f"see @{outside}", *map(str, range(20))])
    text = folded.unfold(f"look at @notes.md {folded.fold(pasted)}")
    told, files = mentioned(folded.refold(text), [folder])
    assert (folded.unfold(told), files) == (f"look at notes.md {pasted}", [folder / "notes.md"])
    assert mentioned(text, [folder])[1] == [folder / "notes.md", outside]  # what would have gone along
    assert mentioned("@link.md", [folder]) == ("@link.md", [])
