"""The command `everloop`. `--version` is answered before anything else is loaded."""

import sys


def main() -> int:
    if sys.argv[1:] == ["--version"]:
        from . import __version__

        sys.stdout.write(f"everloop {__version__}\n")
        return 0
    from .cli.screen import guard_streams

    guard_streams()
    from .cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
