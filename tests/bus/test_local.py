"""Hints inside one process."""

from everloop.bus import feed
from everloop.bus.local import LocalBus
from everloop.ports.events import AnswerBegan, AnswerEnded, AnswerPiece


def chunk(n: int, text: str, thread: str = "t", **more: str) -> AnswerPiece:
    return AnswerPiece(thread, 2, n, text, **more)


START, END = AnswerBegan("t", 2, 2), AnswerEnded("t", 3, 2, kept=True)


async def test_a_subscriber_hears_its_thread_and_no_other():
    bus = LocalBus()
    with bus.subscribe("t") as events:
        bus.publish(chunk(1, "other", thread="u"))
        bus.publish(chunk(1, "mine"))
        assert await anext(events) == chunk(1, "mine")


async def test_one_who_listens_to_all_hears_all():
    bus = LocalBus()
    with bus.subscribe() as events:
        bus.publish(chunk(1, "a", thread="u"))
        bus.publish(chunk(1, "b"))
        assert [(await anext(events)).thread, (await anext(events)).thread] == ["u", "t"]


async def test_who_comes_late_gets_the_answer_so_far_as_one_chunk_and_then_what_follows():
    bus = LocalBus()
    for event in (START, chunk(1, "Hel", reasoning="hm "), chunk(2, "lo", reasoning="well")):
        bus.publish(event)
    with bus.subscribe("t") as events:
        bus.publish(chunk(3, " there"))
        assert [await anext(events), await anext(events)] == [
            chunk(2, "Hello", reasoning="hm well"),
            chunk(3, " there"),
        ]


async def test_a_draft_is_forgotten_when_the_answer_is_there():
    bus = LocalBus()
    for event in (START, chunk(1, "Hello"), END):
        bus.publish(event)
    with bus.subscribe("t") as events:
        bus.publish(START)
        assert await anext(events) == START


async def test_a_reader_that_is_too_slow_is_cut_off_and_holds_nobody_up():
    bus = LocalBus()
    with bus.subscribe("t") as slow:
        for n in range(feed.LIMIT + 10):
            bus.publish(chunk(n, "x"))
        heard = [event async for event in slow]
    assert len(heard) == feed.LIMIT


async def test_whoever_wants_signs_of_life_is_told_when_nothing_comes():
    bus = LocalBus()
    with bus.subscribe("t") as feed:
        bus.publish(chunk(1, "a"))
        bus.publish(chunk(2, "b"))
        heard = [await feed.next_ones(0.01) for _ in range(3)]
        assert [list(events) for events in heard] == [[chunk(1, "a"), chunk(2, "b")], [], []]
        bus.publish(chunk(3, "c"))
        feed.end()
        bus.publish(chunk(4, "after the end"))
        assert list(await feed.next_ones(0.01)) == [chunk(3, "c")]
        assert await feed.next_ones(0.01) is None


def test_wakes_and_cancels_reach_the_one_who_listens():
    bus, heard = LocalBus(), []
    bus.wake("nobody listens yet")
    bus.listen(lambda thread: heard.append(("wake", thread)), lambda thread: heard.append(("cancel", thread)))
    bus.wake("t")
    bus.cancel("u")
    assert heard == [("wake", "t"), ("cancel", "u")]
