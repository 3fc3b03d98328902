"""Every error, as a tree. Each one's text is a sentence that a person can act on.

EverloopError
├── SettingsError            the settings file or an override is wrong; names file, line and key
│   └── SettingsMoved        someone has changed the file since it was looked at
├── ThemeUnknown             a theme of the terminal that there is not; names those that there are
├── HomeError                the home cannot be used: read-only, a network file system, not a folder
├── BackupError              a backup cannot be made, read or restored
│   ├── BackupDamaged        it was changed, cut off, or is no backup
│   └── BackupLocked         it is encrypted, and the passphrase is missing or another one
├── StoreError
│   ├── StoreCorrupt         the database is damaged; it is left untouched
│   ├── StoreNewer           written by a newer everloop than this one
│   ├── StoreFull            no space, or the disk refused a write
│   │   └── StoreBroken      the disk has failed: nothing more is written before a restart
│   ├── StoreUnreachable     the database server does not answer
│   ├── ThreadGone           there is no such thread: it was deleted
│   └── Fenced               the lease on a thread has gone to someone else
├── VaultLocked              the key to the vault is missing, wrong, or can be read by others
├── MailRefused              a message that is not taken in: too long, empty, not text, or nobody's
│   ├── NoRoom               a file that is not kept: its sender has as many as they may
│   │   └── FileTooLarge     a file that is not kept: nobody may send one as large
│   ├── NoFile               a message names a file that its sender does not have
│   ├── BadSession           a session key that is none; a ValueError, too
│   └── BadSchedule          a schedule that is none; a ValueError, too
├── ReplayRefused            a recorded turn that cannot be run again: there is none of that name, or it is damaged
├── ProviderError            a model call failed
│   ├── KeyRefused           401, 403: the key is missing or wrong
│   │   ├── LoginDenied      the person said no
│   │   ├── LoginExpired     nobody said yes in time
│   │   └── OwnKeyRefused    a key of their own that somebody keeps here: nobody is asked in its place
│   ├── OutOfCredit          402: the account has nothing left
│   ├── UnknownModel         the host does not know the model
│   ├── RateLimited          429; may say how long to wait
│   ├── ContextOverflow      the prompt is longer than the model's window
│   ├── BadRequest           the host refuses the request as it is; another try will not help
│   │   └── NoVision         the model cannot see images, or read the document
│   ├── HostTimeout          no byte within the time limit
│   │   └── AnswerTimeout    an answer that goes on and does not end; it is paid for, and not asked for again
│   ├── HostUnreachable      no connection: name, network, TLS
│   │   └── HostHungUp       the connection was closed before the answer began
│   ├── HostFailed           5xx, or an answer that is not of the dialect
│   │   ├── AnswerOversized  a line, an event or an answer of more bytes than is taken; not asked for again
│   │   └── SocketRefused    a WebSocket was not opened: the host answers with a status, or not in that protocol
│   ├── StreamCut            the answer broke off in the middle
│   │   └── SocketClosed     a WebSocket has ended; says with which code, and why
│   └── ModelMissing         no model is configured, or the embedded one cannot be had
├── ChannelDown              a message could not be delivered, and surely was not
├── Undeliverable            a message was refused, and would be again
├── AddressRefused           a web address that a model, a user or a page has aimed where nobody may go
├── AnswerTooLarge           what came from there is more than is taken, as sent or as unpacked
├── PathRefused              a path of a workspace that its person cannot list, read, write or remove
├── ToolError                a tool's failure, written for the model to read
│   ├── LinkFailed           the network failed, not the call: a read may be tried once more
│   ├── AnswerLost           the call went out, and no answer came: it may have taken effect
│   │   └── McpLost          the server of an MCP tool was lost in mid-call, or did not answer in time; an McpDown, too
│   └── McpDown              an MCP server cannot be started or reached, hangs, or speaks another language
│       └── McpLogin         it wants somebody to log in first
├── Postponed                work that is to be done later, and why; no fault of anything
└── TurnFailed               a turn ended without an answer; carries the reason and the error's id
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .core.tool import FileChange


class EverloopError(Exception):
    """Anything that everloop raises on purpose."""


class SettingsError(EverloopError): ...


class SettingsMoved(SettingsError): ...


class ThemeUnknown(EverloopError): ...


class HomeError(EverloopError): ...


class BackupError(EverloopError): ...


class BackupDamaged(BackupError): ...


class BackupLocked(BackupError): ...


class StoreError(EverloopError): ...


class StoreCorrupt(StoreError): ...


class StoreNewer(StoreError): ...


class StoreFull(StoreError): ...


class StoreBroken(StoreFull): ...


class StoreUnreachable(StoreError): ...


class ThreadGone(StoreError): ...


class Fenced(StoreError): ...


class VaultLocked(EverloopError): ...


class MailRefused(EverloopError): ...


class GrantRefused(MailRefused):
    """What was to be allowed ahead does not fit the call that it was to be allowed with; nothing was decided."""


class NoRoom(MailRefused):
    code = "no_room"


class FileTooLarge(NoRoom):
    code = "too_large"


class NoFile(MailRefused): ...


class BadSession(MailRefused, ValueError): ...


class BadSchedule(MailRefused, ValueError): ...


class ReplayRefused(EverloopError): ...


class ProviderError(EverloopError):
    """A failed model call. `kind` is what the log keeps; `retryable` says that the same request may succeed later,
    `curable` that another model may answer it."""

    kind = "provider"
    retryable = False
    curable = True


class KeyRefused(ProviderError):
    kind = "key"


class OwnKeyRefused(KeyRefused):
    kind = "own_key"
    curable = False


class OutOfCredit(ProviderError):
    kind = "credit"


class LoginDenied(KeyRefused): ...


class LoginExpired(KeyRefused): ...


class UnknownModel(ProviderError):
    kind = "model"


class RateLimited(ProviderError):
    kind = "rate"
    retryable = True

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ContextOverflow(ProviderError):
    kind = "overflow"
    curable = False


class BadRequest(ProviderError):
    kind = "request"
    curable = False


class NoVision(BadRequest):
    kind = "vision"
    curable = True


class HostTimeout(ProviderError):
    kind = "timeout"
    retryable = True


class AnswerTimeout(HostTimeout):
    kind = "endless"
    retryable = False


class HostUnreachable(ProviderError):
    kind = "connection"
    retryable = True


class HostHungUp(HostUnreachable): ...


class HostFailed(ProviderError):
    kind = "server"
    retryable = True


class AnswerOversized(HostFailed):
    kind = "endless"
    retryable = False


class SocketRefused(HostFailed):
    """`status` is what the host answered, 101 when it agreed and did not mean it, and `body` the beginning of what it
    said with that. With `retry_after` it has said after how many seconds it may be asked again."""

    kind = "handshake"

    def __init__(self, message: str, status: int, body: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = body
        self.retry_after = retry_after
        self.retryable = status in (408, 425, 429) or status >= 500


class StreamCut(ProviderError):
    kind = "cut"
    retryable = True


class SocketClosed(StreamCut):
    """`code` and `reason` are the other side's: 1005 when it gave none, 1006 when it said no farewell. `why` tells a
    program how it ended: `closed` (by the other side), `cut` (no farewell), `silent` (no sign of life), `broken` (it
    does not keep to the protocol, or to the limits) or `left` (by us)."""

    kind = "closed"

    def __init__(self, message: str, why: str, code: int = 1006, reason: str = "") -> None:
        super().__init__(message)
        self.why = why
        self.code = code
        self.reason = reason


class ModelMissing(ProviderError):
    kind = "model"


class ChannelDown(EverloopError):
    """With `retry_after` the platform has said after how many seconds it may be tried again."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ChannelRefused(EverloopError):
    """The platform does not let us in: its token is wrong, or was taken back. It says what to do."""


