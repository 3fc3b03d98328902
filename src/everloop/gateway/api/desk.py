"""What the page's API needs of the house beside what every door of the gateway needs."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ...core.conversation import Branch, Conversation, Deed
from ..house import House


class Sessions(Protocol):
    """Finding conversations and working out how to go on from them. Raises MailRefused."""

    async def find(self, id: str, owner: str, session: str = "") -> Conversation: ...

    async def go_to(self, conversation: Conversation, session: str, by: str) -> Deed: ...

    async def fork(self, conversation: Conversation, session: str, by: str, at: int | None = None) -> Branch: ...


class ChangeableSettings(Protocol):
    """The settings and keys of a house, as they can be changed while it is open."""

    async def look(self) -> Any:
        """`version`, `file`, `rows`, and what is `waiting` for the next start. Raises SettingsError."""
        ...

    def scopes_for(self, asked: Mapping[str, Any]) -> set[str]:
        """What a change needs beside `admin`. Raises SettingsError."""
        ...

    async def change(self, asked: Mapping[str, Any], version: str = "") -> Any:
        """As `look`, afterwards. Raises SettingsError, SettingsMoved, HomeError; then nothing has changed."""
        ...

    async def keys(self) -> Sequence[Any]: ...

    async def keep_key(self, name: str, key: str) -> list[str]:
        """What is to be known about it. Raises EverloopError."""
        ...

    async def forget_key(self, name: str) -> None: ...

    async def try_model(self, name: str) -> tuple[str, Sequence[Any]]:
        """Its name, and how it went. Raises ModelMissing."""
        ...


class Desk(House, Protocol):
    @property
    def notice(self) -> str:
        """What a person should know about the model."""
        ...

    @property
    def missing(self) -> str:
        """Why nobody can answer, if that is so."""
        ...

    @property
    def live_settings(self) -> ChangeableSettings: ...

    @property
    def sessions(self) -> Sessions: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that is set, with secrets left out."""
        ...
