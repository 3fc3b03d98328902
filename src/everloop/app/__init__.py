"""The wiring. What opens the house is loaded when it is first used: who only looks at a home needs little of it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .open_house import open as open
    from .open_house import open_desk as open_desk
    from .open_house import open_for_owner as open_for_owner
    from .open_house import open_own_desk as open_own_desk
    from .open_house import serve as serve

__all__ = ["open", "open_desk", "open_for_owner", "open_own_desk", "serve"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"everloop.app has no {name!r}")
    from . import open_house

    return getattr(open_house, name)
