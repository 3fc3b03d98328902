"""The shape of the settings file, and how it is read.

Settings come in layers: the defaults below, `config.toml` or `config.json` in the home, environment variables
(`EVERLOOP_AGENTS__DEFAULTS__MODEL`), and what a programmer gives to `open()`. Each layer is checked against the shape
on its own, so that an error can name the line, the variable or the argument it comes from; then they are laid on top
of each other. Error texts never show a value, because any value may be a secret in the wrong place.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NoReturn, cast, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from everloop.core.errors import SettingsError

Secret = Annotated[str, Meta(extra={"secret": True})]
Kept = Annotated[Any, Meta(extra={"kept": True})]  # for a later version: taken as it is, neither checked nor expanded
Count = Annotated[int, Meta(ge=1)]


class _Section(Struct, frozen=True):
    """A table of the settings file. Its repr hides secrets."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{f.name}={_shown(getattr(self, f.name), f.type)}" for f in msgspec.structs.fields(self))
        return f"{type(self).__name__}({shown})"


Temperature = Annotated[float, Meta(ge=0, le=2)]
Share = Annotated[float, Meta(ge=0, le=1)]
Effort = Literal["", "none", "minimal", "low", "medium", "high"]
Dialect = Literal["openai_chat", "openai_responses", "anthropic_messages", "gemini"]


class Defaults(_Section, frozen=True):
    model: str = "auto"  # provider/model, or the name of a preset in `models`
    fallbacks: tuple[str, ...] = ()  # asked in this order when the model cannot answer
    small_model: str = ""  # for summaries and the like; "": the same model
    embedding_model: str = ""  # for recall by meaning
    system_prompt: str = ""  # who the agent is, in place of our own words
    max_tokens: Count = 8192
    temperature: Temperature | None = None
    top_p: Share | None = None
    reasoning_effort: Effort = ""
    max_tool_iterations: Count = 40
    context_window: Count | None = None  # None: as the provider says
    steering: Literal["steer", "queue", "interrupt"] = "steer"
    max_message_chars: Count = 200_000
    tool_result_max_chars: Annotated[int, Meta(ge=500)] = 8000
    memory_window: Kept = None


class Agents(_Section, frozen=True):
    defaults: Defaults = Defaults()
    max_concurrent_turns: Count = 500
    shutdown_seconds: Annotated[float, Meta(ge=0, le=600)] = 5.0  # what a running step gets to finish


class Account(_Section, frozen=True):
    """What is needed to speak to one provider."""

    api_key: Secret = ""
    api_key_file: str = ""
    api_base: str = ""
    model: str = ""
    headers: Annotated[dict[str, str], Meta(extra={"secret": True})] = {}
    dialect: Dialect | None = None  # None: as its row in the catalogue says


class Preset(_Section, frozen=True):
    """A model under a name of the owner's, with the way it is asked; what is None is as in `agents.defaults`."""

    model: str = "auto"
    fallbacks: tuple[str, ...] | None = None
    reasoning_effort: Effort | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    max_tokens: Count | None = None
    context_window: Count | None = None


Dollars = Annotated[float, Meta(ge=0)]


class Price(_Section, frozen=True):
    """US dollars for a million tokens, for models whose name fits the pattern that it stands under."""

    input: Dollars = 0.0
    output: Dollars = 0.0
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None


class Embedded(_Section, frozen=True):
    """The model that runs inside the process."""

    path: str = ""
    threads: Annotated[int, Meta(ge=0)] = 0  # 0: as many as the machine has cores


class Providers(_Section, frozen=True):
    """In the file the accounts stand beside `embedded`: `providers.<name>`."""

    embedded: Embedded = Embedded()
    accounts: dict[str, Account] = {}


Stance = Literal["allow", "ask", "deny"]


class PolicyRule(_Section, frozen=True):
    """What is done with the calls of some tools, of any risk or of one; the first rule that fits counts."""

    tool: str = "*"  # a name, or a pattern such as exec*
    risk: Literal["", "low", "medium", "high"] = ""
    stance: Stance = "ask"


