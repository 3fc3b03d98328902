"""How many everyday tasks the embedded model solves, and how long it takes: each by the command, as a user types it.

    python bench/embedded.py [--set tuned|aside|stranger] [--only NAME,KIND,…] [--models FOLDER] [--home FOLDER]
                             [--source SRC] [--quiet]

Every task has a new home under the same path, with its files in the workspace; every turn is a process of its own, one
after the other. FOLDER holds the weights (1.1 GB), as `~/.everloop/models` does, and gets the states of what was read
before: the first task of a new version is slower for that, so it is preceded by one question that does not count.
SRC is the source tree to be measured, for a comparison with another version.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from everyday import aside, stranger, tuned
from everyday.task import Folder, Outcome, Task

SETS = {"tuned": tuned.TASKS, "aside": aside.TASKS, "stranger": stranger.TASKS}
LIMIT = 120.0  # seconds for a turn


class Ran(Struct, frozen=True):
    task: Task
    problem: str
    seconds: float
    answers: tuple[str, ...]


class Bench:
    def __init__(self, home: Path, models: Path, source: Path | None) -> None:
        self._home, self._models, self._source = home, models, source

    def run(self, task: Task) -> Ran:
        self._lay_out(task.files)
        begun = time.monotonic()
        answers = tuple(self._ask(text) for text in task.says)
        seconds = time.monotonic() - begun
        outcome = Outcome(answers, task.files, self._files())
        problem = "; ".join(filter(None, (check(outcome) for check in task.checks)))
        return Ran(task, problem, seconds, answers)

    def warm(self) -> None:
        self._lay_out({})
        self._ask("Hello!")

    def _lay_out(self, files: Folder) -> None:
        shutil.rmtree(self._home, ignore_errors=True)
        workspace = self._home / "workspace"
        workspace.mkdir(parents=True)
        (self._home / "models").symlink_to(self._models)
        for path, content in files.items():
            (workspace / path).parent.mkdir(parents=True, exist_ok=True)
            (workspace / path).write_text(content)

    def _ask(self, text: str) -> str:
        """What the command says; its standard error too where there is no answer."""
        environ = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        environ |= {"EVERLOOP_HOME": str(self._home), "EVERLOOP_AGENTS__DEFAULTS__MODEL": "embedded"}
        if self._source:
            environ["PYTHONPATH"] = str(self._source)
        command = [sys.executable, "-m", "everloop", "agent", "-m", text]
        try:
            done = subprocess.run(
                command,
                env=environ,
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return f"[no answer within {LIMIT:g} s]"
        return done.stdout.strip() or f"[{done.stderr.strip()[-300:]}]"

    def _files(self) -> Folder:
        root = self._home / "workspace"
        paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
        return {str(path.relative_to(root)): path.read_text(errors="replace") for path in paths}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=SETS, help="one half; else both")
    parser.add_argument("--only", default="", help="names of tasks or kinds, with commas")
    parser.add_argument("--models", type=Path, default=Path.home() / ".everloop" / "models")
    parser.add_argument("--home", type=Path, help="where the homes are made; else a temporary folder")
    parser.add_argument("--source", type=Path, help="the source tree of the version to measure")
    parser.add_argument("--quiet", action="store_true", help="only the rates")
    chosen = parser.parse_args()
    if not any(chosen.models.glob("*.gguf")):
        parser.exit(2, f"There are no weights in {chosen.models}; `everloop agent -m hello` fetches them.\n")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench((chosen.home or Path(folder)) / "home", chosen.models.resolve(), chosen.source)
        bench.warm()
        for name, tasks in SETS.items():
            if chosen.set in (None, name):
                measure(name, bench, _picked(tasks, chosen.only), chosen.quiet)


def measure(name: str, bench: Bench, tasks: Sequence[Task], quiet: bool) -> None:
    done: list[Ran] = []
    for task in tasks:
        done.append(bench.run(task))
        if not quiet:
            _tell(done[-1])
    if done:
        right = [ran for ran in done if not ran.problem]
        tools = [ran for ran in done if ran.task.tool]
        solved = sum(not ran.problem for ran in tools)
        say(f"{name}: {len(right)} of {len(done)} solved ({100 * len(right) / len(done):.0f} %)")
        say(f"  {solved} of {len(tools)} of those that need a tool")
        say(
            f"  median {statistics.median(ran.seconds for ran in done):.1f} s, all {sum(r.seconds for r in done):.0f} s"
        )
        for kind in dict.fromkeys(ran.task.kind for ran in done):
            of = [ran for ran in done if ran.task.kind == kind]
            say(f"  {kind}: {sum(not ran.problem for ran in of)} of {len(of)}")


def _picked(tasks: Sequence[Task], only: str) -> list[Task]:
    wanted = set(filter(None, only.split(",")))
    return [task for task in tasks if not wanted or {task.name, task.kind} & wanted]


def _tell(ran: Ran) -> None:
    say(f"{'FAIL' if ran.problem else 'ok  '} {ran.task.kind}/{ran.task.name} {ran.seconds:.1f} s")
    if ran.problem:
        say(f"     asked:    {ran.task.says[-1]}\n     answered: {ran.answers[-1][:300]!r}")
        say(f"     wrong:    {ran.problem}")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
