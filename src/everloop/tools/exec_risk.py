"""How risky a shell command looks, for the policy and for the person who is asked.

This is no wall: the sandbox is. A command is taken for plain only if it is a list of words to the shell and nothing
more; of anything else no one word is believed.
"""

import re
import shlex

from everloop.core.tool import Level, Risk

_SHELL = re.compile(r"[;&|<>$`(){}\n\r*?\[\]~#!\\]")
_PRIVILEGED = {"sudo", "su", "doas", "pkexec", "chroot", "mount", "umount", "insmod", "modprobe", "setcap", "unshare"}
_RUINOUS = {"rm", "shred", "dd", "mkfs", "truncate", "wipefs", "kill", "killall", "pkill", "shutdown", "reboot"}
_LOOKS = {
    *("ls", "cat", "head", "tail", "wc", "grep", "rg", "find", "file", "stat", "du", "df", "pwd", "date", "echo"),
    *("which", "sort", "uniq", "cut", "diff", "cmp", "sha256sum", "tree", "uname", "whoami", "id", "printf", "true"),
}  # fmt: skip
_LOOKS_ONLY_IF = {
    "find": re.compile(r"-(exec|execdir|ok|okdir|delete|fprint\w*|fls)\b"),
    "sort": re.compile(r"-o|--output"),
}
_GIT_LOOKS = {"status", "log", "diff", "show", "blame", "ls-files", "rev-parse", "describe", "shortlog"}
_GIT_RUINOUS = {"push", "reset", "clean", "filter-branch", "gc", "reflog"}


def words_of(command: str) -> tuple[str, ...]:
    """The words of a plain command; () of one that is more to the shell than a list of words."""
    if _SHELL.search(command):
        return ()
    try:
        words = tuple(shlex.split(command))
    except ValueError:
        return ()
    return () if not words or "=" in words[0] else words


def judged(command: str, folder: str, why: str = "") -> Risk:
    """The risk of a command. What cannot be read is taken to change something."""
    words, place = words_of(command), _folder(folder)
    if _only_looks(words):
        return Risk(why=why, argv=words, folder=place)
    names = {word.rpartition("/")[2] for word in re.findall(r"[\w./-]+", command)}
    privileged = bool(names & _PRIVILEGED)
    ruinous = bool(names & _RUINOUS) or ("git" in names and bool(names & _GIT_RUINOUS))
    level: Level = "high" if privileged or ruinous else "medium"
    return Risk(level, mutates=True, privileged=privileged, why=why, argv=words, folder=place)


def _only_looks(words: tuple[str, ...]) -> bool:
    if not words:
        return False
    name = words[0]
    if name == "git":
        return len(words) > 1 and words[1] in _GIT_LOOKS and not any(word.startswith("--output") for word in words)
    suspicious = _LOOKS_ONLY_IF.get(name)
    return name in _LOOKS and not (suspicious and any(map(suspicious.match, words[1:])))


def _folder(cwd: str) -> str:
    return "/".join(part for part in cwd.split("/") if part not in ("", "."))
