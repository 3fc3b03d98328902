"""How risky a shell command looks, for the policy and for the person who is asked.

This is no wall: the sandbox is. A command is taken for plain only if it is a list of words to the shell and nothing
more; of anything else no one word is believed.
"""

import re
import shlex

from ..core.tool import Level, Risk

_SHELL = re.compile(r"[;&|<>$`(){}*?\[\]~#!\\]")
_QUOTES = re.compile(r"\\\n|['\"\\]")
_PRIVILEGED = {"sudo", "su", "doas", "pkexec", "chroot", "mount", "umount", "insmod", "modprobe", "setcap", "unshare"}
_RUINOUS = {
    *("rm", "shred", "dd", "mkfs", "truncate", "wipefs", "kill", "killall", "pkill", "shutdown", "reboot", "-delete"),
}  # fmt: skip
# What can also write a file or run a program has no place here: sort -o, uniq IN OUT, tree -o, file -C. Nor has git,
# which runs whatever the folder's own .git/config names.
_LOOKS = {
    *("ls", "cat", "head", "tail", "wc", "grep", "rg", "find", "stat", "du", "df", "pwd", "date", "echo", "which"),
    *("cut", "diff", "cmp", "sha256sum", "uname", "whoami", "id", "printf", "true"),
}
_LOOKS_UNLESS = {
    "find": re.compile(r"-(exec|ok|delete|fprint|fls)"),
    "rg": re.compile(r"--(pre|hostname)"),
    "date": re.compile(r"-\w*s|--s"),
}
_GIT_RUINOUS = {"push", "reset", "clean", "filter-branch", "gc", "reflog"}


def words_of(command: str) -> tuple[str, ...]:
    """The words of a plain command; () of one that is more to the shell than a list of words."""
    # What a person cannot see, or takes for a space, is nothing to compare with a pattern.
    if not command.isprintable() or _SHELL.search(command):
        return ()
    try:
        words = tuple(shlex.split(command))
    except ValueError:
        return ()
    return () if not words or "=" in words[0] else words


def judged(command: str, folder: str) -> Risk:
    """The risk of a command. What cannot be read is taken to change something."""
    words, place = words_of(command), _folder(folder)
    if _only_looks(words):
        return Risk(argv=words, folder=place)
    names = _names(command)
    privileged = bool(names & _PRIVILEGED)
    ruinous = bool(names & _RUINOUS) or ("git" in names and bool(names & _GIT_RUINOUS))
    level: Level = "high" if privileged or ruinous else "medium"
    return Risk(level, mutates=True, privileged=privileged, argv=words, folder=place)


def _names(command: str) -> set[str]:
    """All that may name a program, also where quotes stand between its letters."""
    words = re.findall(r"[\w./-]+", f"{command}\n{_QUOTES.sub('', command)}")
    return {word.rpartition("/")[2] for word in words}


def _only_looks(words: tuple[str, ...]) -> bool:
    if not words or words[0] not in _LOOKS:
        return False
    unless = _LOOKS_UNLESS.get(words[0])
    return not (unless and any(map(unless.match, words[1:])))


def _folder(cwd: str) -> str:
    """Where it runs, from the workspace on. An absolute path stays one, and is in no folder that was allowed ahead."""
    parts = [part for part in cwd.split("/") if part not in ("", ".")]
    return "/" * cwd.startswith("/") + "/".join(parts)
