"""Inside the package our own modules are imported relatively: one style, which `git mv` of a whole room survives.

The rule is tried on everloop, which must have none, and on files that break it. `__main__.py` alone may be run from
outside of its package, and says so where it does.
"""

import ast
import re
from pathlib import Path

import pytest

import everloop

PACKAGE = Path(everloop.__file__).parent
NAMED = re.compile(rb"import.*everloop|everloop.*import")


def absolute_imports(package: Path) -> list[str]:
    """Where one of our own modules is imported by its full name."""
    found = []
    for file in sorted(package.rglob("*.py")):
        source = file.read_bytes()
        if not NAMED.search(source):  # as in most: to parse a thousand files takes seconds
            continue
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.ImportFrom(module=str(module), level=0) if module.split(".")[0] == "everloop":
                    found.append(f"{file.relative_to(package)}:{node.lineno} imports {module}")
                case ast.Import(names=names):
                    ours = [each.name for each in names if each.name.split(".")[0] == "everloop"]
                    found += [f"{file.relative_to(package)}:{node.lineno} imports {name}" for name in ours]
    return found


def test_our_own_modules_are_imported_relatively():
    assert absolute_imports(PACKAGE) == []


@pytest.mark.parametrize(
    "source",
    [
        "from everloop.core.log import Entry",
        "from everloop import tool",
        "import everloop",
        "import everloop.core.log as log",
        "def f():\n    from everloop.core.log import Entry",
        "if TYPE_CHECKING:\n    from everloop.core.log import Entry",
    ],
)
def test_the_other_style_is_found(tmp_path: Path, source: str):
    (tmp_path / "x.py").write_text(source)
    assert len(absolute_imports(tmp_path)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "from ..core.log import Entry",
        "from . import log",
        "import everloop_plugin",
        "from everlooper import x",
        'TEXT = "from everloop.core.log import Entry"',
    ],
)
def test_what_is_no_such_import_is_not(tmp_path: Path, source: str):
    (tmp_path / "x.py").write_text(source)
    assert absolute_imports(tmp_path) == []
