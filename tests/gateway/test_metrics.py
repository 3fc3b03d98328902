"""What runs for as long as the gateway does is seen in its metrics."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path

from everloop.app import serve
from everloop.bus.local import LocalBus
from everloop.gateway.metrics import Metrics
from everloop.gateway.ws.hub import Hub
from everloop.ports.jobs import TaskState
from everloop.runtime.clock import MACHINE
from everloop.runtime.supervisor import Supervised, Supervisor
from everloop.testing import ScriptedModel


async def test_long_running_tasks_stand_in_the_metrics(openings):
    door = await openings(ScriptedModel([]))
    async with door.client(await door.token(name="mine")) as client:
        text = await (await client.get("/metrics")).text()
    assert 'everloop_task{task="scheduler",state="running"} 1\n' in text
    assert 'everloop_task_restarts{task="scheduler"} 0\n' in text


async def test_what_the_gateway_itself_runs_for_long_is_supervised_and_seen(tmp_path: Path):
    async with serve(tmp_path, {"gateway": {"port": 0}}, provider=ScriptedModel([])) as gateway:
        tasks = [(task.name, task.state) for task in gateway.tasks()]
    names = (
        "keys",
        "lanes mail",
        "lanes leases",
        "lanes expiry",
        "fact vectors",
        "scheduler",
        "memory",
        "schedules",
        "heartbeat",
        "titles",
        "channels",
        "hub",
        "sockets",
        "connections",
    )
    assert tasks == [(name, "running") for name in names]
    assert {task.state for task in gateway.tasks()} == {"ended"}


class Deaf:
    """A house that cannot be listened to the first time, with the supervisor of a real one."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._bus = LocalBus()
        self.failed = False

    def supervise(self, name: str, work: Callable[[], Awaitable[object]]) -> Supervised:
        return self._supervisor.start(name, work)

    def events(self) -> AbstractContextManager[object]:
        if not self.failed:
            self.failed = True
            raise ConnectionError("nothing to hear")
        return self._bus.subscribe()


async def test_a_hub_that_fails_is_begun_again_and_its_failure_is_seen():
    async with Supervisor(MACHINE, spread=lambda: 0.0) as supervisor:
        async with Hub(Deaf(supervisor), Metrics()).open():  # it opens when somebody listens
            [state] = supervisor.states()
        assert (state.name, state.state, state.restarts) == ("hub", "running", 1)
        assert state.error == "ConnectionError: nothing to hear"


def test_a_task_that_failed_is_seen_with_its_state_and_restarts():
    text = Metrics().tell({}, [TaskState("outbox telegram", "waiting", 0.0, 3, "ChannelDown: away")])
    assert 'everloop_task{task="outbox telegram",state="waiting"} 1\n' in text
    assert 'everloop_task_restarts{task="outbox telegram"} 3\n' in text
