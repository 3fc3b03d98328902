"""What a person may write into the settings, and what they are told when it is wrong."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from everloop.errors import SettingsError
from everloop.settings import (
    AccountSection,
    Agents,
    Defaults,
    EmbeddedSection,
    Net,
    PolicyRuleSection,
    Providers,
    Settings,
    StoreSection,
    home_of,
    load,
    path_in,
    workspace_of,
)

KEY = "sk-canary-5f1d"
WHOLE = "agents.defaults.max_tokens must be a whole number of at least 1"


def written(home: Path, text: str, name: str = "config.toml") -> Path:
    (home / name).write_text(text, encoding="utf-8")
    return home / name


def refusal(home: Path, environ: dict[str, str] | None = None, overrides: dict[str, Any] | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        load(home, environ or {}, overrides or {})
    return str(caught.value)


def test_an_empty_home_gives_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, {}) == Settings()


def test_a_home_that_does_not_exist_gives_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path / "nowhere", {}) == Settings()


def test_the_defaults_are_the_documented_ones() -> None:
    assert Defaults() == Defaults(
        model="auto",
        max_tokens=8192,
        temperature=None,
        max_tool_iterations=40,
        context_window=None,
        steering="steer",
        max_message_chars=200_000,
        tool_result_max_chars=8000,
    )
    assert (Settings().store.lease_seconds, Settings().agents.max_concurrent_turns) == (30.0, 500)
    assert Settings().tools.restrict_to_workspace is True


TOML = f"""
workspace = "~/work"

[agents]
max_concurrent_turns = 7
[agents.defaults]
model = "claude-opus-5"
temperature = 1
context_window = 100_000

[providers.anthropic]
api_key = "{KEY}"
headers = {{ "X-Team" = "blue" }}
[providers.embedded]
threads = 4

[store]
url = "postgresql://db/ever"
[net]
ca_file = "ca.pem"
"""
JSON = f"""
{{"workspace": "~/work",
  "agents": {{"maxConcurrentTurns": 7,
              "defaults": {{"model": "claude-opus-5", "temperature": 1, "contextWindow": 100000}}}},
  "providers": {{"anthropic": {{"apiKey": "{KEY}", "headers": {{"X-Team": "blue"}}}}, "embedded": {{"threads": 4}}}},
  "store": {{"url": "postgresql://db/ever"}},
  "net": {{"caFile": "ca.pem"}}}}
