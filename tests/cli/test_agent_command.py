"""The command as people run it: a process of its own, a home of its own, a scripted model behind a real port."""

import asyncio
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable

import msgspec
import pytest
from tests.cli.person import SECRET, Person, Ran, asked_in, ended, is_one_plain_sentence, said_in

from everloop.core.prompt import Usage
from everloop.errors import KeyRefused, UnknownModel
from everloop.testing import Call, Fail, Line, Say, Shown, Spend, Wait
from everloop.testing.model_server import ModelServer


def echo(shown: Shown) -> Line:
    return Say(f"you said {asked_in(shown)[-1]}")


class TestOneAnswer:
    async def test_the_answer_alone_is_on_stdout(self, person, model):
        model.play([[Say(["hel", "lo"])]])
        assert await person.run("agent", "-m", "hi") == Ran(0, "hello\n", "")

    async def test_without_the_word_agent_it_is_the_same(self, person, model):
        model.play([Say("hello")])
        assert await person.run("-m", "hi") == Ran(0, "hello\n", "")

    async def test_a_dash_reads_the_message_from_stdin(self, person, model):
        model.play(echo)
        assert await person.run("agent", "-m", "-", typed="süß\nsauer".encode()) == Ran(0, "you said süß\nsauer\n", "")

    async def test_what_it_does_meanwhile_is_on_stderr(self, person, model):
        model.play([Call("list_dir", {"path": "."}), Say("empty")])
        assert await person.run("agent", "-m", "look") == Ran(0, "empty\n", 'list_dir(".")\n')

    async def test_it_remembers_what_was_said_before(self, person, model):
        model.play([Say("hello"), Say("again")])
        await person.run("agent", "-m", "one")
        await person.run("agent", "-m", "two")
        assert said_in(model.prompts[-1]) == [("user", "one"), ("assistant", "hello"), ("user", "two")]

    async def test_the_home_is_made_for_its_owner_alone(self, person, model):
        model.play([Say("hello")])
        await person.run("agent", "-m", "hi")
        assert person.home.stat().st_mode & 0o777 == 0o700

    async def test_json_is_one_object_with_the_documented_keys(self, person, model):
        model.play([[Call("list_dir", {"path": "."}), Spend(Usage(7, 2))], [Say("done"), Spend(Usage(9, 3, 4))]])
        ran = await person.run("agent", "--json", "-s", "work:1", "-m", "look")
        told = msgspec.json.decode(ran.out)
        turn = told.pop("turn")
        assert ran.status == 0
        assert turn.endswith(":1")
        assert told == {
            "content": "done",
            "session": "work:1",
            "model": "custom/scripted",
            "steps": 2,
            "tools_used": ["list_dir"],
            "unknown": [],
            "usage": {"input": 16, "output": 5, "cache_read": 4, "cache_write": 0, "cost": None},
        }

    async def test_json_without_a_message_is_a_wrong_use(self, person, model):
        sentence = "--json needs -m: it prints one answer as one object"
        assert await person.run("agent", "--json", typed=b"hi\n") == Ran(2, "", f"everloop: {sentence}\n")
        assert model.calls == 0


