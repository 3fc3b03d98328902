"""The shape of the settings file: each class is a table of it, each field a key with its type and its default."""

import re
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from ..readings.secret_parts import replaced, shown_arguments, text_parts
from .mcp import McpServerSection

Secret = Annotated[str, Meta(extra={"secret": True})]
Kept = Annotated[Any, Meta(extra={"kept": True})]  # for a later version: taken as it is, neither checked nor expanded
Url = Annotated[str, Meta(extra={"url": True})]  # shown without what may be a key in it
# Changed in the file by hand and nowhere else. Whoever sets these through an API could have this process read any file
# of the machine, or hand what it keeps to someone else.
_HOURS = r"^$|^(?:[01]\d|2[0-3]):[0-5]\d-(?:[01]\d|2[0-3]):[0-5]\d$"
Hours = Annotated[str, Meta(pattern=_HOURS, extra={"expected": "hours as 22:00-07:00, or empty"})]
_FILE = "names a file or a folder of this machine"
_SENT = "says where all that is kept or sent goes"
FilePath = Annotated[str, Meta(extra={"by_hand": _FILE})]
Referred = Annotated[str, Meta(extra={"secret": True, "references": True, "by_hand": _SENT})]
SentThrough = Annotated[str, Meta(extra={"secret": True, "by_hand": _SENT})]
Variables = Annotated[tuple[str, ...], Meta(extra={"by_hand": "lets commands see the environment of this process"})]
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
    small_model: str = ""  # for summaries and titles; "": the same model, and no titles
    titles: bool = True  # conversations of the page are named by the small model, if there is one
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
    memory_window: Count = 100  # messages that are not part of the memory yet, after which they become so


class ProfileSection(_Section, frozen=True):
    """A sub-agent with a name, to which tasks are handed on; what is empty is as in the conversation it works for."""

    description: str = ""  # what it is for: the model chooses by it
    prompt: str = ""  # told after what every sub-agent is told
    model: str = ""  # provider/model or a preset
    persona: str = ""
    tools: tuple[str, ...] | None = None  # names or patterns; `message` and `spawn` only where they are named in full
    steps: Count = 15
    budget_tokens: Annotated[int, Meta(ge=0)] = 0  # for one task; 0: as much as whoever asked may spend
    budget_money: Annotated[float, Meta(ge=0)] = 0.0  # dollars


class TaskSection(_Section, frozen=True):
    """Tasks that are handed on to sub-agents: how many, and how far that may go."""

    per_person: Count = 5  # are worked at side by side; others wait for their turn
    at_once: Count = 20  # of all people together, in one process
    open: Count = 100  # of one person, those that wait among them
    depth: Annotated[int, Meta(ge=1, le=5)] = 2  # of tasks of tasks
    steps: Count = 15  # of a task that no profile works at
    rounds: Count = 20  # of tasks that lead to tasks, with nobody saying anything


class Agents(_Section, frozen=True):
    defaults: Defaults = Defaults()
    profiles: dict[str, ProfileSection] = {}
    tasks: TaskSection = TaskSection()
    max_concurrent_turns: Count = 500
    shutdown_seconds: Annotated[float, Meta(ge=0, le=600)] = 5.0  # what a running step gets to finish


class AccountSection(_Section, frozen=True):
    """What is needed to speak to one provider."""

    api_key: Secret = ""
    api_key_file: FilePath = ""
    api_base: Url = ""
    model: str = ""
    headers: Annotated[dict[str, str], Meta(extra={"secret": True, "vault": True})] = {}
    dialect: Dialect | None = None  # None: as its row in the catalogue says
    answer_seconds: Annotated[float, Meta(ge=1, le=86400)] = 1800.0  # the most that an answer as a whole may take


class Preset(_Section, frozen=True):
    """A model under a name of the owner's, with the way it is asked; what is None is as in `agents.defaults`."""

    model: str = "auto"
    fallbacks: tuple[str, ...] | None = None
    reasoning_effort: Effort | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    max_tokens: Count | None = None
    context_window: Count | None = None


