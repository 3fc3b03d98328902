"""Python that only works something out is told from any other."""

import pytest

from everloop.providers.embedded.pure import is_pure, shown_value

PURE = (
    "348 * 27",
    "import math\nmath.sqrt(7921)",
    "from datetime import date\n(date(2026, 12, 25) - date.today()).days",
    "sum(range(1, 201))",
    "total = 0\nfor number in range(10):\n    total += number\ntotal",
    "print(open('notes.txt').read().count('a'))",
    "with open('a.csv', 'r', encoding='utf-8') as file:\n    print(len(file.readlines()))",
    "import csv\nprint(list(csv.reader(open('a.csv', newline=''))))",
    "this is no python (",
)
NOT = (
    "open('a.txt', 'w').write('x')",
    "open('a.txt', mode='a')",
    "open('a.txt', 'r+')",
    "mode = 'w'\nopen('a.txt', mode)",
    "open(*['a.txt', 'w'])",
    "open(**{'file': 'a.txt', 'mode': 'w'})",
    "o = open\no('a.txt', 'w')",
    "[open][0]('a.txt', 'w')",
    "open('a.txt', 'r', opener=print)",
    "import os\nos.remove('a.txt')",
    "from os import remove\nremove('a.txt')",
    "import subprocess",
    "import shutil, math",
    "from pathlib import Path\nPath('a.txt').unlink()",
    "__import__('os').remove('a.txt')",
    "exec('import os')",
    "eval('1')",
    "getattr(print, 'x')",
    "().__class__.__bases__",
    "import json\njson.codecs.open('a.txt', 'w')",
    "from json import codecs",
    "import statistics\nstatistics.sys.modules",
    "import random\nrandom._os.remove('a.txt')",
    "from . import x",
    "globals()['__builtins__']",
    "import importlib",
    "import json.tool\njson.tool.Path('a.txt').unlink()",
)


@pytest.mark.parametrize("code", PURE)
def test_what_calculates_or_reads_is_pure(code: str):
    assert is_pure(code)


@pytest.mark.parametrize("code", NOT)
def test_what_could_write_start_or_reach_around_is_not(code: str):
    assert not is_pure(code)


def test_the_value_of_the_last_line_is_printed_as_at_pythons_prompt():
    assert shown_value("348 * 27") == "print(348 * 27)"
    assert shown_value("a = 2\na") == "a = 2\nprint(a)"
    assert shown_value("a = 2") == "a = 2\nprint(a)"
    assert shown_value("print(2)") == "print(2)"
    assert shown_value("for a in (1, 2):\n    print(a)") == "for a in (1, 2):\n    print(a)"
    assert shown_value("no python (") == "no python ("
