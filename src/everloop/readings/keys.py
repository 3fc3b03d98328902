"""Session keys made of what a platform or a client says: two different places never have the same key.

A key is text with separators in it, and what strangers call themselves may hold any of them. So each name is escaped
by itself, the separators stay plain, and a name that is too long for a key is told by its hash. Names of letters,
digits and `_.-~@` stay as they are.
"""

from functools import lru_cache
from hashlib import sha256

from ..core.mail import Address
from ..core.people import OWNER, chat_of, is_chat
from ..errors import BadSession
from ..ports.channel import traits_of

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~@")
LONGEST = 240  # characters of one name in a key; databases have a limit for the whole


def escaped(name: str) -> str:
    """A name without separators; different names stay different. Raises ValueError for what is no text."""
    try:
        plain = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in name.encode())
    except UnicodeEncodeError as error:
        raise ValueError("a name is not valid UTF-8 text") from error
    if len(plain) <= LONGEST:
        return plain
    return f"{plain[:100]}!{sha256(name.encode()).hexdigest()}"  # no escaped name has a ! in it


def name_of(escaped_name: str) -> str:
    """The name that was escaped so; one that is told by its hash stays as it is."""
    if "!" in escaped_name:
        return escaped_name
    head, *rest = escaped_name.encode().split(b"%")
    return b"".join((head, *(bytes.fromhex(each[:2].decode()) + each[2:] for each in rest))).decode()


def place_of(channel: str, *names: str, user: str, room: str, thread: str = "") -> Address:
    """Where something was said: in a room, or without one between a user and us alone, `@user`. `names` tell of which
    platform and server. An empty name is none."""
    at = f"@{escaped(user)}"
    if room:
        at = f"%40{escaped(room[1:])}" if room.startswith("@") else escaped(room)
    return Address(channel, "/".join((*map(escaped, names), at)), escaped(thread))


def is_of_two(address: Address) -> bool:
    """Whether it surely is a place of a user and us alone."""
    return traits_of(address.channel).places and address.chat.rpartition("/")[2].startswith("@")


def group_at(address: Address, owner: str) -> str:
    """The principal of the group that meets at a place (`place_of`), and is its owner's bot's: through another person's
    bot it is another one. "" for a place of two, and where addresses tell nothing of it."""
    door = address.channel
    if not traits_of(door).places or is_of_two(address):
        return ""
    return chat_of(door if owner == OWNER else f"{door}:{escaped(owner)}", address.chat)


def author_of(platform: str, user: str) -> str:
    """Who someone is: `<platform>:<account>`, where only the account may hold a `:`. Nobody is named as a group is."""
    author = f"{platform.replace('%', '%25').replace(':', '%3A')}:{user}"
    return f"%{ord(author[0]):02X}{author[1:]}" if is_chat(author) else author


def direct_place(door: str, account: str) -> Address:
    """Where the owner's bots speak with an account (`author_of`) alone, outside of any server."""
    platform, _, user = account.partition(":")
    return place_of(door, platform.replace("%3A", ":").replace("%25", "%"), "", user=user, room="")


@lru_cache(maxsize=1000)
def exact(key: str) -> Address:
    """The address that is written so and in no other way. Raises ValueError."""
    address = Address.parse(key)
    if str(address) != key:
        raise BadSession(f"a session key looks like channel:chat or channel:chat:thread, not {key!r}")
    return address