class PersonaSection(_Section, frozen=True):
    """Who the agent is at some places."""

    prompt: str = ""  # told after who the agent is
    tools: tuple[str, ...] | None = None  # names, or patterns such as web_*; None: all that the role allows
    model: str = ""  # provider/model or a preset; "": the usual
    max_tokens: Count | None = None  # that an answer may have at most
    open_to: Literal["user", "admin", "owner"] = "admin"  # the lowest role that may choose it with /persona
    places: tuple[str, ...] = ()  # default, channel:…, server:…, chat:…, thread:…


Dollars = Annotated[float, Meta(ge=0)]


class PriceSection(_Section, frozen=True):
    """US dollars for a million tokens, for models whose name fits the pattern that it stands under."""

    input: Dollars = 0.0
    output: Dollars = 0.0
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None


class EmbeddedSection(_Section, frozen=True):
    """The model that runs inside the process."""

    path: FilePath = ""
    threads: Annotated[int, Meta(ge=0)] = 0  # 0: as many as the machine has cores


class Providers(_Section, frozen=True):
    """In the file the accounts stand beside `embedded`: `providers.<name>`."""

    embedded: EmbeddedSection = EmbeddedSection()
    accounts: dict[str, AccountSection] = {}


Stance = Literal["allow", "ask", "deny"]


class PolicyRuleSection(_Section, frozen=True):
    """What is done with the calls of some tools, of any risk or of one; the first rule that fits counts."""

    tool: str = "*"  # a name, or a pattern such as exec*
    risk: Literal["", "low", "medium", "high"] = ""
    stance: Stance = "ask"


class Search(_Section, frozen=True):
    """With what web_search searches; "": with the first of these for which there is an address or a key."""

    engine: Literal["", "searxng", "brave", "tavily", "ddgs"] = ""
    api_key: Secret = ""  # of Brave, or of the engine that is named
    url: Url = ""  # of a SearxNG server


class WebSection(_Section, frozen=True):
    allow: tuple[str, ...] = ()  # hosts or networks, private ones too, that web_fetch may read
    search: Search = Search()


class Exec(_Section, frozen=True):
    timeout: Annotated[int, Meta(ge=1, le=86400)] = 600  # the most seconds that a command may ask for
    memory_mb: Annotated[int, Meta(ge=16)] = 2048
    processes: Annotated[int, Meta(ge=1)] = 256  # and threads
    disk_mb: Annotated[int, Meta(ge=1)] = 4096  # that a command may add to a file system
    files: Annotated[int, Meta(ge=1)] = 200_000
    env: Variables = ()  # names of variables that commands may see
    network: tuple[str, ...] = ()  # hosts that commands may reach, as pypi.org, *.example.com, git.example.com:22, *
    unsafe_without_sandbox: bool = False


class Tools(_Section, frozen=True):
    restrict_to_workspace: Literal[True] = True  # always, in this version; so that nobody believes it were off
    approvals: Stance = "ask"  # for what leaves the sandbox or speaks to others
    policy: tuple[PolicyRuleSection, ...] = ()
    plugins: tuple[str, ...] = ()  # names of tools that other packages bring
    disabled: tuple[str, ...] = ()  # names of built-in tools, or patterns such as exec*, that are left out
    web: WebSection = WebSection()
    exec: Exec = Exec()
    mcp_servers: dict[str, McpServerSection] = {}


class StoreSection(_Section, frozen=True):
    url: SentThrough = ""  # "": SQLite in the home; or postgresql://…
    lease_seconds: Annotated[float, Meta(ge=1, le=3600)] = 30.0


class Net(_Section, frozen=True):
    ca_file: FilePath = ""
    proxy: SentThrough = ""
    record: FilePath = ""  # a file or folder into which the calls to models are written, for tests to play


