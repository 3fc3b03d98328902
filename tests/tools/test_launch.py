"""Ending what bubblewrap has begun before it has said whom."""

import os
import select
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from everloop.tools.sandbox.launch import Started


class Unheard:
    """A process that has begun another, which waits for its word, and has told nobody of it."""

    def __init__(self, folder: Path) -> None:
        # The child says that it is there by the FIFO, and keeps nothing of ours open.
        os.mkfifo(folder / "there")
        command = f"(echo $BASHPID >{folder}/there; exec sleep 1000) & wait"
        self._process = subprocess.Popen(["bash", "-c", command], start_new_session=True)
        self.child = int((folder / "there").read_text())
        self.pid = self._process.pid
        self.pidfd, self.childs = os.pidfd_open(self.pid), os.pidfd_open(self.child)
        info, said = os.pipe()
        waits, block = os.pipe()
        self._open = (said, waits)
        self.started = Started(self.pid, [self.pidfd], (-1, -1, -1), info, block)

    def close(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.childs, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self._process.returncode = 0  # the tests wait for it themselves
        self.started.close()
        for fd in (self.childs, *self._open):
            os.close(fd)


@pytest.fixture
def unheard(tmp_path: Path):
    made = Unheard(tmp_path)
    yield made
    made.close()


def test_its_child_ends_with_it(unheard: Unheard):
    unheard.started.kill()
    assert os.waitstatus_to_exitcode(os.waitpid(unheard.pid, 0)[1]) == -signal.SIGKILL
    assert select.select([unheard.childs], [], [], 30)[0] == [unheard.childs]  # a pidfd is readable at its end


def test_killed_alone_it_would_leave_its_child(unheard: Unheard):
    signal.pidfd_send_signal(unheard.pidfd, signal.SIGKILL)
    os.waitpid(unheard.pid, 0)
    signal.pidfd_send_signal(unheard.childs, 0)  # it is there
    assert select.select([unheard.childs], [], [], 0)[0] == []