class TestWhatGoesWrong:
    @pytest.mark.parametrize(
        "name, says",
        [
            ("nosuch/model", "'nosuch/model' is not known"),
            ("nosuch", "write provider/model"),
            ("openai/gpt-5-mini", "needs a key: set OPENAI_API_KEY"),
        ],
    )
    async def test_a_model_that_cannot_be_had(self, person, name, says):
        person.environment["EVERLOOP_AGENTS__DEFAULTS__MODEL"] = name
        ran = await person.run("agent", "-m", "hi")
        assert (ran.status, ran.out) == (1, "")
        assert is_one_plain_sentence(ran.err)
        assert says in ran.err

    async def test_no_address(self, person):
        del person.environment["EVERLOOP_PROVIDERS__CUSTOM__API_BASE"]
        ran = await person.run("agent", "-m", "hi")
        assert (ran.status, ran.out) == (1, "")
        assert is_one_plain_sentence(ran.err)
        assert "set providers.custom.api_base" in ran.err

    @pytest.mark.parametrize(
        "error, says",
        [
            (KeyRefused(f"Incorrect API key provided: {SECRET}"), "key"),
            (UnknownModel("The model `scripted` does not exist"), "scripted"),
        ],
    )
    async def test_a_host_that_refuses(self, person, model, error, says):
        model.play([Fail(error), Say("now it works")])
        ran = await person.run("agent", "-m", "hi")
        assert (ran.status, ran.out) == (1, "")
        assert is_one_plain_sentence(ran.err)
        assert says in ran.err
        assert await person.run("agent", "-m", "again") == Ran(0, "now it works\n", "")
        assert asked_in(model.prompts[-1]) == ["hi", "again"]

    async def test_a_host_that_cannot_be_reached(self, person, model):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))  # bound and not listening: refused, and nobody else can take it
            person.environment["EVERLOOP_PROVIDERS__CUSTOM__API_BASE"] = (
                f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
            )
            ran = await person.run("agent", "-m", "hi")
        assert (ran.status, ran.out) == (1, "")
        assert is_one_plain_sentence(ran.err)
        assert "cannot be reached" in ran.err

    @pytest.mark.parametrize(
        "text, says",
        [
            ("[agents.defaults]\nmodel = \n", "line 2"),
            (
                '[agents.defaults]\nmodle = "x/y"\n',
                "line 2: there is no setting agents.defaults.modle; did you mean model",
            ),
            ('[agents.defaults]\n\nmax_tokens = "many"\n', "line 3: agents.defaults.max_tokens must be a whole number"),
        ],
    )
    async def test_a_broken_settings_file(self, person, text, says):
        person.home.mkdir(exist_ok=True)
        (person.home / "config.toml").write_text(text)
        ran = await person.run("agent", "-m", "hi")
        assert (ran.status, ran.out) == (1, "")
        assert is_one_plain_sentence(ran.err)
        assert says in ran.err
        assert str(person.home / "config.toml") in ran.err

    @pytest.mark.parametrize("place", ["/proc/everloop", "/dev/null", "/dev/null/home"])
    async def test_a_home_that_cannot_be_written(self, person, place):
        person.environment["EVERLOOP_HOME"] = place
        ran = await person.run("agent", "-m", "hi")
        assert (ran.status, ran.out) == (1, "")
        assert is_one_plain_sentence(ran.err)
        assert place in ran.err

    async def test_a_database_that_is_none(self, person):
        person.home.mkdir(exist_ok=True)
        (person.home / "everloop.db").write_bytes(b"these are my notes, please keep them" * 100)
        ran = await person.run("agent", "-m", "hi")
        assert (ran.status, ran.out) == (1, "")
        assert is_one_plain_sentence(ran.err)
        assert "left untouched" in ran.err
        assert (person.home / "everloop.db").read_bytes() == b"these are my notes, please keep them" * 100

    async def test_a_workspace_that_is_a_file(self, person):
        person.home.mkdir(exist_ok=True)
        (person.home / "workspace").write_text("")
        ran = await person.run("agent", "-m", "hi")
        assert (ran.status, ran.out) == (1, "")
        assert is_one_plain_sentence(ran.err)
        assert str(person.home / "workspace") in ran.err

    @pytest.mark.parametrize("key", ["direct", ":", "cli:", ":chat", ""])
    async def test_a_bad_session_key(self, person, key):
        ran = await person.run("agent", "-s", key, "-m", "hi")
        assert (ran.status, ran.out) == (1, "")
        assert is_one_plain_sentence(ran.err)
        assert "channel:chat" in ran.err

    @pytest.mark.parametrize(
        "typed, says",
        [
            (b"caf\xe9", "not valid UTF-8 text (byte 3)"),
            (b"  \n", "the message is empty"),
            (b"x" * 10_000_000, "the message has 10,000,000 characters; at most 200,000 are taken"),
        ],
        ids=["latin-1", "nothing", "ten megabytes"],
    )
    async def test_a_message_that_is_not_taken(self, person, model, typed, says):
        ran = await person.run("agent", "-m", "-", typed=typed)
        assert (ran.status, ran.out) == (1, "")
        assert is_one_plain_sentence(ran.err)
        assert says in ran.err
        assert model.calls == 0

    async def test_a_message_longer_than_the_model_can_read(self, person, model):
        person.environment["EVERLOOP_AGENTS__DEFAULTS__MAX_MESSAGE_CHARS"] = "20000000"
        ran = await person.run("agent", "-m", "-", typed=b"word " * 2_000_000)
        assert (ran.status, ran.out) == (1, "")
        assert is_one_plain_sentence(ran.err)
        assert "too long" in ran.err
        assert model.calls == 0

    async def test_an_invalid_byte_in_an_argument(self, person):
        ran = await person.run("agent", "-m", "caf\udce9")
        assert (ran.status, ran.out) == (1, "")
        assert is_one_plain_sentence(ran.err)
        assert "not valid UTF-8" in ran.err

    async def test_nobody_reads_the_answer(self, person, model):
        model.play([Say("hello")])
        reader, writer = os.pipe()
        os.close(reader)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "everloop", "agent", "-m", "hi"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=writer,
            stderr=asyncio.subprocess.PIPE,
            env=person.environment,
        )
        os.close(writer)
        assert (await process.communicate())[1] == b""
        assert process.returncode == 141

    async def test_a_tool_that_fails_leaves_no_traceback(self, person, model):
        model.play([Call("read_file", {"path": "none"}), Say("there is none")])
        ran = await person.run("agent", "-m", "read it")
        assert (ran.status, ran.out) == (0, "there is none\n")
        assert "Traceback" not in ran.err

    async def test_a_full_disk_loses_nothing_and_is_survived(self, person, model):
        """A home of one megabyte, in a mount of its own that nobody else sees and that is gone afterwards."""
        room = ("unshare", "--map-root-user", "--mount")
        if not shutil.which("unshare") or await _status(*room, "true"):
            pytest.skip("this machine allows no mounts in a namespace of one's own (unshare)")
        model.play(echo)
        person.home.mkdir(exist_ok=True)
        tell = f'"{sys.executable}" -m everloop agent -m'
        script = f"""
            mount -t tmpfs -o size=1m none "$EVERLOOP_HOME" || exit 99
            {tell} before; echo "status $?"
            cat /dev/zero > "$EVERLOOP_HOME/filler" 2>/dev/null
            {tell} full; echo "status $?"
            rm "$EVERLOOP_HOME/filler"
            {tell} after; echo "status $?"
        """
        process = await asyncio.create_subprocess_exec(
            *(*room, "sh", "-c", script),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=person.environment,
        )
        ran = await ended(process, None)
        assert ran.out.split("\n") == ["you said before", "status 0", "status 1", "you said after", "status 0", ""]
        assert is_one_plain_sentence(ran.err)
        assert "full" in ran.err
        assert asked_in(model.prompts[-1]) == ["before", "after"]