class GatewaySection(_Section, frozen=True):
    """Where the page and the APIs are served. Another interface than loopback needs TLS, or a proxy that has it."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 18790  # 0: any that is free
    allowed_hosts: tuple[str, ...] = ()  # further names under which it is reached, as agent.example.com or host:port
    allowed_origins: tuple[str, ...] = ()  # further pages that may call it, as https://app.example.com
    tls_cert: FilePath = ""  # files in PEM
    tls_key: FilePath = ""
    behind_proxy: bool = False  # a proxy in front of it speaks TLS
    connections: Annotated[int, Meta(ge=10, le=100_000)] = 2000  # open at once
    connections_per_address: Annotated[int, Meta(ge=10, le=100_000)] = 1000
    sockets_per_user: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    bytes_per_user: Annotated[int, Meta(ge=1_000_000)] | None = None  # as files.quota, which counts first
    request_seconds: Annotated[float, Meta(ge=1, le=3600)] = 30.0  # for a request to come in, and more as it comes
    mcp_tools: tuple[str, ...] = ()  # that MCP clients may call themselves: names, or patterns such as web_*


class FilesSection(_Section, frozen=True):
    """Where attachments and produced files are kept, and how much of them."""

    url: SentThrough = ""  # "": the folder `files` in the home; or s3://bucket/prefix
    endpoint: SentThrough = ""  # of an S3 server that is not Amazon's; "": as AWS_ENDPOINT_URL says
    region: SentThrough = ""
    access_key: SentThrough = ""  # "": as AWS_ACCESS_KEY_ID says
    secret_key: SentThrough = ""
    max_bytes: Annotated[int, Meta(ge=1_000_000)] = 1_000_000_000  # of one file
    quota: Annotated[int, Meta(ge=1_000_000)] | None = None  # of one person; None: 5 GB, and the owner's have no end
    guest_quota: Annotated[int, Meta(ge=100_000)] = 100_000_000
    link_seconds: Annotated[int, Meta(ge=60, le=31_536_000)] = 86_400  # for which a signed link holds


class BudgetSection(_Section, frozen=True):
    """What holds where `everloop users budget` has set nothing else; each a month, and 0 is no limit. Dollars."""

    guest_tokens: Annotated[int, Meta(ge=0)] = 200_000  # of each guest
    guest_money: Annotated[float, Meta(ge=0)] = 0.0
    guests_tokens: Annotated[int, Meta(ge=0)] = 2_000_000  # of all guests together
    guests_money: Annotated[float, Meta(ge=0)] = 0.0
    user_tokens: Annotated[int, Meta(ge=0)] = 0  # of each user; administrators and the owner have no limit
    user_money: Annotated[float, Meta(ge=0)] = 0.0
    warn_at: Annotated[float, Meta(ge=0, le=1)] = 0.8  # the share from which on one is told, once a period; 0: never
    cheaper_at: Annotated[float, Meta(ge=0, le=1)] = 0.0  # the share from which on cheaper_model answers; 0: never
    cheaper_model: str = ""  # "": agents.defaults.small_model
    # Who is asked, before a turn ends for want of room, whether it may go beyond; for guests nobody ever is
    ask: Literal["never", "admins", "requester"] = "never"


class UsersSection(_Section, frozen=True):
    # Who writes from an account that is nobody's; None: pair, or guest where a program brings the channel
    strangers: Literal["pair", "guest", "ignore"] | None = None
    guest_tools: tuple[str, ...] = ("web_search", "web_fetch", "read_file")  # that guests may use, of those that read
    budgets: BudgetSection = BudgetSection()


class SkillsSection(_Section, frozen=True):
    shared: tuple[str, ...] = ()  # the owner's installed skills that everybody has, guests too; guests also ours


class VoiceSection(_Section, frozen=True):
    """Who transcribes voice messages, by OpenAI's way of asking for it."""

    model: str = ""  # openai/whisper-1, groq/whisper-large-v3-turbo, …; "": nobody
    api_base: Url = ""  # of a server of one's own that needs no key, as http://127.0.0.1:8000/v1
    language: str = ""  # en, de, …; "": the model finds out
    max_seconds: Annotated[int, Meta(ge=1, le=3600)] = 600  # of one message
    minute_price: Annotated[float, Meta(ge=0)] | None = None  # dollars; None: what is known of the model's tokens


