"""A program that has loaded everloop and forks, as servers with several workers do, is several processes."""

import os

from everloop.app.user import inbound_of


def named_by_a_fork() -> str:
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        os.write(write, inbound_of("hi", "api:default").event.encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    with os.fdopen(read) as told:
        return told.read()


def test_two_forks_of_one_program_name_their_messages_differently_so_that_neither_is_taken_for_a_repetition():
    names = [named_by_a_fork(), named_by_a_fork(), *(inbound_of("hi", "api:default").event for _ in range(2))]
    assert len({*names}) == 4
    first, second = names[2:]
    assert first[:-8] == second[:-8]  # in one process they begin alike and are in order
    assert first < second
