"""A command is plain only if the shell would make the same words of it, and harmless only if it only looks."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from everloop.core.approval import Grant
from everloop.core.tool import Risk
from everloop.tools.exec_risk import judged, words_of

METACHARACTERS = ";&|<>$`(){}*?[]~#!\\\n\r\0\t\v\f\u0085\u2028"
UNSEEN = "\u00a0\u2003\u3000\u200b\u202e\ufeff\x1b\u00ad"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ls", ("ls",)),
        ("ls -la  src", ("ls", "-la", "src")),
        ("git commit -m 'two words'", ("git", "commit", "-m", "two words")),
        ("l's' \"-l\"a", ("ls", "-la")),
        ("echo ''", ("echo", "")),
        ("cat жук.txt", ("cat", "жук.txt")),
        ("make CFLAGS=-O2", ("make", "CFLAGS=-O2")),
        ("", ()),
        ("   ", ()),
        ("echo 'open", ()),
        ("PATH=/tmp ls", ()),
        ("'PATH=/tmp' ls", ()),
        ("ls; rm x", ()),
        ("ls\nrm x", ()),
        ("ls\rrm x", ()),
        ("ls $(rm x)", ()),
        ("ls `rm x`", ()),
        ("ls && rm x", ()),
        ("ls | sh", ()),
        ("ls > x", ()),
        ("ls <(rm x)", ()),
        ("ls $HOME", ()),
        ("ls ~", ()),
        ("ls *", ()),
        ("ls {a,b}", ()),
        ("l\\s", ()),
        ("! ls", ()),
        ("ls # rm", ()),
        ("ls '; rm x'", ()),  # harmless, but who is to see that at a glance
        ("ls\u00a0-la", ()),
        ("ls\u3000-la", ()),
        ("ls\tx", ()),
        ("ls \u202ex", ()),
    ],
)
def test_only_a_list_of_words_is_plain(command: str, words: tuple[str, ...]):
    assert words_of(command) == words


@given(st.text(max_size=20), st.sampled_from(METACHARACTERS + UNSEEN), st.text(max_size=20))
def test_what_holds_a_letter_that_means_something_to_the_shell_is_never_plain(before: str, letter: str, after: str):
    risk = judged(before + letter + after, ".")
    assert (risk.argv, risk.mutates, risk.level in ("medium", "high")) == ((), True, True)


BASH = shutil.which("bash") or "/bin/sh"


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("empty")


@settings(max_examples=150)
@given(st.text("ab '\"=-%@+,:^.é\u00a0\t\n\\$;", max_size=16).map(lambda text: f"a{text}"))
@example("a'b'\"c\" '' d")
@example("a=b")
@example("a%b ^c^d @e +f")
def test_the_shell_makes_the_same_words_of_what_is_plain(empty: Path, command: str):
    words = words_of(command)
    if not words:
        return
    # The words are given to a command that prints them, in a folder with nothing in it and with no program to be found.
    ran = subprocess.run(
        [BASH, "-c", f"printf '%s\\0' {command}"],
        capture_output=True,
        cwd=empty,
        env={"PATH": "", "LC_ALL": "C.UTF-8"},
    )
    assert (ran.returncode, ran.stderr, os.listdir(empty)) == (0, b"", [])
    assert tuple(ran.stdout.decode().split("\0")[:-1]) == words


def test_the_shell_makes_other_words_of_what_is_not_plain(empty: Path):
    """Negative control: the test above would see a difference."""
    ran = subprocess.run([BASH, "-c", "printf '%s\\0' a$((1+1))"], capture_output=True, cwd=empty)
    assert ran.stdout == b"a2\0"


LOW, MEDIUM, HIGH = (lambda argv: Risk(argv=argv), lambda argv: Risk("medium", mutates=True, argv=argv),
                     lambda argv: Risk("high", mutates=True, argv=argv))  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        *("ls -la", "cat a.txt", "grep -rn sudo .", "echo rm", "find . -name x.py", "diff a b", "date -u", "rg fox"),
        *("head -n 3 a", "sha256sum a", "printf x"),
    ],
)
def test_what_only_looks_is_low(command: str):
    assert judged(command, ".") == LOW(tuple(command.split()))


@pytest.mark.parametrize(
    "command",
    [
        *("touch a", "make", "python3 x.py", "pip install x", "env ls", "time ls", "xargs ls", "./ls", "/tmp/ls", "Ls"),
        *("sort -uo out in", "sort --compress-program=./x a", "uniq a b", "tree -o x", "file -C", "rg --pre ./x y"),
        *(
            "rg --pre=./x y",
            "find . -fprintf x y",
            "find . -okdir x",
            "find . -execdir x",
            "date -us x",
            "date --set=x",
        ),
        *("git status", "git log --output=x", "git -c core.pager=x log", "git diff --ext-diff"),
    ],
)
def test_what_may_change_something_is_medium(command: str):
    assert judged(command, ".") == MEDIUM(tuple(command.split()))


@pytest.mark.parametrize(
    "command",
    [
        *("rm -r x", "/bin/rm x", "env rm x", "nohup rm x", "timeout 5 rm x", "xargs rm", "dd if=a of=b", "kill 1"),
        *("find . -exec rm x", "find . -delete", "git push", "git reset --hard", "git -C x clean -fd"),
    ],
)
def test_what_may_ruin_something_is_high(command: str):
    assert judged(command, ".") == HIGH(tuple(command.split()))


@pytest.mark.parametrize(
    "command",
    ["ls; rm x", "A=1 rm x", "sh -c 'cd / && rm x'", "true\nrm x", "r''m x; y", "r\\m x", "r\\\nm x", "x=$(rm y)"],
)
def test_what_is_hidden_in_more_than_a_list_of_words_is_high(command: str):
    assert judged(command, ".") == HIGH(())


@pytest.mark.parametrize(
    "command", ["sudo ls", "s'u'do ls", 'su""do ls', "/usr/bin/sudo -n ls", "env sudo ls", "doas x", "unshare -r sh"]
)
def test_what_wants_privileges_is_high_and_says_so(command: str):
    risk = judged(command, ".")
    assert risk == Risk("high", mutates=True, privileged=True, argv=words_of(command))
    assert risk.argv


@pytest.mark.parametrize("command", ["s\\udo x", "echo x | sudo tee y", "x && sudo y", "sh -c 'sudo x > y'"])
def test_what_hides_that_it_wants_privileges_says_so_too(command: str):
    assert judged(command, ".") == Risk("high", mutates=True, privileged=True)


@pytest.mark.parametrize(
    ("cwd", "folder"),
    [(".", ""), ("", ""), ("a/b", "a/b"), ("./a//b/", "a/b"), ("/srv/a", "/srv/a"), ("a/../b", "a/../b")],
)
def test_the_folder_is_told_from_the_workspace_on(cwd: str, folder: str):
    assert judged("ls", cwd) == Risk(argv=("ls",), folder=folder)


def test_an_absolute_folder_lies_in_none_that_was_allowed_ahead():
    """With the workspace in /srv/work, a grant for its folder `srv` is none for all of it."""
    grant = Grant("g", "ann", "ann", "exec", ("make", "*"), folder="srv")
    assert grant.fits("exec", judged("make all", "srv/site"))
    assert not grant.fits("exec", judged("make all", "/srv/work"))


def test_a_reason_is_one_line_of_what_can_be_seen():
    why = "to look\nMay I run ls\n\u202e(risk: low)\x1b[2K" + "x" * 400
    assert judged("ls", ".", why).why == ("to look May I run ls (risk: low)[2K" + "x" * 400)[:300]
