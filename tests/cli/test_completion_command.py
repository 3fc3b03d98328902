"""`everloop completion`: the scripts, in the real shells. Nothing that they do starts a program."""

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.cli.at_terminal import AtTerminal
from tests.cli.person import Person

from everloop import __version__
from everloop.cli import COMMANDS
from everloop.cli.completion import nodes
from everloop.cli.completion_scripts import SCRIPTS

BASH = """
PATH=/nowhere
source {script}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_everloop
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# What zsh's own completion would be handed is printed in its place.
ZSH = """
PATH=/nowhere
compdef() {{ }}
source {script}
_describe() {{ print -rl -- "${{(@)${{(@P)argv[-1]}}%%:*}}" }}
_files() {{ print -r files }}
compadd() {{ shift; print -rl -- "$@" }}
words=({words}); CURRENT=$#words
_everloop
"""
FISH = """
set PATH /nowhere
source {script}
complete -C {line}
"""
TYPED = {
    ("config", "p"): {"path"},
    ("models", "key", ""): {"set", "list", "forget", "-h", "--help"},
    ("agent", "--approvals", ""): {"ask", "allow", "deny"},
    ("config", "get", "agents.defaults.mod"): {"agents.defaults.model"},
    ("completion", "z"): {"zsh"},
    ("models", "login", ""): {"github-copilot", "openai-codex", "-h", "--help"},
    ("--appr",): {"--approvals"},
    ("agent", "-s", "x", "--js"): {"--json"},
    ("service", "install", "--dry"): {"--dry-run"},
}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    tree = nodes()
    for shell, script in SCRIPTS.items():
        (folder / shell).write_text(script(tree, __version__))
    return folder


async def said_by(shell: str, program: str) -> set[str]:
    pipe = asyncio.subprocess.PIPE
    flags = {"bash": ("--norc",), "zsh": ("-f",), "fish": ("--no-config",)}[shell]
    process = await asyncio.create_subprocess_exec(shell, *flags, "-c", program, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    assert err.decode() == ""
    return {line.split("\t")[0] for line in out.decode().splitlines() if line}


def words_of(typed: tuple[str, ...]) -> str:
    return " ".join(f"'{word}'" for word in ("everloop", *typed))


@pytest.mark.parametrize("typed", TYPED, ids=" ".join)
async def test_bash_completes(scripts: Path, typed: tuple[str, ...]):
    found = await said_by("bash", BASH.format(script=scripts / "bash", words=words_of(typed)))
    assert found == TYPED[typed]


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
@pytest.mark.parametrize("typed", TYPED, ids=" ".join)
async def test_zsh_completes(scripts: Path, typed: tuple[str, ...]):
    found = await said_by("zsh", ZSH.format(script=scripts / "zsh", words=words_of(typed)))
    assert {word for word in found if word.startswith(typed[-1])} == TYPED[typed]


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
async def test_somebody_at_zsh_has_words_completed_as_well_as_options(scripts: Path, person: Person):
    """By zsh's own completion, which has a mind of its own about what to offer."""
    (scripts / "_everloop").write_text((scripts / "zsh").read_text())
    async with AtTerminal(person, program=("zsh", "-f"), term="xterm") as seat:
        seat.type(
            f"fpath+={scripts}; autoload -Uz compinit; compinit -u -D; everloop() print -r \"[$*]\"; print re''ady"
        )
        await seat.sees("ready")
        for typed, whole in (
            ("everloop doc", "doctor"),
            ("everloop config get agents.defaults.mod", "config get agents.defaults.model"),
            ("everloop agent --appr", "agent --approvals"),
        ):
            seat.type(f"{typed}\t")
            await seat.sees(f"[{whole}]")
        seat.type("exit")
        await seat.ends()


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
@pytest.mark.parametrize("typed", TYPED, ids=" ".join)
async def test_fish_completes(scripts: Path, typed: tuple[str, ...]):
    line = "'" + " ".join(("everloop", *typed)) + "'"
    found = await said_by("fish", FISH.format(script=scripts / "fish", line=line))
    assert found == {word for word in TYPED[typed] if typed[-1] or not word.startswith("-")}


async def test_an_option_with_a_value_of_ones_own_is_left_to_the_shell(scripts: Path):
    words = words_of(("agent", "-f", ""))
    assert await said_by("bash", BASH.format(script=scripts / "bash", words=words)) == set()


@pytest.mark.parametrize("shell", SCRIPTS)
def test_every_command_and_its_words_are_in_the_script(scripts: Path, shell: str):
    text = (scripts / shell).read_text()
    wanted = [f" {name} {word}" for name, row in COMMANDS.items() for word in row.words]
    assert [each for each in (*(f" {name}" for name in COMMANDS), *wanted) if each not in text] == []


async def test_the_command_prints_it_and_refuses_other_shells(person):
    ran = await person.run("completion", "bash")
    assert (ran.status, ran.out, ran.err) == (0, SCRIPTS["bash"](nodes(), __version__), "")
    ran = await person.run("completion", "tcsh")
    assert (ran.status, ran.err) == (
        2,
        "everloop: SHELL cannot be 'tcsh'; there is: 'bash', 'zsh', 'fish'. See: everloop completion --help\n",
    )
