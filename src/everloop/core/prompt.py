"""What the model is shown, and what it answers."""

from typing import Any, Literal

from msgspec import Struct

from .message import Media, Message
from .task import Task
from .tool import ToolSpec


class Usage(Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens of one call. `input` counts all that was read, cached or not; `output` what was thought, too."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
        )


class Transcript:
    """The messages of a conversation since its last compaction; it only grows.

    `rendered` is a place for a dialect to keep what it has already turned into bytes,
    so that a long history is serialised once and not at every request. `media` are those that the messages name, and
    `files` their content, put there before a model is asked; what is missing there is shown by its name alone.
    """

    __slots__ = ("_text", "_told", "files", "media", "messages", "rendered")

    def __init__(self, messages: tuple[Message, ...] = ()) -> None:
        self.messages: list[Message] = []
        self.media: list[Media] = []
        self.files: dict[str, bytes] = {}
        self.rendered: dict[Any, Any] = {}
        self._text, self._told = "", 0  # what so many messages say
        for message in messages:
            self.add(message)

    def add(self, message: Message) -> None:
        self.messages.append(message)
        for part in message.parts:
            if isinstance(part, Media):
                self.media.append(part)

    @property
    def text(self) -> str:
        """All that is said in it, for whoever looks for a line; made once, and lengthened."""
        if fresh := self.messages[self._told :]:
            self._text += "".join([message.text + "\n" for message in fresh])
            self._told = len(self.messages)
        return self._text


Effort = Literal["", "none", "minimal", "low", "medium", "high"]  # "": as the model likes


class Offered(Struct, frozen=True, gc=False, omit_defaults=True):
    """A tool that a client runs itself: the model may call it, and the call is handed to the client."""

    name: str
    description: str = ""
    schema: dict[str, Any] = {}

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, self.schema)


class Terms(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a conversation may do, where that is less than its settings say: a task that was handed on has fewer steps
    and fewer tools. 0 steps are as many as always; `tools` are those that it has at most, None all of them. `task` is
    the one that it works at."""

    steps: int = 0
    tools: tuple[str, ...] | None = None
    task: Task | None = None

    def leaves(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools

    def within(self, earlier: "Terms | None") -> "Terms":
        """What is left where earlier ones hold as well: they are never widened."""
        if earlier is None:
            return self
        tools = earlier.tools if self.tools is None else tuple(filter(earlier.leaves, self.tools))
        steps = min(filter(None, (self.steps, earlier.steps)), default=0)
        return Terms(steps, tools, self.task or earlier.task)


class Brought(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a client brings along with what it says; it holds for that turn. Whatever is not given is as it would be.

    `digest` is that of the whole request, so that the same key with another request can be told from a repetition, and
    `id` what the client calls the turn by when it goes on from there. With `bare` the model is shown nothing of ours:
    neither tools nor who it is to be, but what the client brings."""

    model: str = ""
    instructions: str = ""
    tools: tuple[Offered, ...] = ()
    max_tokens: int = 0
    temperature: float | None = None
    top_p: float | None = None
    effort: Effort = ""
    outside: bool = False  # what is said are a stranger's words, such as the results of its tools
    digest: str = ""
    id: str = ""
    bare: bool = False

    def offers(self, name: str) -> bool:
        return any(tool.name == name for tool in self.tools)

    @property
    def has_wishes(self) -> bool:
        """Whether the model is to be told anything else, or otherwise, than without it."""
        told = self.instructions or self.tools or self.bare or self.max_tokens or self.effort
        return bool(told) or self.temperature is not None or self.top_p is not None


class Prompt(Struct, frozen=True, gc=False):
    """One request to a model. The prefix (system, tools, earlier messages) stays byte-stable; the tail does not."""

    model: str
    system: str
    transcript: Transcript
    tools: tuple[ToolSpec, ...] = ()
    tail: str = ""  # time, channel, sender: shown to this call only, never to later ones
    max_tokens: int = 8192
    temperature: float | None = None
    top_p: float | None = None
    effort: Effort = ""
    sees: bool = True  # False: media are shown by name alone
    conversation: str = ""  # the thread's id, for providers that keep a cache per conversation
    place: str = ""  # the workspace, for a model in this process that is told what lies there
    output_limit: int = 0  # of the model itself, thoughts included: max_tokens never goes beyond; 0: not known


Finish = Literal["stop", "length", "calls", "refused"]


class Section(Struct, frozen=True, gc=False):
    """`source` is where all of it can be read, should it be cut; `ranks` of its lines say which are left out first."""

    name: str
    text: str
    source: str = ""
    ranks: tuple[float, ...] = ()