class Undeliverable(EverloopError): ...


class AddressRefused(EverloopError): ...


class AnswerTooLarge(EverloopError): ...


class PathRefused(EverloopError):
    """`kind` tells a program why: `missing`, `exists`, `too_large`, `no_room` or `refused`."""

    def __init__(self, message: str, kind: str = "refused") -> None:
        super().__init__(message)
        self.kind = kind


class ToolError(EverloopError):
    """`changes` are what the call did to files before it failed, `background` is the command that may go on, `origin`
    names the stranger whose words are quoted."""

    def __init__(
        self, message: str, changes: "tuple[FileChange, ...]" = (), background: str = "", origin: str = ""
    ) -> None:
        super().__init__(message)
        self.changes = changes
        self.background = background
        self.origin = origin


class LinkFailed(ToolError): ...


class AnswerLost(ToolError): ...


class McpDown(ToolError):
    """`said` is the last that the server itself has said, with which the message ends."""

    def __init__(self, message: str, said: str = "", origin: str = "") -> None:
        super().__init__(f"{message}. The last that it said:\n{said}" if said else message, origin=origin)
        self.message = message
        self.said = said


class McpLost(McpDown, AnswerLost): ...


class McpLogin(McpDown): ...


class Postponed(EverloopError):
    """`seconds` is when it may be tried again."""

    def __init__(self, text: str, seconds: float) -> None:
        super().__init__(text)
        self.seconds = seconds


class TurnFailed(EverloopError):
    """`unknown` has a sentence for each call of which nobody knows whether it took effect; the message holds it too.
    `cut` is what had been said of an answer that was stopped or broke off, and `key` what the outbox has of it until
    whoever asked was told."""

    key = ""

    def __init__(self, message: str, reason: str, error_id: str, unknown: tuple[str, ...] = (), cut: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.error_id = error_id
        self.unknown = unknown
        self.cut = cut
