"""What runs for as long as the gateway does is seen in its metrics."""

from everloop.core.jobs import TaskState
from everloop.gateway.metrics import Metrics
from everloop.testing import ScriptedModel


async def test_long_running_tasks_stand_in_the_metrics(openings):
    door = await openings(ScriptedModel([]))
    async with door.client(await door.token(name="mine")) as client:
        text = await (await client.get("/metrics")).text()
    assert 'everloop_task{task="scheduler",state="running"} 1\n' in text
    assert 'everloop_task_restarts{task="scheduler"} 0\n' in text


def test_a_task_that_failed_is_seen_with_its_state_and_restarts():
    text = Metrics().tell({}, [TaskState("outbox telegram", "waiting", 0.0, 3, "ChannelDown: away")])
    assert 'everloop_task{task="outbox telegram",state="waiting"} 1\n' in text
    assert 'everloop_task_restarts{task="outbox telegram"} 3\n' in text