class Search(_Section, frozen=True):
    """With what web_search searches; "": with the first of these for which there is an address or a key."""

    engine: Literal["", "searxng", "brave", "tavily", "ddgs"] = ""
    api_key: Secret = ""  # of Brave, or of the engine that is named
    url: str = ""  # of a SearxNG server


class Web(_Section, frozen=True):
    allow: tuple[str, ...] = ()  # hosts or networks, private ones too, that web_fetch may read
    search: Search = Search()


class Exec(_Section, frozen=True):
    timeout: Annotated[int, Meta(ge=1, le=86400)] = 600  # the most seconds that a command may ask for
    memory_mb: Annotated[int, Meta(ge=16)] = 2048
    processes: Annotated[int, Meta(ge=1)] = 256
    env: tuple[str, ...] = ()  # names of variables that commands may see
    network: tuple[str, ...] = ()  # hosts that commands may reach, as pypi.org, *.example.com, git.example.com:22, *
    unsafe_without_sandbox: bool = False


class Tools(_Section, frozen=True):
    restrict_to_workspace: Literal[True] = True  # always, in this version; so that nobody believes it were off
    approvals: Stance = "ask"  # for what leaves the sandbox or speaks to others
    policy: tuple[PolicyRule, ...] = ()
    plugins: tuple[str, ...] = ()  # names of tools that other packages bring
    disabled: tuple[str, ...] = ()  # names of built-in tools, or patterns such as exec*, that are left out
    web: Web = Web()
    exec: Exec = Exec()
    mcp_servers: Kept = None


class StoreSection(_Section, frozen=True):
    url: Secret = ""  # "": SQLite in the home; or postgresql://…
    lease_seconds: Annotated[float, Meta(ge=1, le=3600)] = 30.0


class Net(_Section, frozen=True):
    ca_file: str = ""
    proxy: Secret = ""
    record: str = ""  # a file or folder into which the calls to models are written, for tests to play


class GatewaySection(_Section, frozen=True):
    """Where the page and the APIs are served. Another interface than loopback needs TLS, or a proxy that has it."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 18790  # 0: any that is free
    allowed_hosts: tuple[str, ...] = ()  # further names under which it is reached, as agent.example.com or host:port
    allowed_origins: tuple[str, ...] = ()  # further pages that may call it, as https://app.example.com
    tls_cert: str = ""  # files in PEM
    tls_key: str = ""
    behind_proxy: bool = False  # a proxy in front of it speaks TLS


class Settings(_Section, frozen=True):
    agents: Agents = Agents()
    providers: Providers = Providers()
    models: dict[str, Preset] = {}
    prices: dict[str, Price] = {}
    tools: Tools = Tools()
    store: StoreSection = StoreSection()
    net: Net = Net()
    workspace: str = ""  # "": the folder `workspace` in the home
    channels: Kept = None
    gateway: GatewaySection = GatewaySection()


def home_of(environ: Mapping[str, str]) -> Path:
    """`EVERLOOP_HOME`, or `.everloop` in the person's own folder."""
    person = Path(environ.get("HOME") or Path.home())
    return path_in(Path.cwd(), environ.get("EVERLOOP_HOME") or "~/.everloop", person)


def path_in(folder: Path, text: str, person: Path | None = None) -> Path:
    """A path as people write it: absolute, from `~`, or else inside `folder`."""
    if text == "~" or text.startswith("~/"):
        return (person or Path.home()) / text[2:]
    return folder / text


def workspace_of(settings: Settings, home: Path) -> Path:
    return path_in(home, settings.workspace or "workspace")


def load(home: Path, environ: Mapping[str, str], overrides: Mapping[str, Any] = {}) -> Settings:
    """Read the settings of a home. Raises SettingsError, which says where the mistake is and what is expected there."""
    tree: dict[str, Any] = {}
    for layer in _layers(home, environ, overrides, tree):
        _lay_over(tree, _section(layer, Settings, layer.values, ()))
    return cast(Settings, _built(Settings, tree))


