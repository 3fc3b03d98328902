"""A command is plain only if the shell would make the same words of it, and harmless only if it only looks."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs
from tests.effort import examples

from everloop.core.tool import Ground, Risk
from everloop.ports.permission import Allowance, WantedCall
from everloop.readings.grants import covers, granted
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


@examples(150)
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


PUSH = WantedCall(
    *("exec", "ann", "t", "d", "exec-1"),
    Risk("high", mutates=True, argv=("git", "push", "origin")),
    (Ground("", "1:2"),),
)
TRICKS = (
    *("git push; rm x", "git push && rm x", "git push || rm x", "git push | sh", "git push & rm x", "git push > x"),
    *("git push $(rm x)", "git push `rm x`", "git push <(rm x)", "git push >(rm x)", "git push ${IFS}x"),
    *("git push $'x'", "git push\nrm x", "git push\rrm x", "git push {a,b}", "git push ~root", "git push *"),
    *("git push x#\nrm y", "GIT_SSH=x git push", "! git push", "git\u00a0push x", "git push \\\nx"),
    *("git push \u202ex", "git push 'x", "(git push x)", "env git push", "command git push", "./git push x"),
    *("/tmp/git push x", "'git push' x", "git 'push x'", "g\\it push x", "git  pushx", "gitpush x", "Git push x"),
    *("time git push x", "exec git push x", "git push x\0y", "git push\tx", "git -c x push", "git"),
)  # fmt: skip


@pytest.mark.parametrize("command", TRICKS)
def test_no_trick_of_the_shell_fits_a_pattern(command: str):
    grant = granted(PUSH, Allowance(argv="git push *"), id="g", by="ann", now=0.0)
    assert not covers(grant, structs.replace(PUSH, digest="x", risk=judged(command, ".")))


@pytest.mark.parametrize("command", ["git push", "git  push origin", "git 'push' x", "git push --force x y"])
def test_what_the_shell_would_read_as_the_same_words_does(command: str):
    grant = granted(PUSH, Allowance(argv="git push *"), id="g", by="ann", now=0.0)
    assert covers(grant, structs.replace(PUSH, digest="x", risk=judged(command, ".")))
