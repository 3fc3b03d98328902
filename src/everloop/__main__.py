"""The command `everloop`. `--version` is answered before anything else is loaded."""

import os
import resource
import sys


def main() -> int:
    leave_no_core()
    take_standard_places()
    if sys.argv[1:] == ["--version"]:
        from . import __version__

        sys.stdout.write(f"everloop {__version__}\n")
        return 0
    from .cli.screen import guard_streams

    guard_streams()
    from .cli import run

    return run(sys.argv[1:])


def leave_no_core() -> None:
    """Should this process crash, no file is to hold its keys, and no program is to be handed its memory.

    A limit of 1 byte is no dump at all, and unlike 0 it also keeps the kernel from piping one to a program. Where 0 is
    the limit already, what is piped holds no memory. PR_SET_DUMPABLE would do it too; but that takes a library that is
    slow to load, and keeps the owner's debugger out.
    """
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    most = 1 if hard == resource.RLIM_INFINITY else min(1, hard)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    try:
        with open("/proc/self/coredump_filter", "w") as file:
            file.write("0")
    except OSError:  # no Linux, or no /proc
        return


def take_standard_places() -> None:
    """Where somebody has closed a standard stream (`<&-`), the next file to be opened would stand in its place: the
    event loop ends the process for that, and what prints would write into a database."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)  # takes the lowest that is free
            setattr(sys, name, os.fdopen(number, mode))


if __name__ == "__main__":
    sys.exit(main())