async def _status(*command: str) -> int:
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdin=quiet, stdout=quiet, stderr=quiet)
    return await process.wait()


class TestChat:
    async def test_piped_lines_are_answered_one_by_one(self, person, model):
        model.play(echo)
        ran = await person.run("agent", typed=b"one\n\ntwo\n")
        assert ran == Ran(0, "you said one\nyou said two\n", "")

    async def test_everloop_alone_opens_it(self, person, model):
        model.play(echo)
        assert await person.run(typed=b"hi") == Ran(0, "you said hi\n", "")

    async def test_nothing_to_do_and_nothing_said_is_no_failure(self, person):
        assert await person.run("agent") == Ran(0, "", "")
        assert await person.run("agent", "--continue") == Ran(0, "", "")

    async def test_commands_are_answered_at_once(self, person, model):
        ran = await person.run("agent", typed=b"/help\n/new\n/stop\n")
        assert ran.status == 0
        assert ran.out.startswith("everloop commands:\n/new")
        assert ran.out.endswith("New session started.\nNo active task to stop.\n")
        assert model.calls == 0

    async def test_after_new_nothing_of_before_is_shown_to_the_model(self, person, model):
        model.play(echo)
        await person.run("agent", typed=b"one\n/new\ntwo\n")
        assert said_in(model.prompts[-1]) == [("user", "two")]

    async def test_a_failure_is_told_and_the_chat_goes_on(self, person, model):
        model.play([Fail(KeyRefused("no")), Say("better")])
        ran = await person.run("agent", typed=b"one\ntwo\n")
        assert ran.out == "better\n"
        assert is_one_plain_sentence(ran.err)

    async def test_a_piped_chat_whose_last_word_was_a_failure_ends_as_one(self, person, model):
        model.play([Fail(KeyRefused("no"))])
        ran = await person.run("agent", typed=b"one\n")
        assert (ran.status, ran.out) == (1, "")

    async def test_continue_takes_the_session_that_was_active_last(self, person, model):
        model.play(echo)
        await person.run("agent", "-s", "work:a", "-m", "one")
        await person.run("agent", "-s", "work:b", "-m", "two")
        await person.run("agent", "-s", "work:a", "-m", "three")
        ran = await person.run("agent", "--continue", "--json", "-m", "four")
        assert msgspec.json.decode(ran.out)["session"] == "work:a"
        assert asked_in(model.prompts[-1]) == ["one", "three", "four"]