def without_secrets(section: Struct) -> dict[str, Any]:
    """A section as plain values, for people to look at: of a secret only whether it is set."""
    return {field.name: _open(getattr(section, field.name), field.type) for field in msgspec.structs.fields(section)}


def _open(value: Any, hint: Any) -> Any:
    extra = _extra(hint)
    if extra.get("secret") or extra.get("kept"):
        return "…" if value else ""
    if isinstance(value, Struct):
        return without_secrets(value)
    if isinstance(value, dict):
        return {key: _open(each, None) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_open(each, None) for each in value]
    return re.sub(r"//[^/@\s]+@", "//…@", value) if isinstance(value, str) else value


class _Layer(Struct):
    """One source of settings. `place` tells, for a path of keys as they are written there, where that is."""

    values: Mapping[str, Any]
    place: Callable[[tuple[str, ...]], str]
    environ: Mapping[str, str] | None = None  # where ${…} in a value is looked up, if it means anything

    def refuse(self, path: tuple[str, ...], sentence: str) -> NoReturn:
        raise SettingsError(f"{self.place(path)}: {sentence}")


class _Typed(str):
    """Text from the environment: to be read as whatever the setting's type is."""

    __slots__ = ()


def _layers(
    home: Path, environ: Mapping[str, str], overrides: Mapping[str, Any], tree: dict[str, Any]
) -> Iterator[_Layer]:
    found = [path for path in (home / "config.toml", home / "config.json") if path.exists()]
    if len(found) == 2:
        raise SettingsError(f"There are two settings files, {found[0]} and {found[1]}; keep one and remove the other.")
    for path in found:
        yield _read_file(path, environ)
    names = tree.get("providers", {}).get("accounts", {})
    yield _read_environment(environ, {name.casefold().replace("-", "_"): name for name in names})
    yield _Layer(overrides, lambda path: f"The settings given to open(), {'.'.join(path) or 'all of them'}", environ)


def _read_file(path: Path, environ: Mapping[str, str]) -> _Layer:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{path}: the settings file cannot be read ({error.strerror})") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path}, line {line}: the file is not UTF-8 text; save it as UTF-8") from error
    values = _parse_toml(path, text) if path.suffix == ".toml" else _parse_json(path, text)

    def place(keys: tuple[str, ...]) -> str:
        lines = _lines_of_toml(text) if path.suffix == ".toml" else _lines_of_json(text)
        known = next((keys[:n] for n in range(len(keys), 0, -1) if keys[:n] in lines), None)
        return f"{path}, line {lines[known]}" if known else str(path)

    return _Layer(values, place, environ)


def _parse_toml(path: Path, text: str) -> dict[str, Any]:
    import tomllib  # takes longer to load than a small file to parse, and a home may have no file

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error), re.DOTALL)
        problem, line = (where[1], where[2]) if where else (str(error), None)
        line = line or text.count("\n") + 1
        raise SettingsError(f"{path}, line {line}: this is not valid TOML ({_without_quotes(problem)})") from error
    except RecursionError as error:
        raise SettingsError(f"{path}: the values are nested too deeply") from error


def _parse_json(path: Path, text: str) -> dict[str, Any]:
    try:
        values = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        where = re.fullmatch(r"(.*) \(byte (\d+)\)", str(error))
        problem, byte = (where[1], int(where[2])) if where else ("it ends too early", len(text.encode()))
        line = text.encode().count(b"\n", 0, byte) + 1
        problem = problem.removeprefix("JSON is malformed: ")
        raise SettingsError(f"{path}, line {line}: this is not valid JSON ({problem})") from error
    except RecursionError as error:
        raise SettingsError(f"{path}: the values are nested too deeply") from error
    if not isinstance(values, dict):
        raise SettingsError(f"{path}, line 1: the file must be one JSON object, {{…}}")
    return values


