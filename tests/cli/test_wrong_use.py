"""A wrong word on the command line is one sentence that says what to do, and exit code 2; argparse has no say in it."""

import contextlib
import io

import pytest

from everloop.cli import COMMANDS, build_parser, run
from everloop.cli.command_tree import command_nodes
from everloop.cli.parser import Parser
from everloop.cli.terminal import WrongUse

WRONG = {
    "usage foo": "everloop usage does not know what to do with 'foo'. See: everloop usage --help",
    "usage --jsn": "everloop usage has no option --jsn (did you mean --json?). See: everloop usage --help",
    "usage --size=3": "everloop usage has no option --size. See: everloop usage --help",
    "usage --json=3": "--json takes no value, unlike '3'. See: everloop usage --help",
    "usage --days x": "--days must be a number of days from 1 to 36500. See: everloop usage --help",
    "--verison": "everloop agent has no option --verison (did you mean --version?). See: everloop agent --help",
    "--foo": "everloop agent has no option --foo. See: everloop agent --help",
    "-m": "-m/--message needs a value. See: everloop agent --help",
    "-m two words": "everloop agent does not know what to do with 'words'; a message of several words is quoted. "
    "See: everloop agent --help",
    "tokens create": "NAME is missing. See: everloop tokens create --help",
    "tokens create a --scope all": "--scope cannot be 'all'; there is: 'read', 'chat', 'approve', 'admin'. "
    "See: everloop tokens create --help",
    "sessions fork a --at x": "--at must be a whole number, unlike 'x'. See: everloop sessions fork --help",
    "files list x": "everloop files list does not know what to do with 'x'. See: everloop files list --help",
    "cron add": "WHEN and TEXT are missing. See: everloop cron add --help",
    "channels add": "NAME is missing. See: everloop channels add --help",
    "--model x": "everloop agent has no option --model. See: everloop agent --help",
    "mcp add x npx -y": "everloop mcp add has no option -y; what a command is given stands behind --: NAME -- COMMAND. "
    "See: everloop mcp add --help",
    "models key": "COMMAND is missing. See: everloop models key --help",
    "logs --l info": "--l could be --lines, --level. See: everloop logs --help",
}


def told(line: str) -> tuple[int, str, str]:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        return run(line.split()), out.getvalue(), err.getvalue()


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_word_is_one_sentence_with_what_to_do(line: str):
    assert told(line) == (2, "", f"everloop: {WRONG[line]}\n")


@pytest.mark.parametrize(("line", "meant"), [("version", "--version"), ("help docter", "doctor")])
def test_a_command_that_there_is_not_is_told_with_the_one_that_was_meant(line: str, meant: str):
    name = line.split()[-1]
    asked = f"there is no command {name!r} (did you mean {meant}?). To ask the agent: everloop -m {name}"
    assert told(line) == (2, "", f"everloop: {asked}; else: everloop --help\n")


def test_every_option_says_what_it_is_for():
    nodes = command_nodes(build_parser())
    assert [(each.place, option.names) for each in nodes for option in each.options if not option.about] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_leaves_it_to_argparse(command: str):
    words = COMMANDS[command].words
    for line in [f"{command} {word} --no-such-option 1" for word in words] or [f"{command} --no-such-option"]:
        status, out, err = told(line)
        assert (status, out, err.count("\n"), "usage:" in err) == (2, "", 1, False)
        assert "--help\n" in err


def test_what_is_right_is_read_as_before():
    read = build_parser(["usage"]).parse_args(["usage", "--days", "3"])
    assert (read.command, read.days, read.json) == ("usage", 3, False)


def test_what_argparse_says_in_words_we_do_not_know_is_passed_on():
    with pytest.raises(WrongUse, match=r"^something new\. See: here --help$"):
        Parser(prog="here").error("something new")


async def test_two_ways_to_name_a_session_are_one_too_many(person):
    ran = await person.run("agent", "--continue", "-s", "cli:work", "-m", "hi")
    assert (ran.status, ran.out, ran.err) == (
        2,
        "",
        "everloop: --continue goes on with the session that was active last, -s with the one it names: say one\n",
    )


SECRET_OF_A_HOOK = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        (
            f'url = "https://x.example"\nsecrett = "{SECRET_OF_A_HOOK}"',
            4,
            "there is no setting channels.webhook.secrett",
        ),
        (f'url = "ftp://x.example"\nsecret = "{SECRET_OF_A_HOOK}"', 3, "channels.webhook.url must begin with https://"),
        ('url = "https://x.example"\nsecret = "short"', 4, "channels.webhook.secret: "),
        (
            'url = "https://x.example"\nsecret = "${NOT_HERE}"\nother = 1',
            5,
            "there is no setting channels.webhook.other",
        ),
        ('url = "ftp://x.example"\nsecret = "${NOT_HERE}"', 0, ""),  # it may be there where the gateway runs
        (f'url = "https://x.example"\nsecret = "{SECRET_OF_A_HOOK}"', 0, ""),
    ],
)
@pytest.mark.parametrize("command", [("channels",), ("agent", "-m", "/help"), ("usage",)])
async def test_what_is_wrong_in_a_channel_keeps_nothing_from_running_and_is_told_with_its_line(
    person, text, line, sentence, command
):
    person.home.mkdir(exist_ok=True)
    file = person.home / "config.toml"
    file.write_text(f"\n[channels.webhook]\n{text}\n")
    ran = await person.run(*command)
    assert (ran.status, SECRET_OF_A_HOOK in ran.err) == (0, False)
    told = f"{file}, line {line}: {sentence}"
    assert (told in ran.err) == bool(line and command != ("usage",))
    assert ("listens" in ran.err) == bool(line and command[0] == "agent")


async def test_what_is_no_table_is_one_sentence_too(person):
    person.home.mkdir(exist_ok=True)
    (person.home / "config.toml").write_text("[channels]\nwebhook = 3\n")
    ran = await person.run("channels")
    assert (ran.status, ran.err) == (
        0,
        f"webhook: {person.home / 'config.toml'}, line 2: channels.webhook must be a table of settings. Mend it: "
        "everloop channels add webhook, or in the settings file\n",
    )