"""
BOTH = Settings(
    agents=Agents(Defaults(model="claude-opus-5", temperature=1.0, context_window=100_000), max_concurrent_turns=7),
    providers=Providers(
        EmbeddedSection(threads=4), {"anthropic": AccountSection(api_key=KEY, headers={"X-Team": "blue"})}
    ),
    store=StoreSection(url="postgresql://db/ever"),
    net=Net(ca_file="ca.pem"),
    workspace="~/work",
)


def test_a_toml_file_is_read(tmp_path: Path) -> None:
    written(tmp_path, TOML)
    assert load(tmp_path, {}) == BOTH


def test_a_json_file_in_camel_case_says_the_same(tmp_path: Path) -> None:
    written(tmp_path, JSON, "config.json")
    assert load(tmp_path, {}) == BOTH


def test_a_file_with_a_byte_order_mark_and_windows_lines_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xef\xbb\xbf" + TOML.replace("\n", "\r\n").encode())
    assert load(tmp_path, {}) == BOTH


def test_two_files_are_refused_and_both_are_named(tmp_path: Path) -> None:
    toml, json = written(tmp_path, ""), written(tmp_path, "{}", "config.json")
    assert str(toml) in refusal(tmp_path)
    assert str(json) in refusal(tmp_path)


def test_a_key_given_in_both_cases_is_refused(tmp_path: Path) -> None:
    written(tmp_path, "[agents.defaults]\nmax_tokens = 1\nmaxTokens = 2")
    assert refusal(tmp_path).endswith(
        "agents.defaults.maxTokens is given twice, with and without capitals; keep one of them"
    )


def test_names_of_providers_and_headers_stay_as_they_are(tmp_path: Path) -> None:
    written(tmp_path, '[providers.myHost]\nheaders = { "X-apiKey" = "1" }')
    assert load(tmp_path, {}).providers.accounts == {"myHost": AccountSection(headers={"X-apiKey": "1"})}


def test_null_in_json_means_the_default(tmp_path: Path) -> None:
    written(tmp_path, '{"agents": {"defaults": {"model": null, "temperature": null}}, "store": null}', "config.json")
    assert load(tmp_path, {}) == Settings()


def test_keys_of_later_versions_are_kept_as_they_are(tmp_path: Path) -> None:
    kept = {
        "agents": {"defaults": {"memoryWindow": 50}},
        "channels": {"telegram": {"enabled": True, "botToken": "${NOT_YET}"}},
    }
    written(tmp_path, msgspec.json.encode(kept).decode(), "config.json")
    settings = load(tmp_path, {})
    assert settings.agents.defaults.memory_window == 50
    assert settings.channels == kept["channels"]


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("a = \n", 1, "this is not valid TOML (Invalid value)"),
        ('[agents.defaults]\nmodel = "x\n', 2, "this is not valid TOML (Illegal character '\\n')"),
        ("[a]\n[store]\n[a]", 3, "the table [a] stands in the file twice: put both into one"),
        ("a = 1\na = 2\n", 2, "this setting stands in the file twice: remove one of them"),
        ("[agents", 1, "this is not valid TOML (Expected ']' at the end of a table declaration)"),
        ("\n\nmodle = 1", 3, "there is no setting modle; did you mean models?"),
        ("\nagents.defaults.max_token = 1", 2, "there is no setting agents.defaults.max_token; did you mean max"),
        ("agents.defaults.maxTokns = 1", 1, "there is no setting agents.defaults.maxTokns; did you mean max_tokens?"),
        ("[agent.defaults]\n", 1, "there is no setting agent; did you mean agents?"),
        ("agents.defaults.max_tokens = 'x'", 1, WHOLE),
        ("[agents]\ndefaults = { max_tokens = 0 }", 2, WHOLE),
        ("[agents.defaults]\nmax_tokens = true", 2, WHOLE),
        ("[agents.defaults]\ntemperature = nan", 2, "agents.defaults.temperature must be a number of at least 0 and"),
        ("[agents.defaults]\nsteering = 'ask'", 2, 'agents.defaults.steering must be "steer" or "queue" or'),
        ("[store]\nlease_seconds = 0.1", 2, "store.lease_seconds must be a number of at least 1 and at most 3600"),
        ("[tools]\nrestrict_to_workspace = false", 2, "tools.restrict_to_workspace must be true"),
        ("[tools]\nrestrictToWorkspace = 1", 2, "tools.restrictToWorkspace must be true"),
        ("agents = 1", 1, "agents must be a table of settings"),
        ("[providers]\nopenai = 'k'", 2, "providers.openai must be a table of settings"),
        ("[providers.openai]\napiKye = 'k'", 2, "there is no setting providers.openai.apiKye; did you mean api_key?"),
        ("[providers.openai]\nheaders = { a = 1 }", 2, "providers.openai.headers must be a table of text"),
        ("[providers.'a.b']\nmodel = 1", 2, "providers.a.b.model must be text"),
        ("[providers.openai]\n[providers.openai.embedded]", 2, "there is no setting providers.openai.embedded;"),
        ("workspace = 1979-05-27", 1, "workspace must be text"),
    ],
)  # fmt: skip
def test_a_mistake_in_toml_is_named_with_its_line_and_what_is_expected(
    tmp_path: Path, text: str, line: int, sentence: str
) -> None:
    file = written(tmp_path, text)
    assert refusal(tmp_path).startswith(f"{file}, line {line}: {sentence}")


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("", 1, "this is not valid JSON (it ends too early)"),
        ('{"agents":\n\n', 3, "this is not valid JSON (it ends too early)"),
        ('{"agents": {},\n "net": }', 2, "this is not valid JSON (invalid character)"),
        ("[]", 1, "the file must be one JSON object, {…}"),
        ('{"net": {"proxy": "a"},\n "stor": {}}', 2, "there is no setting stor; did you mean store?"),
        ('{"net": {"proxy": "{[:"},\n "store": {\n "url": [1]}}', 3, "store.url must be text"),
        ('{"providers": {"a": {"model": "m"},\n "b": {"model": 1}}}', 2, "providers.b.model must be text"),
        ('{"agents": {"defaults":\n{"maxTokens": "8"}}}', 2, WHOLE.replace("max_tokens", "maxTokens")),
    ],
)  # fmt: skip
def test_a_mistake_in_json_is_named_with_its_line_and_what_is_expected(
    tmp_path: Path, text: str, line: int, sentence: str
) -> None:
    file = written(tmp_path, text, "config.json")
    assert refusal(tmp_path).startswith(f"{file}, line {line}: {sentence}")


def test_a_file_that_is_not_utf8_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b'workspace = "a"\n[net]\nproxy = "\xff"\n')
    assert refusal(tmp_path) == f"{tmp_path}/config.toml, line 3: the file is not UTF-8 text; save it as UTF-8"


def test_a_settings_file_that_is_a_folder_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").mkdir()
    assert refusal(tmp_path) == f"{tmp_path}/config.json is no file: put the settings file in its place"


@pytest.mark.parametrize("name", ["config.toml", "config.json"])
def test_bottomless_nesting_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    deep = "[" * 100_000
    written(tmp_path, f"a = {deep}" if name.endswith("toml") else deep, name)
    assert refusal(tmp_path) == f"{tmp_path}/{name}: the values are nested too deeply"


def test_variables_of_the_environment_override_the_file_and_are_read_as_the_type_wanted(tmp_path: Path) -> None:
    written(tmp_path, TOML)
    environ = {
        "EVERLOOP_HOME": "/elsewhere",
        "EVERLOOP_AGENTS__DEFAULTS__MODEL": "123",
        "EVERLOOP_AGENTS__DEFAULTS__MAX_TOKENS": "99",
        "EVERLOOP_AGENTS__DEFAULTS__TEMPERATURE": "",
        "EVERLOOP_STORE__LEASE_SECONDS": "1.5",
        "EVERLOOP_TOOLS__RESTRICT_TO_WORKSPACE": "True",
        "EVERLOOP_PROVIDERS__ANTHROPIC__HEADERS": '{"X-More": "1"}',
        "EVERLOOP_NET": '{"proxy": "http://p"}',
        "EVERLOOP_WORKSPACE": "/w",
        "EVERLOOP_CHANNELS__TELEGRAM__TOKEN": "123:abc",
        "EVERLOOPING": "no",
        "EVERLOOP_SOMETHING_ELSE": "not a setting",
    }
    assert load(tmp_path, environ) == Settings(
        agents=Agents(Defaults(model="123", max_tokens=99, context_window=100_000), max_concurrent_turns=7),
        providers=Providers(
            EmbeddedSection(threads=4),
            {"anthropic": AccountSection(api_key=KEY, headers={"X-Team": "blue", "X-More": "1"})},
        ),
        store=StoreSection(url="postgresql://db/ever", lease_seconds=1.5),
        net=Net(ca_file="ca.pem", proxy="http://p"),
        workspace="/w",
        channels={"telegram": {"token": "123:abc"}},
    )


def test_a_variable_finds_the_provider_that_the_file_spells_otherwise(tmp_path: Path) -> None:
    written(tmp_path, "[providers.My-Host]\nmodel = 'm'")
    environ = {"EVERLOOP_PROVIDERS__MY_HOST__API_KEY": KEY, "EVERLOOP_PROVIDERS__OPENAI__API_KEY": "o"}
    assert load(tmp_path, environ).providers.accounts == {
        "My-Host": AccountSection(api_key=KEY, model="m"),
        "openai": AccountSection(api_key="o"),
    }


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        (
            {"EVERLOOP_AGENTS__DEFAULTS__MAX_TOKENS": "many"},
            "EVERLOOP_AGENTS__DEFAULTS__MAX_TOKENS: agents.defaults.max_tokens must be a whole number of at least 1",
        ),
        (
            {"EVERLOOP_AGENTS__DEFAULT__MODEL": "x"},
            "EVERLOOP_AGENTS__DEFAULT__MODEL: there is no setting agents.default; did you mean defaults?",
        ),
        ({"EVERLOOP_WORKSPAC": "x"}, "EVERLOOP_WORKSPAC: there is no setting workspac; did you mean workspace?"),
        ({"EVERLOOP_NET": "x"}, "EVERLOOP_NET: net must be a table of settings"),
        (
            {"EVERLOOP_NET": "{}", "EVERLOOP_NET__PROXY": "p"},
            "EVERLOOP_NET__PROXY: EVERLOOP_NET is set too; keep one of them",
        ),
        (
            {"EVERLOOP_TOOLS__RESTRICT_TO_WORKSPACE": "off"},
            "EVERLOOP_TOOLS__RESTRICT_TO_WORKSPACE: tools.restrict_to_workspace must be true",
        ),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(tmp_path: Path, environ: dict[str, str], message: str) -> None:
    assert refusal(tmp_path, environ) == message


def test_what_the_programmer_gives_is_stronger_than_the_environment(tmp_path: Path) -> None:
    environ = {"EVERLOOP_AGENTS__DEFAULTS__MODEL": "env", "EVERLOOP_AGENTS__DEFAULTS__MAX_TOKENS": "5"}
    settings = load(tmp_path, environ, {"agents": {"defaults": {"model": "mine"}}, "workspace": tmp_path})
    assert settings.agents.defaults == Defaults(model="mine", max_tokens=5)
    assert settings.workspace == str(tmp_path)


def test_a_mistake_of_the_programmer_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path, overrides={"agents": {"defaults": {"maxTokens": "5"}}}) == (
        "The settings given to open(), agents.defaults.maxTokens: "
        "agents.defaults.maxTokens must be a whole number of at least 1"
    )


def test_references_to_the_environment_are_filled_in(tmp_path: Path) -> None:
    written(
        tmp_path,
        "[agents.defaults]\nmax_tokens = '${N}'\n[providers.openai]\napi_key = '${KEY}'\n"
        "api_base = 'http://${HOST}:${PORT}/$${x}'\nheaders = { Authorization = 'Bearer ${KEY}' }",
    )
    settings = load(tmp_path, {"KEY": KEY, "HOST": "h", "PORT": "1", "N": "7"})
    assert settings.agents.defaults.max_tokens == 7
    assert settings.providers.accounts["openai"] == AccountSection(
        api_key=KEY, api_base="http://h:1/${x}", headers={"Authorization": f"Bearer {KEY}"}
    )


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("${ABSENT}", "net.proxy needs the environment variable ABSENT, which is not set"),
        ("${A:-b}", "net.proxy has a ${…} without the name of a variable; write $${ for a plain ${"),
    ],
)
def test_a_reference_that_cannot_be_filled_in_is_refused(tmp_path: Path, value: str, sentence: str) -> None:
    written(tmp_path, f"[net]\nproxy = '{value}'")
    assert refusal(tmp_path) == f"{tmp_path}/config.toml, line 2: {sentence}"


def test_a_reference_inside_a_variable_is_left_as_it_is(tmp_path: Path) -> None:
    assert load(tmp_path, {"EVERLOOP_NET__PROXY": "${A}"}).net.proxy == "${A}"


def test_no_secret_is_shown_by_repr() -> None:
    settings = Settings(
        providers=Providers(
            accounts={"a": AccountSection(api_key=KEY, api_base=f"https://me:{KEY}@host/v1", headers={"A": KEY})}
        ),
        store=StoreSection(url=f"postgresql://me:{KEY}@db/x"),
        net=Net(proxy=f"http://me:{KEY}@p"),
        channels={"telegram": {"token": KEY}},
    )
    assert KEY not in f"{settings!r} {settings}"
    assert "api_key=…, api_key_file='', api_base='https://…@host/v1', model='', headers=…" in repr(settings)


@pytest.mark.parametrize(
    "text",
    [
        "[providers.openai]\napi_key = ['KEY']",
        "[providers.openai]\nmodel = { api_key = 'KEY' }",
        "[providers.openai]\nheaders = { a = ['KEY'] }",
        "[agents.defaults]\nsteering = 'KEY'",
        "[agents.defaults]\nmax_tokens = 'KEY'",
        "[providers.openai]\napi_key = 'KEY",
        "[providers.openai]\napi_key = KEY",
        "[providers.openai]\napi_key = 'KEY' KEY",
        "tools = 'KEY'",
        "workspace = 'KEY${ABSENT}'",
    ],
)
def test_no_secret_is_shown_by_an_error(tmp_path: Path, text: str) -> None:
    written(tmp_path, text.replace("KEY", KEY))
    assert KEY not in refusal(tmp_path)
    assert KEY not in refusal(tmp_path, {"EVERLOOP_AGENTS__DEFAULTS__MAX_TOKENS": KEY})


def test_the_home_is_the_variable_or_a_folder_of_the_person() -> None:
    assert home_of({"HOME": "/home/ann"}) == Path("/home/ann/.everloop")
    assert home_of({"HOME": "/home/ann", "EVERLOOP_HOME": ""}) == Path("/home/ann/.everloop")
    assert home_of({"HOME": "/home/ann", "EVERLOOP_HOME": "~/x"}) == Path("/home/ann/x")
    assert home_of({"HOME": "/home/ann", "EVERLOOP_HOME": "/srv/ever"}) == Path("/srv/ever")
    assert home_of({"HOME": "/home/ann", "EVERLOOP_HOME": "here"}) == Path.cwd() / "here"


def test_the_workspace_is_in_the_home_unless_it_is_set() -> None:
    assert workspace_of(Settings(), Path("/h")) == Path("/h/workspace")
    assert workspace_of(Settings(workspace="/w"), Path("/h")) == Path("/w")
    assert workspace_of(Settings(workspace="w"), Path("/h")) == Path("/h/w")
    assert path_in(Path("/h"), "~/w", Path("/home/ann")) == Path("/home/ann/w")


def test_reading_settings_loads_neither_asyncio_nor_a_parser_that_is_not_needed() -> None:
    code = "import sys, everloop.settings; print(sorted({'asyncio', 'tomllib', 'json', 'difflib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


POLICY = (PolicyRuleSection("exec*", "high", "deny"), PolicyRuleSection(stance="allow"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.toml", '[[tools.policy]]\ntool = "exec*"\nrisk = "high"\nstance = "deny"\n'
                        '[[tools.policy]]\nstance = "allow"\n'),
        ("config.toml", 'tools.policy = [{tool = "exec*", risk = "high", stance = "deny"}, {stance = "allow"}]'),
        ("config.json", '{"tools": {"policy": [{"tool": "exec*", "risk": "high", "stance": "deny"}, '
                        '{"stance": "allow"}]}}'),
    ],
)  # fmt: skip
def test_a_list_of_tables_is_read(tmp_path: Path, name: str, text: str) -> None:
    written(tmp_path, text, name)
    assert load(tmp_path, {}).tools.policy == POLICY


def test_a_list_of_tables_can_stand_in_a_variable(tmp_path: Path) -> None:
    value = '[{"tool": "exec*", "risk": "high", "stance": "deny"}, {"stance": "allow"}]'
    assert load(tmp_path, {"EVERLOOP_TOOLS__POLICY": value}).tools.policy == POLICY


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[tools.policy]]\ntool = "a"\n[[tools.policy]]\ntol = "exec"\nstance = "allow"\n',
         "line 4: there is no setting tools.policy.2.tol; did you mean tool?"),
        ('[[tools.policy]]\nstance = "yes"\n',
         'line 2: tools.policy.1.stance must be "allow" or "ask" or "deny"'),
        ('[tools]\npolicy = ["exec"]\n', "line 2: tools.policy.1 must be a table of settings"),
        ('[tools.policy]\ntool = "exec"\n', "line 1: tools.policy must be a list of tables"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_list_of_tables_allows_nothing_by_accident(tmp_path: Path, text: str, message: str) -> None:
    file = written(tmp_path, text)
    assert refusal(tmp_path) == f"{file}, {message}"
