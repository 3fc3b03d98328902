"""Runs a recorded turn again: the real driver, with a store of its own; what is outside is as it was then.

The tests that `everloop replay --as-test` writes import this.
"""

from .app.replay import Record, Replayed, cut, masked, name_of, replay, source_of, tools_now, turns_in

__all__ = ["Record", "Replayed", "cut", "masked", "name_of", "replay", "source_of", "tools_now", "turns_in"]
