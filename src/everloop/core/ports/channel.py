"""Ways to speak with people."""

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from ..channel import Admitted, Declined, Delivered, FileRef, Hook, Incoming, Manifest, OutgoingPart, Rendered
from ..mail import Address, Outbound


class Deliver(Protocol):
    """What a channel is given: it says what has come in, and acknowledges it on its platform afterwards."""

    async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
        """Commit it, and with it where to resume. Raises StoreError: then it must not be acknowledged."""


class Channel(Protocol):
    """A way to speak with people. What else it can do are the Protocols that follow: it has those methods, or not."""

    @property
    def manifest(self) -> Manifest: ...

    async def run(self, deliver: Deliver, resume: str) -> None:
        """Listen, from where `resume` says ("" at first). It is begun again after a while when it raises; when it
        returns, there is nothing to listen to."""

    async def send(self, part: OutgoingPart) -> str:
        """Deliver and return the platform's id. Raises ChannelDown when surely nothing was delivered, Undeliverable
        when it never will be; after any other error it may have been."""


@runtime_checkable
class Renders(Protocol):
    """A channel that makes its own parts of an answer; what any other sends is one part."""

    def render(self, outbound: Outbound) -> Sequence[str | Rendered]:
        """The texts of its parts, at least one; the same of the same answer, whenever it is asked. Each is a few words
        shorter than the limit: `(delayed)` and the like may have to stand before it. With a Rendered, `send` is given
        the text without markup, too."""


@runtime_checkable
class Previews(Protocol):
    """A channel that can show a draft (`traits.preview`). What fails is not tried again."""

    async def preview(self, address: Address, shown: str, text: str) -> str:
        """Show it in place of what it returned before (`shown`, "" at first); returns what that is called. An empty
        text takes it away: the answer follows, or the turn is over."""


@runtime_checkable
class Signals(Protocol):
    """A channel that can say what goes on (`traits.typing`). What fails is not tried again."""

    async def signal(self, address: Address, what: Literal["typing", "done"]) -> None: ...


@runtime_checkable
class Fetches(Protocol):
    """A channel whose messages come with files."""

    async def fetch(self, ref: FileRef, limit: int) -> tuple[str, bytes]:
        """Its name and its bytes. Raises ChannelDown, or Undeliverable for more bytes than the limit."""


@runtime_checkable
class Hooked(Protocol):
    """A channel that is called by its platform, through the gateway."""

    def hooks(self, deliver: Deliver) -> Sequence[Hook]: ...


class Admission(Protocol):
    """Who may speak on a channel, decided before anything is committed."""

    async def admit(self, manifest: Manifest, incoming: Incoming) -> Admitted | Declined:
        """Raises StoreError."""
