"""A Containerfile whose steps are run one by one, where no image can be pulled: in the place of the image there is this
machine, which nothing of it can change, with folders of its own where the file puts something."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
OWN = ("/app", "/data")  # what the steps write
PYTHON = "/python"  # the image's own, of which ours takes the place


class Instruction(NamedTuple):
    name: str
    words: str

    @property
    def command(self) -> list[str]:
        """Of those that may be a list, or a line for a shell."""
        words = re.sub(r"--\w[\w-]*=\S+ ", "", self.words).removeprefix("CMD ")
        return json.loads(words) if words.startswith("[") else ["/bin/sh", "-c", words]


def instructions() -> list[Instruction]:
    lines = (ROOT / "Containerfile").read_text().splitlines()
    return [Instruction(*line.split(" ", 1)) for line in lines if line and not line.startswith("#")]


class Image:
    """What the steps have made so far: folders, an environment, a user."""

    def __init__(self, folder: Path, **arguments: str) -> None:
        self.folder = folder
        self.environment = {"PATH": f"{PYTHON}/bin:/usr/bin:/bin:/usr/sbin"}
        self.user = ""
        self.entrypoint: list[str] = []
        self.command: list[str] = []
        self.health: list[str] = []
        self._arguments = arguments
        for own in OWN:
            (folder / own.strip("/")).mkdir()

    def take(self, step: Instruction) -> None:
        match step.name:
            case "FROM" | "VOLUME" | "EXPOSE":
                pass
            case "ARG":
                name, _, default = step.words.partition("=")
                self.environment[name] = self._arguments.get(name, default)
            case "ENV":
                self.environment |= dict(pair.split("=", 1) for pair in shlex.split(step.words))
            case "COPY":
                self._copy(*step.words.split())
            case "RUN":
                self.run(self._unharmful(step.command))
            case "USER":
                self.user = step.words
            case "HEALTHCHECK":
                self.health = step.command
            case "ENTRYPOINT":
                self.entrypoint = step.command
            case "CMD":
                self.command = step.command
            case _:
                raise AssertionError(f"nobody has said what {step.name} is here")

    def run(self, command: list[str], **environment: str) -> str:
        """What it says. Raises AssertionError with what it has said of what went wrong."""
        done = subprocess.run(self.inside(command, **environment), capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stderr[-2000:]}"
        return done.stdout

    def inside(self, command: list[str], **environment: str) -> list[str]:
        wanted = {**self._of_this_machine(), **self.environment, **environment}
        wanted["PATH"] = f"{wanted['PATH']}:{PYTHON}/bin"
        given = [word for name, value in wanted.items() for word in ("--setenv", name, value)]
        user, _, group = self.user.partition(":")
        become = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"] if user else []
        return [*self._walls(), "--clearenv", *given, "--", *become, *command]

    def _walls(self) -> list[str]:
        words = ["bwrap", "--die-with-parent", "--cap-add", "ALL", "--tmpfs", "/", "--proc", "/proc", "--dev", "/dev"]
        for place in map(Path, sorted(f"/{name}" for name in os.listdir("/"))):
            if place.is_symlink():
                words += ["--symlink", os.readlink(place), str(place)]
            elif place.is_dir() and place.name not in ("proc", "dev", "tmp", "app", "data", "src"):
                words += ["--ro-bind", str(place), str(place)]
        words += [
            "--perms",
            "1777",
            "--tmpfs",
            "/tmp",
            "--ro-bind",
            sys.base_prefix,
            PYTHON,
            "--ro-bind",
            str(ROOT),
            "/src",
        ]
        for own in OWN:
            words += ["--bind", str(self.folder / own.strip("/")), own]
        return [*words, "--chdir", "/app"]

    def _copy(self, *words: str) -> None:
        source, target = words[-2:]
        if target == "/src" or words[0].startswith("--from="):
            return  # it is there
        place = self.folder / target.strip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes((ROOT / source).read_bytes())
        for mode in re.findall(r"--chmod=(\d+)", words[0]):
            place.chmod(int(mode, 8))

    def _of_this_machine(self) -> dict[str, str]:
        """Where packages come from, and the libraries of the Python that was moved."""
        names = ("PIP_", "HTTP", "http", "SSL_", "NO_PROXY", "no_proxy")
        found = {name: value for name, value in os.environ.items() if name.startswith(names)}
        return found | {"HOME": "/root", "LD_LIBRARY_PATH": f"{PYTHON}/lib"}

    def _unharmful(self, command: list[str]) -> list[str]:
        """Debian's packages are looked for, and not installed: the machine is not the image."""
        *shell, line = command
        return [*shell, line.replace("apt-get -q update", "true").replace("apt-get -qy", "apt-get -qy --simulate")]