def _without_quotes(problem: str) -> str:
    """The parser may quote what it could not read, which may be half of a key."""
    return re.sub(r"(['\"]).{5,}\1", "…", problem)


def _lines_of_toml(text: str) -> dict[tuple[str, ...], int]:
    """Where each key stands, as far as a look at every line tells (a key inside {…} is not found)."""
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    rows: dict[tuple[str, ...], int] = {}
    key = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
    keys = rf"{key}(?:\s*\.\s*{key})*"
    for number, line in enumerate(text.split("\n"), 1):
        if header := re.match(rf"\s*\[(\[?)\s*({keys})\s*\]", line):
            path = table = tuple(part.strip("\"'") for part in re.findall(key, header[2]))
            if header[1]:  # one of several, which are counted
                rows[table] = rows.get(table, 0) + 1
                path = table = (*table, str(rows[table]))
        elif assigned := re.match(rf"\s*({keys})\s*=", line):
            path = (*table, *(part.strip("\"'") for part in re.findall(key, assigned[1])))
        else:
            continue
        for depth in range(1, len(path) + 1):
            lines.setdefault(path[:depth], number)
        lines[path] = number
    return lines


def _lines_of_json(text: str) -> dict[tuple[str, ...], int]:
    lines: dict[tuple[str, ...], int] = {}
    open_keys: list[str] = []
    key = last = ""
    for token in re.finditer(r'"(?:\\.|[^"\\])*"|[{}\[\]:]', text):
        match token[0]:
            case ":":
                key = last
                lines[*open_keys[1:], key] = text.count("\n", 0, token.start()) + 1
            case "{" | "[":
                open_keys.append(key)
                key = ""
            case "}" | "]":
                open_keys.pop()
            case string:
                last = msgspec.json.decode(string)
    return lines


_PREFIX = "EVERLOOP_"
_NOT_SETTINGS = {"EVERLOOP_HOME"}


def _read_environment(environ: Mapping[str, str], names: Mapping[str, str]) -> _Layer:
    """`names` are the providers of the file, by the form that a variable can spell."""
    values: dict[str, Any] = {}
    variables: dict[tuple[str, ...], str] = {}
    for variable in sorted(environ):
        keys = tuple(variable.removeprefix(_PREFIX).lower().split("__"))
        if not variable.startswith(_PREFIX) or variable in _NOT_SETTINGS or not _means_a_setting(keys):
            continue
        if keys[0] == "providers" and len(keys) > 1:
            keys = (keys[0], names.get(keys[1], keys[1]), *keys[2:])
        into = values
        for depth, key in enumerate(keys[:-1], 1):
            variables.setdefault(keys[:depth], variable)
            into = into.setdefault(key, {})
            if isinstance(into, str):
                raise SettingsError(f"{variable}: {variables[keys[:depth]]} is set too; keep one of them")
        into[keys[-1]] = _Typed(environ[variable])
        variables[keys] = variable

    def place(path: tuple[str, ...]) -> str:
        return next(variables[path[:n]] for n in range(len(path), 0, -1) if path[:n] in variables)

    return _Layer(values, place)


def _means_a_setting(keys: tuple[str, ...]) -> bool:
    """EVERLOOP_X without `__` may belong to someone else, unless it is or nearly is a key of the file."""
    return len(keys) > 1 or keys[0] in Settings.__struct_fields__ or bool(_nearest(keys[0], Settings, 0.8))