class SpeechSection(_Section, frozen=True):
    """Who reads answers aloud on the page, by OpenAI's way of asking for it."""

    model: str = ""  # openai/gpt-4o-mini-tts, …; "": nobody but the browser
    api_base: Url = ""  # of a server of one's own that needs no key, as http://127.0.0.1:8880/v1
    voice: Annotated[str, Meta(min_length=1, max_length=100)] = "alloy"  # as the host calls it
    format: Literal["mp3", "opus", "aac", "flac", "wav"] = "mp3"  # not every host has every one
    max_characters: Annotated[int, Meta(ge=100, le=100_000)] = 5000  # of one answer
    million_price: Annotated[float, Meta(ge=0)] | None = None  # dollars, for so many characters; None: as for tokens


class MemorySection(_Section, frozen=True):
    """What becomes of conversations: facts, MEMORY.md and HISTORY.md. See docs/consolidation.md."""

    enabled: bool = True
    idle_minutes: Annotated[int, Meta(ge=1, le=100_000)] = 30  # after which what is new in a conversation is remembered
    tokens_per_day: Annotated[int, Meta(ge=0)] = 200_000  # of each principal; 0: as their budgets say


class SchedulesSection(_Section, frozen=True):
    """What people have the agent do later, or again and again."""

    timezone: str = ""  # whose clock is meant where none is named, as Europe/Berlin; "": the machine's
    most_per_person: Annotated[int, Meta(ge=0, le=10_000)] = 50
    least_seconds: Annotated[int, Meta(ge=1)] = 300  # between two turns of one schedule


class HeartbeatSection(_Section, frozen=True):
    """HEARTBEAT.md is looked at again and again, and the agent asked when there is a reason. See docs/heartbeat.md."""

    enabled: bool = True
    every: Annotated[int, Meta(ge=1, le=10_080)] = 30  # minutes between two looks
    again_hours: Annotated[int, Meta(ge=0, le=8_784)] = 24  # after which an open line comes up again; 0: never
    quiet: Hours = ""  # in which nobody is asked or told
    session: str = ""  # where it answers; "": the owner's latest conversation
    people: bool = False  # also of everybody else who is no guest, in their own workspace


class TerminalSection(_Section, frozen=True):
    """The chat at a terminal. See docs/terminal.md."""

    theme: Literal["dark", "light", "ansi", "contrast", "plain"] = "ansi"
    notify: Literal["bell", "osc9", "osc777", "off"] = "bell"  # when a long turn is over, or something is asked
    notify_seconds: Annotated[int, Meta(ge=0, le=86_400)] = 10  # that a turn takes which is long
    title: bool = True  # the window is named after the conversation


class BackupSection(_Section, frozen=True):
    """Backups that are made by the gateway. See docs/backup.md."""

    folder: FilePath = ""  # "": the folder `backups` in the home
    every: Literal["", "daily", "weekly"] = ""  # "": none is made
    keep: Count = 7  # of those, the newest
    passphrase: Referred = ""  # by which they are encrypted: ${vault:NAME}, or ${NAME} for a variable


class Telemetry(_Section, frozen=True):
    """Spans for a collector of OpenTelemetry's."""

    otlp_endpoint: Url = ""  # http://localhost:4318; "": as OTEL_EXPORTER_OTLP_ENDPOINT says, else none are sent
    otlp_headers: Annotated[dict[str, str], Meta(extra={"secret": True})] = {}
    content: bool = False  # with what was said: prompts, answers, arguments and results