class TestCutOff:
    """The model holds its answer back; what was begun is ended in one way or another."""

    @pytest.fixture
    def held(self, model: ModelServer) -> Callable[[], None]:
        """The next answers break off in the middle, until the returned function is called."""
        model.play(lambda shown: [Say("half "), Wait(model.gates["go"]), Say("whole")])
        return model.gates["go"].set

    async def begin(self, person: Person, model: ModelServer, *arguments: str) -> asyncio.subprocess.Process:
        calls = model.calls
        process = await person.start("agent", *arguments)
        await model.called(calls + 1)
        return process

    async def kill(self, process: asyncio.subprocess.Process) -> None:
        process.kill()
        assert (await ended(process)).out == ""

    async def test_a_killed_turn_is_finished_at_the_next_opening_and_shown_once(self, person, model, held):
        await self.kill(await self.begin(person, model, "-m", "hi"))
        held()
        assert await person.run("agent") == Ran(0, "half whole\n", "")
        assert await person.run("agent") == Ran(0, "", "")
        assert [said_in(prompt) for prompt in model.prompts] == [[("user", "hi")], [("user", "hi")]]

    async def test_before_one_answer_it_is_told_on_stderr(self, person, model, held):
        await self.kill(await self.begin(person, model, "-m", "hi"))
        held()
        assert await person.run("agent", "-m", "and?") == Ran(0, "half whole\n", "half whole\n")
        assert said_in(model.prompts[-1]) == [("user", "hi"), ("assistant", "half whole"), ("user", "and?")]

    async def test_continue_finds_the_session_that_was_cut_off(self, person, model, held):
        await self.kill(await self.begin(person, model, "-s", "work:a", "-m", "hi"))
        held()
        assert await person.run("agent", "--continue") == Ran(0, "half whole\n", "")

    async def test_an_answer_that_nobody_saw_is_shown_at_the_next_opening(self, person, model, held):
        await self.kill(await self.begin(person, model, "-m", "hi"))
        other = await self.begin(person, model, "-s", "work:a")  # finishes what lies around, whoever it is for
        held()
        assert await ended(other) == Ran(0, "", "")
        assert model.calls == 2
        assert await person.run("agent") == Ran(0, "half whole\n", "")
        assert await person.run("agent") == Ran(0, "", "")
        assert model.calls == 2

    async def test_ctrl_c_stops_the_turn_and_not_the_conversation(self, person, model, held):
        process = await self.begin(person, model, "-m", "hi")
        process.send_signal(signal.SIGINT)
        ran = await ended(process)
        told = ran.err.removeprefix("half \n")  # as far as it had come
        assert (ran.status, ran.out, told) == (130, "", "everloop: stopped; what was said and done so far stays\n")
        await model.left(1)
        held()
        assert await person.run("agent") == Ran(0, "", "")
        assert await person.run("agent", "-m", "go on") == Ran(0, "half whole\n", "")

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    async def test_a_process_that_is_told_to_leave_puts_the_work_down(self, person, model, held, number):
        person.environment["EVERLOOP_AGENTS__SHUTDOWN_SECONDS"] = "0.1"
        process = await self.begin(person, model, "-m", "hi")
        process.send_signal(number)
        ran = await ended(process)
        assert ran.status == 128 + number or ran.status == -number
        assert ran.out == ""
        assert "Traceback" not in ran.err
        held()
        assert await person.run("agent") == Ran(0, "half whole\n", "")


