"""A conversation that is deleted, as WebSockets hear of it."""

from typing import Any

from everloop.testing import Say, ScriptedModel, Shown


def line(shown: Shown) -> Any:
    return Say(f"you said: {shown.asked}")


async def test_those_who_watch_are_told_and_a_message_that_is_sent_again_is_not_worked_on_again(openings):
    model = ScriptedModel(line)
    door = await openings(model)
    token = await door.token()
    async with door.socket(token) as there, door.socket(token) as here, door.client(token) as client:
        answered = (await here.ask("hello", "m1", "page:home"))[-1]
        await there.send("watch")
        await there.send("status")
        await there.until("status_result")
        id = answered["thread"]
        assert (await client.delete(f"/api/sessions/{id}", params={"confirm": id})).status == 200
        news = (await there.until("news"))[-1]
        event = (await here.until("event", event="deleted"))[-1]
        again = (await here.ask("hello", "m1", "page:home"))[-1]
        fresh = (await here.ask("and on", "m2", "page:home"))[-1]
    assert (news["event"], news["session"], news["thread"]) == ("deleted", "page:home", id)
    assert event["thread"] == id
    assert (again["id"], again["content"]) == ("m1", "This conversation was deleted.")
    assert (fresh["content"], fresh["thread"] != id) == ("you said: and on", True)
    assert len(model.prompts) == 2