class Settings(_Section, frozen=True):
    agents: Agents = Agents()
    providers: Providers = Providers()
    models: dict[str, Preset] = {}
    personas: dict[str, PersonaSection] = {}
    prices: dict[str, PriceSection] = {}
    tools: Tools = Tools()
    store: StoreSection = StoreSection()
    net: Net = Net()
    workspace: FilePath = ""  # "": the folder `workspace` in the home
    channels: Kept = None
    gateway: GatewaySection = GatewaySection()
    files: FilesSection = FilesSection()
    users: UsersSection = UsersSection()
    skills: SkillsSection = SkillsSection()
    voice: VoiceSection = VoiceSection()
    speech: SpeechSection = SpeechSection()
    memory: MemorySection = MemorySection()
    schedules: SchedulesSection = SchedulesSection()
    heartbeat: HeartbeatSection = HeartbeatSection()
    terminal: TerminalSection = TerminalSection()
    backup: BackupSection = BackupSection()
    telemetry: Telemetry = Telemetry()
    foreign: Kept = None  # what a settings file of nanobot's says that has no place here; never written in ours


def without_secrets(section: Struct) -> dict[str, Any]:
    """A section as plain values, for people to look at: of a secret only whether it is set."""
    return {field.name: _open(getattr(section, field.name), field.type) for field in msgspec.structs.fields(section)}


def shown_value(value: Any, hint: Any = None) -> Any:
    """A value as plain data, without what may be a key in an address."""
    return _open(value, hint)


def _open(value: Any, hint: Any) -> Any:
    extra = notes_of(hint)
    if extra.get("secret") or extra.get("kept"):
        return "…" if value else ""
    if isinstance(value, Struct):
        return without_secrets(value)
    if isinstance(value, dict):
        return {key: _open(each, None) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_open(each, None) for each in (shown_arguments(value) if extra.get("arguments") else value)]
    if not isinstance(value, str):
        return value
    return masked(value) if extra.get("url") else shown_text(value)


def shown_text(text: str) -> str:
    """Any text without what is a secret by its shape, and without what may be a key in an address."""
    return replaced(text_parts(_ADDRESS.sub(lambda found: masked(found[0]), text)))


_ADDRESS = re.compile(r"(?:\b[a-zA-Z][\w+.-]*:)?//\S+")  # in any text


def masked(address: str) -> str:
    """An address without what may be a key in it: user and password, the values of its query, the fragment. Passwords
    are also written with a / in them, so whatever stands before an @ is taken for one."""
    address, hashed, _ = address.partition("#")
    address, asked, query = address.partition("?")
    before, at, host = address.rpartition("@")
    scheme = re.match(r"(?:[a-zA-Z][\w+.-]*:)?//", before)
    pairs = (f"{name}=…" if given else "…" for name, given, _ in (each.partition("=") for each in query.split("&")))
    start = f"{scheme[0] if scheme else ''}…@{host}" if at else host
    return start + (f"?{'&'.join(pairs)}" if asked else "") + ("#…" if hashed else "")


def notes_of(hint: Any) -> dict[str, Any]:
    metas = [note for note in get_args(hint)[1:] if isinstance(note, Meta)] if get_origin(hint) is Annotated else []
    return {key: value for meta in metas for key, value in (meta.extra or {}).items()}


def _shown(value: Any, hint: Any) -> str:
    extra = notes_of(hint)
    if value and (extra.get("secret") or extra.get("kept")):
        return "…"
    if isinstance(value, str):
        return repr(_open(value, hint))
    return repr(value)


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda capital: "_" + capital[1].lower(), name)


def nearest(name: str, shape: type[Struct], cutoff: float) -> str:
    from difflib import get_close_matches  # only a mistake needs it

    return next(iter(get_close_matches(snake(name).lower(), shape.__struct_fields__, 1, cutoff)), "")