def _section(layer: _Layer, shape: type[Struct], values: Any, path: tuple[str, ...]) -> dict[str, Any]:
    """A table of one layer with our names for the keys and every value checked."""
    if isinstance(values, _Typed):
        values = _read_json(values)
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        layer.refuse(path, f"{'.'.join(path)} must be a table of settings")
    if shape is Providers:
        return _providers(layer, values, path)
    fields = {field.name: field for field in msgspec.structs.fields(shape)}
    tree: dict[str, Any] = {}
    for written, value in values.items():
        where = (*path, str(written))
        name = _snake(str(written))
        if name not in fields:
            layer.refuse(where, _unknown(where, shape))
        if name in tree:
            layer.refuse(where, f"{'.'.join(where)} is given twice, with and without capitals; keep one of them")
        field = fields[name]
        if value is None and not _is_section(field.type):  # null in JSON: as if nothing had been said
            tree[name] = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
        elif _is_section(field.type):
            tree[name] = _section(layer, field.type, value, where)
        elif kind := _kind_of_sections(field.type):
            tree[name] = _named_sections(layer, kind, value, where)
        elif kind := _kind_of_rows(field.type):
            tree[name] = _rows(layer, kind, value, where)
        else:
            tree[name] = _value(layer, field.type, value, where)
    return tree


def _providers(layer: _Layer, values: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    tree: dict[str, Any] = {"accounts": {}}
    for name, value in values.items():
        if name == "embedded":
            tree["embedded"] = _section(layer, Embedded, value, (*path, name))
        else:
            tree["accounts"][name] = _section(layer, Account, value, (*path, name))
    return tree


def _named_sections(layer: _Layer, kind: type[Struct], values: Any, path: tuple[str, ...]) -> dict[str, Any]:
    """Tables under names that are the owner's to give."""
    if isinstance(values, _Typed):
        values = _read_json(values)
    if not isinstance(values, Mapping):
        layer.refuse(path, f"{'.'.join(path)} must be a table of tables")
    return {str(name): _section(layer, kind, value, (*path, str(name))) for name, value in values.items()}


def _rows(layer: _Layer, kind: type[Struct], values: Any, path: tuple[str, ...]) -> list[dict[str, Any]]:
    """A list of tables, each of which is checked as strictly as one that stands alone."""
    if isinstance(values, _Typed):
        values = _read_json(values)
    if not isinstance(values, list | tuple):
        layer.refuse(path, f"{'.'.join(path)} must be a list of tables")
    return [_section(layer, kind, value, (*path, str(number))) for number, value in enumerate(values, 1)]


def _value(layer: _Layer, hint: Any, value: Any, path: tuple[str, ...]) -> Any:
    if _extra(hint).get("kept"):
        return _plain(value)
    wants = _without_none(hint)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if layer.environ is not None:
        value = _expanded(layer, layer.environ, value, path)
    if isinstance(value, _Typed):
        if wants is not hint and not value:
            return None
        value = _read(value, wants)
    try:
        return _checked(value, wants)
    except ValueError:  # msgspec's sentence may quote the value, and does not know the key
        layer.refuse(path, f"{'.'.join(path)} must be {_expected(wants)}")


def _checked(value: Any, wants: Any) -> Any:
    if get_origin(wants) is not Literal:
        return msgspec.convert(value, wants)
    if not any(option == value and type(option) is type(value) for option in get_args(wants)):
        raise ValueError
    return value


_REFERENCE = re.compile(r"\$(\$?)\{([^}]*)\}")


def _expanded(layer: _Layer, environ: Mapping[str, str], value: Any, path: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping):
        pairs = ((key, _expanded(layer, environ, item, (*path, str(key)))) for key, item in value.items())
        return {key: str(item) if isinstance(item, _Typed) else item for key, item in pairs}
    if not isinstance(value, str) or "${" not in value:
        return value
    name = ".".join(path)

    def look_up(reference: re.Match[str]) -> str:
        if reference[1]:
            return reference[0][1:]
        if not re.fullmatch(r"[A-Za-z_]\w*", reference[2]):
            layer.refuse(path, f"{name} has a ${{…}} without the name of a variable; write $${{ for a plain ${{")
        if reference[2] not in environ:
            layer.refuse(path, f"{name} needs the environment variable {reference[2]}, which is not set")
        return environ[reference[2]]

    return _Typed(_REFERENCE.sub(look_up, value))


def _read(text: _Typed, wants: Any) -> Any:
    """Text as the type that is wanted; as it is when it cannot be."""
    base = get_args(wants)[0] if get_origin(wants) is Annotated else wants
    if base is str or (get_origin(base) is Literal and base != Literal[True]):
        return str(text)
    if base in (bool, Literal[True]):
        return {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False,
                "off": False}.get(text.strip().lower(), str(text))  # fmt: skip
    if get_origin(base) is tuple and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    if base in (int, float):
        try:
            return base(text.strip())
        except ValueError:
            return str(text)
    return _read_json(text)


def _read_json(text: str) -> Any:
    try:
        return msgspec.json.decode(str(text))
    except (msgspec.DecodeError, RecursionError):
        return str(text)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, _Typed):
        return _read_json(value) if value[:1] in ("{", "[") else str(value)
    return value


