"""Changing a settings file leaves everything else in it as it was."""

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.errors import SettingsError
from everloop.settings.edit import SettingChange, edited_json, edited_toml, key_of, path_of

FILE = """\
# my settings
workspace = "~/ws"  # where I work

[agents.defaults]
model = "openai/gpt-5"   # the good one
maxTokens = 4096
fallbacks = [
    "groq/llama",  # fast
    "ollama/qwen",
]

# prices of my own
[prices."gpt-4.1"]
input = 2

[[tools.policy]]
tool = "exec"  # careful
stance = "ask"

[[tools.policy]]
tool = "*"
stance = "allow"
"""


@pytest.mark.parametrize(
    "path, value, before, after",
    [
        (("agents", "defaults", "model"), "groq/x", '"openai/gpt-5"   # the', '"groq/x"   # the'),
        (("agents", "defaults", "max_tokens"), 1, "maxTokens = 4096", "maxTokens = 1"),
        (("agents", "defaults", "fallbacks"), ["a"], '[\n    "groq/llama",  # fast\n    "ollama/qwen",\n]', '["a"]'),
        (("agents", "defaults", "top_p"), 0.5, '"ollama/qwen",\n]\n', '"ollama/qwen",\n]\ntop_p = 0.5\n'),
        (("agents", "defaults", "model"), None, 'model = "openai/gpt-5"   # the good one\n', ""),
        (("workspace",), "x\ny", '"~/ws"  #', '"""\nx\ny"""  #'),
        (("prices", "gpt-4.1", "output"), 8, "input = 2\n", "input = 2\noutput = 8\n"),
        (("prices", "gpt-4.1"), None, '[prices."gpt-4.1"]\ninput = 2\n', ""),
        (("models", "fast", "model"), "groq/x", 'stance = "allow"\n',
         'stance = "allow"\n\n[models.fast]\nmodel = "groq/x"\n'),
        (("tools", "approvals"), "deny", 'stance = "allow"\n', 'stance = "allow"\n\n[tools]\napprovals = "deny"\n'),
        (("tools", "policy"), None, FILE[FILE.index("[[tools") :], "\n"),
        (("nothing", "there"), None, "", ""),
    ],
)  # fmt: skip
def test_only_what_was_meant_is_changed(path: tuple[str, ...], value: Any, before: str, after: str):
    assert edited_toml(FILE, [SettingChange(path, value)]) == FILE.replace(before, after)


def test_a_list_of_tables_can_be_written_in_another_way():
    rows = [{"tool": "exec*", "stance": "deny"}]
    text = edited_toml(FILE, [SettingChange(("tools", "policy"), rows)])
    assert tomllib.loads(text)["tools"] == {"policy": rows}
    assert text.startswith(FILE[: FILE.index("[[tools")])


@pytest.mark.parametrize(
    "text, path, value, after",
    [
        ("", ("agents", "defaults", "model"), "x", '[agents.defaults]\nmodel = "x"\n'),
        ("", ("workspace",), "x", 'workspace = "x"\n'),
        ("# note\n[net]\nca_file = ''", ("workspace",), "x", "workspace = \"x\"\n\n# note\n[net]\nca_file = ''\n"),
        ("agents.defaults.model = 'x'\n", ("agents", "defaults", "max_tokens"), 5,
         "agents.defaults.model = 'x'\nagents.defaults.max_tokens = 5\n"),
        ("[agents]\ndefaults.model = 'x'\n[net]\n", ("agents", "defaults", "max_tokens"), 5,
         "[agents]\ndefaults.model = 'x'\ndefaults.max_tokens = 5\n[net]\n"),
        ("agents = { defaults = { model = 'x' } } # one line\n", ("agents", "defaults", "model"), "y",
         'agents = { defaults = { model = "y" } } # one line\n'),
        ("models = { fast = { model = 'x' }, slow = {} }\n", ("models", "fast"), None, "models = { slow = {} }\n"),
        ("a = 1\r\n[net]\r\n", ("net", "proxy"), "p", 'a = 1\r\n[net]\r\nproxy = "p"\r\n'),
        ("[net] # [x]\n\n# end\n", ("net", "proxy"), "# = [", '[net] # [x]\nproxy = "# = ["\n\n# end\n'),
        ("[a]\nx = 1\n# about y\ny = 2\n# the end\n[b]\n", ("a",), None, "# the end\n[b]\n"),
    ],
)  # fmt: skip
def test_files_are_written_in_many_ways(text: str, path: tuple[str, ...], value: Any, after: str):
    assert edited_toml(text, [SettingChange(path, value)]) == after


def test_what_cannot_be_changed_safely_is_left_alone():
    with pytest.raises(SettingsError, match=r"^models\.fast\.model cannot be changed here, for the way"):
        edited_toml("models = 5\n", [SettingChange(("models", "fast", "model"), "x")])


values = st.recursive(
    st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text("ab.\"' é", min_size=1), each, max_size=3),
    max_leaves=5,
)  # fmt: skip
paths = st.lists(st.sampled_from(["agents", "defaults", "model", "prices", "gpt-4.1", "x y"]), min_size=1, max_size=3)


@given(st.lists(st.tuples(paths.map(tuple), values | st.none()), max_size=4))
def test_whatever_is_written_is_read_again_or_refused(changes: list[tuple[tuple[str, ...], Any]]):
    text = FILE
    for path, value in changes:
        try:
            text = edited_toml(text, [SettingChange(path, value)])
        except SettingsError:
            continue
        assert "# my settings" in text
        found: Any = tomllib.loads(text)
        for part in path:
            found = found.get(part) if isinstance(found, dict) else None
        assert found == value or value == {} or _hollow(value)


def _hollow(value: Any) -> bool:
    return isinstance(value, dict) and all(each == {} or _hollow(each) for each in value.values())


def test_json_keeps_its_order_and_its_indentation():
    text = '{\n    "net": {"proxy": ""},\n    "agents": {"defaults": {"maxTokens": 1}}\n}\n'
    changed = edited_json(text, [SettingChange(("agents", "defaults", "max_tokens"), 2), SettingChange(("net",), None)])
    assert changed == '{\n    "agents": {\n        "defaults": {\n            "maxTokens": 2\n        }\n    }\n}\n'
    assert json.loads(edited_json("", [SettingChange(("workspace",), "é")])) == {"workspace": "é"}


@pytest.mark.parametrize(
    "path", [("agents", "defaults", "model"), ("prices", "gpt-4.1", "input"), ("models", 'a"b'), ("models", "a\nb")]
)
def test_a_key_is_a_path_is_a_key(path: tuple[str, ...]):
    assert path_of(key_of(path)) == path


@pytest.mark.parametrize("key", ["", "a..b", "a b", "a\n", "[a]", "a=", 'a."\\q"', 'a."\x01"'])
def test_what_is_no_key_is_refused(key: str):
    with pytest.raises(SettingsError):
        path_of(key)
