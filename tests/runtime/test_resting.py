from everloop.core.log import ModelCalled, ModelSaid, UserSaid
from everloop.core.message import said
from everloop.core.thread import Thread
from everloop.runtime import resting
from everloop.runtime.resting import Resting


def thread(name: str, turns: int = 1) -> Thread:
    made = Thread(name)
    for _ in range(turns):
        made.extend([UserSaid(said("hi"), "ann", f"api:{name}", 1), ModelCalled("m"), ModelSaid("hello")])
    return made


def test_a_thread_that_rests_is_found_by_its_session_and_taken_as_it_was():
    known, kept = Resting(), thread("a")
    known.keep(kept)
    assert known.find("api:a") == "a"
    assert known.take("a") is kept
    assert known.find("api:a") == ""


def test_one_that_owes_an_answer_is_not_kept():
    known, running = Resting(), thread("a")
    running.add(UserSaid(said("more"), "ann", "api:a", 2))
    known.keep(running)
    assert known.find("api:a") == ""


def test_an_unknown_thread_begins_empty():
    assert Resting().take("a").seq == 0


def test_what_was_used_least_lately_gives_way_when_there_is_too_much():
    known = Resting()
    for name in ("a", "b", "c"):
        known.keep(thread(name, resting.MESSAGES // 5))
    assert [known.find(f"api:{name}") for name in ("a", "b", "c")] == ["", "b", "c"]
    known.keep(known.take("b"))
    known.keep(thread("d", resting.MESSAGES // 5))
    assert [known.find(f"api:{name}") for name in ("b", "c", "d")] == ["b", "", "d"]
