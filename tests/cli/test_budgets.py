"""`everloop users budget`, as the owner types it."""

from tests.cli.person import is_one_plain_sentence


async def test_a_budget_is_set_shown_changed_in_one_part_and_taken_away(person):
    await person.run("users", "add", "Anna", "--account", "telegram:1")
    none = await person.run("users", "budget", "anna")
    both = await person.run("users", "budget", "anna", "--tokens", "5,000", "--money", "2.5")
    one = await person.run("users", "budget", "anna", "--money", "none")
    shown = await person.run("users", "show", "telegram:1")
    house = await person.run("users", "budget", "house", "--money", "20")
    gone = await person.run("users", "budget", "anna", "--default", "--reset")
    assert none.out == gone.out == "There is no limit on what Anna may spend.\n"
    assert both.out.splitlines()[1].split() == ["month", "5,000", "tokens", "and", "$2.50", "0", "tokens,", "$0.00"]
    assert one.out.splitlines()[1].split() == ["month", "5,000", "tokens", "0", "tokens,", "$0.00"]
    assert one.out in shown.out
    assert house.out.splitlines()[1].split() == ["month", "$20.00", "0", "tokens,", "$0.00"]
    guests = await person.run("users", "budget", "guests")
    assert guests.out.splitlines()[1].split() == ["month", "2,000,000", "tokens", "0", "tokens,", "$0.00", "by", "role"]


async def test_what_cannot_be_a_budget_is_one_sentence(person):
    for words in (
        ("nobody",),
        ("owner", "--tokens", "many"),
        ("owner", "--money", "-1"),
        ("owner", "--money", "nan"),
        ("owner", "--tokens", "9" * 30),
        ("owner", "--per", "year"),
        ("house", "--per", "session", "--tokens", "5"),
        (),
    ):
        ran = await person.run("users", "budget", *words)
        assert (ran.status > 0, ran.out) == (True, "")
        assert is_one_plain_sentence(ran.err), ran.err


async def test_who_may_spend_nothing_more_is_told_so_at_the_terminal(person):
    await person.run("users", "budget", "owner", "--tokens", "0")
    ran = await person.run("agent", "-m", "hello")
    assert (ran.status, "You have spent 0 of 0 tokens this month." in ran.err) == (1, True)


async def test_what_holds_in_each_conversation_or_run_is_shown_without_what_was_spent(person):
    await person.run("users", "budget", "owner", "--tokens", "15000", "--per", "session")
    ran = await person.run("users", "budget", "owner", "--tokens", "15000", "--per", "job")
    rows = sorted(line.split(maxsplit=1) for line in ran.out.splitlines()[1:])
    assert rows == [
        ["job", "15,000 tokens in each run of a job"],
        ["session", "15,000 tokens in each conversation"],
    ]


async def test_a_limit_of_ones_own_and_that_of_the_role_are_not_set_together(person):
    ran = await person.run("users", "budget", "owner", "--default", "--tokens", "500")
    assert (ran.status, ran.out, is_one_plain_sentence(ran.err)) == (2, "", True)
    assert (await person.run("users", "budget", "owner")).out == "There is no limit on what owner may spend.\n"


async def test_who_limits_money_is_told_that_the_usual_model_has_no_price(person):
    limited = await person.run("users", "budget", "owner", "--money", "5")
    assert limited.err.startswith("custom/scripted has no price here, so nobody under a limit on money is answered")
    lifted = await person.run("users", "budget", "owner", "--money", "none")
    (person.home / "config.toml").write_text('[prices."custom/scripted"]\ninput = 1.0\noutput = 2.0\n')
    priced = await person.run("users", "budget", "owner", "--money", "5")
    assert (lifted.err, priced.status, priced.err) == ("", 0, "")


async def test_a_budget_without_a_limit_is_told_from_the_one_of_a_role_in_the_audit(person):
    await person.run("users", "budget", "owner", "--tokens", "none")
    await person.run("users", "budget", "owner", "--default")
    lines = (await person.run("audit")).out.splitlines()[1:]
    assert [line.split("owner")[-1].strip() for line in lines] == [
        "money none, per month, tokens none",
        "default true, per month",
    ]
