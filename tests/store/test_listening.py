"""What is said of a channel counts as long as whoever said it holds its lease, over both databases."""

from tests.channels.dead_letters import give_up

from everloop.ports.listening import ChannelStanding, Traffic

from .conftest import Home


async def test_what_is_said_counts_for_as_long_as_the_lease_is_held(home: Home):
    gateway, command = await home.connect(), await home.connect()
    assert await command.listening() == {}
    await gateway.keep_listening("channel:parrot", "listening")
    assert await command.listening() == {}  # nobody holds it
    assert await gateway.hold("channel:parrot", 30.0)
    assert await gateway.hold("unopened:hook", 30.0)
    assert await gateway.hold("owner:other", 30.0)
    await gateway.keep_listening("channel:parrot", "failed", "the parrot sleeps" * 1000)
    told = await command.listening()
    assert {lease: (each.state, each.why) for lease, each in told.items()} == {
        "channel:parrot": ("failed", ("the parrot sleeps" * 1000)[:2000]),
        "unopened:hook": ("starting", ""),
    }
    assert told["channel:parrot"].since > 1_700_000_000
    await gateway.let_go("channel:parrot")
    assert set(await command.listening()) == {"unopened:hook"}
    assert await command.hold("channel:parrot", 30.0)  # another goes on, and has said nothing yet
    assert (await gateway.listening())["channel:parrot"] == ChannelStanding("starting", "", 0.0)


async def test_nobody_listens_any_more_where_a_process_is_gone(sqlite_home: Home):
    gateway, command = await sqlite_home.connect(), await sqlite_home.connect()
    assert await gateway.hold("channel:parrot", 3000.0)
    await gateway.keep_listening("channel:parrot", "listening")
    assert set(await command.listening()) == {"channel:parrot"}
    await sqlite_home.lose(gateway)
    assert await command.listening() == {}


async def test_what_came_and_went_through_a_channel_is_counted(home: Home):
    store = await home.connect()
    assert await store.traffic("fake") == Traffic()
    await give_up(store, "one", "two")
    first = await store.traffic("fake")
    [row, _] = await store.undelivered()
    assert await store.send_again(row.id)
    waiting = await store.traffic("fake")
    (claimed,) = await store.due("fake")
    await store.settle(claimed.id, "sent", "r1")
    last = await store.traffic("fake")
    assert (first.last_out, first.waiting, first.given_up) == (0.0, 0, 2)
    assert (waiting.waiting, waiting.given_up) == (1, 1)
    assert (last.last_out > 1_700_000_000, last.last_in > 1_700_000_000) == (True, True)
    assert (last.waiting, last.given_up, await store.traffic("other")) == (0, 1, Traffic())