async def test_what_is_set_and_does_nothing_yet_is_said_at_the_start(person, model):
    model.play(echo)
    person.home.mkdir(exist_ok=True)
    (person.home / "config.toml").write_text('[channels.nobodys]\ntoken = "123:abc"\n')
    ran = await person.run("agent", "-m", "hi")
    assert ran.err == "channels.nobodys is set, but there is no such channel: nothing listens there.\n"


class TestWordsThatThereAreNot:
    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (
                ["what is 2+2"],
                "there is no command 'what is 2+2'. To ask the agent: everloop -m 'what is 2+2'; else: everloop --help",
            ),
            (
                ["modles", "list"],
                "there is no command 'modles' (did you mean models?). "
                "To ask the agent: everloop -m 'modles list'; else: everloop --help",
            ),
            (
                ["tokens", "creat"],
                "there is no `everloop tokens creat` (did you mean create?). There is: list, create, revoke",
            ),
            (["files", "foo", "--json"], "there is no `everloop files foo`. There is: list, show, get, remove, clean"),
        ],
    )
    async def test_one_sentence_names_the_right_one(self, person, model, arguments: list[str], says: str):
        assert await person.run(*arguments) == Ran(2, "", f"everloop: {says}\n")
        assert model.calls == 0

    @pytest.mark.parametrize(
        ("arguments", "shown"), [(["help"], "COMMAND"), (["help", "usage"], "--days"), (["sessions", "help"], "resume")]
    )
    async def test_help_is_a_word_too(self, person, arguments: list[str], shown: str):
        ran = await person.run(*arguments)
        assert (ran.status, shown in ran.out) == (0, True)

    async def test_what_a_list_is_about_may_follow_it(self, person, model):
        assert (await person.run("models", "custom")).status == 0

    async def test_a_slash_word_that_there_is_not_costs_nothing(self, person, model):
        model.play([Say("a path")])
        ran = await person.run("agent", "-m", "/context")
        assert ran.out.startswith("There is no /context. ")
        assert model.calls == 0
        assert (await person.run("agent", "-m", "/etc/hosts is broken")).out == "a path\n"


async def test_where_stdout_has_few_letters_an_answer_is_shown_with_those_that_it_has(
    person: Person, model: ModelServer
):
    model.play([Say("a → b")])
    person.environment["PYTHONIOENCODING"] = "ascii"
    ran = await person.run("-m", "hi")
    assert (ran.status, ran.out, ran.err) == (0, "a \\u2192 b\n", "")
