"""Chats of two that we begin ourselves."""

import re
from typing import Any

from ...errors import Undeliverable
from .codec import chat_of_room
from .homeserver import Homeserver, HomeserverRefused, path_of
from .rooms import Rooms

_USER = re.compile(r"@[^:\s]+:\S+")


class DirectChats:
    """Our own list of them (`m.direct`), which every client of ours would show. Raises as Homeserver does."""

    def __init__(self, server: Homeserver, rooms: Rooms, us: str) -> None:
        self._server = server
        self._rooms = rooms
        self._us = us
        self._list = path_of("user", us, "account_data", "m.direct")

    async def find_or_make(self, account: str, *, readable: bool) -> str:
        """The chat of a room in which nobody has ever been but we and this account, of several the latest; with
        `readable` none that is encrypted. Raises Undeliverable."""
        if not _USER.fullmatch(account) or account == self._us:
            raise Undeliverable(f"{account[:100]!r} is no user id of Matrix, such as @anna:example.org")
        listed = await self._listed()
        found = [room for room in reversed(_strings(listed.get(account))) if await self._is_with(room, account)]
        for room in found:
            if not readable or not await self._is_encrypted(room):
                return chat_of_room(room, direct=True)
        asked = {"preset": "trusted_private_chat", "is_direct": True, "invite": [account]}
        room = str((await self._server.post(path_of("createRoom"), asked))["room_id"])
        await self._add(listed, account, room)
        return chat_of_room(room, direct=True)

    async def note(self, account: str, room: str) -> None:
        """Somebody has begun it."""
        await self._add(await self._listed(), account, room)

    async def _add(self, listed: dict[str, Any], account: str, room: str) -> None:
        rooms = _strings(listed.get(account))
        if room not in rooms:
            await self._server.put(self._list, {**listed, account: [*rooms, room]})

    async def _listed(self) -> dict[str, Any]:
        try:
            listed = await self._server.get(self._list)
        except HomeserverRefused as error:
            if error.code != "M_NOT_FOUND":
                raise
            return {}
        return listed if isinstance(listed, dict) else {}

    async def _is_encrypted(self, room: str) -> bool:
        try:
            await self._server.get(path_of("rooms", room, "state", "m.room.encryption", ""))
        except HomeserverRefused as error:
            if error.code != "M_NOT_FOUND":
                raise
            return False
        return True

    async def _is_with(self, room: str, account: str) -> bool:
        """The list may be old: they may have left it, or others may have come."""
        try:
            member = await self._server.get(path_of("rooms", room, "state", "m.room.member", account))
        except HomeserverRefused as error:
            if not error.is_final:
                raise
            return False
        is_there = isinstance(member, dict) and member.get("membership") in ("join", "invite")
        return is_there and (await self._rooms.standing(room)).direct


def _strings(values: Any) -> list[str]:
    return [each for each in values if isinstance(each, str)] if isinstance(values, list) else []