def _lay_over(below: dict[str, Any], above: Mapping[str, Any]) -> None:
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(below.get(key), dict):
            _lay_over(below[key], value)
        else:
            below[key] = value


def _built(shape: type[Struct], tree: Mapping[str, Any]) -> Struct:
    made = dict(tree)
    for field in msgspec.structs.fields(shape):
        if field.name in made and _is_section(field.type):
            made[field.name] = _built(field.type, made[field.name])
        elif field.name in made and (kind := _kind_of_sections(field.type)):
            made[field.name] = {name: _built(kind, section) for name, section in made[field.name].items()}
        elif field.name in made and (kind := _kind_of_rows(field.type)):
            made[field.name] = tuple(_built(kind, row) for row in made[field.name])
    return shape(**made)


def _is_section(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct)


def _kind_of_sections(hint: Any) -> type[Struct] | None:
    """What the values of a table of named tables are."""
    kind = get_args(hint)[1] if get_origin(hint) is dict else None
    return kind if _is_section(kind) else None


def _kind_of_rows(hint: Any) -> type[Struct] | None:
    """What the rows of a list of tables are."""
    kind = get_args(hint)[0] if get_origin(hint) is tuple else None
    return kind if _is_section(kind) else None


def _extra(hint: Any) -> dict[str, Any]:
    metas = [note for note in get_args(hint)[1:] if isinstance(note, Meta)] if get_origin(hint) is Annotated else []
    return {key: value for meta in metas for key, value in (meta.extra or {}).items()}


def _without_none(hint: Any) -> Any:
    if get_origin(hint) is UnionType or NoneType in get_args(hint):
        return next(kind for kind in get_args(hint) if kind is not NoneType)
    return hint


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda capital: "_" + capital[1].lower(), name)


def _unknown(path: tuple[str, ...], shape: type[Struct]) -> str:
    near = _nearest(path[-1], shape, 0.6)
    hint = f"did you mean {near}?" if near else f"the keys here are {', '.join(shape.__struct_fields__)}"
    return f"there is no setting {'.'.join(path)}; {hint}"


def _nearest(name: str, shape: type[Struct], cutoff: float) -> str:
    from difflib import get_close_matches  # only a mistake needs it

    return next(iter(get_close_matches(_snake(name).lower(), shape.__struct_fields__, 1, cutoff)), "")


_WORDS: dict[Any, str] = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def _expected(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        base, *notes = get_args(hint)
        limits = [(meta.ge, meta.le) for meta in notes if isinstance(meta, Meta)]
        words = [f"at least {low:g}" for low, _ in limits if low is not None]
        words += [f"at most {high:g}" for _, high in limits if high is not None]
        return " ".join([_expected(base), "of" if words else "", " and ".join(words)]).strip()
    if get_origin(hint) is Literal:
        return " or ".join("true" if option is True else f'"{option}"' for option in get_args(hint))
    return "a list of text" if get_origin(hint) is tuple else _WORDS.get(hint, "a table of text")


def _shown(value: Any, hint: Any) -> str:
    extra = _extra(hint)
    if value and (extra.get("secret") or extra.get("kept")):
        return "…"
    if isinstance(value, str):
        return repr(re.sub(r"//[^/@\s]+@", "//…@", value))
    return repr(value)
