"""`everloop personas`, as the owner types it."""

import msgspec
from tests.cli.person import is_one_plain_sentence


async def test_personas_are_made_given_places_shown_and_removed(person, tmp_path):
    (tmp_path / "soul.txt").write_text("Calm.")
    said = [
        (await person.run("personas", *words)).out
        for words in (
            (),
            (
                "add",
                "support",
                "--prompt",
                "You answer.",
                "--tools",
                "list_dir",
                "--max-tokens",
                "80",
                "--at",
                "channel:cli",
            ),
            ("add", "tutor", "--open-to", "user", "--file", f"SOUL.md={tmp_path / 'soul.txt'}"),
            ("use", "tutor", "default"),
            ("edit", "support", "--tools", "all", "--max-tokens", "0"),
        )
    ]
    assert said == [
        "There are no personas: the agent answers as itself. `everloop personas add NAME` makes one.\n",
        "support answers at channel:cli; `everloop personas use support PLACE` has it answer at a place.\n",
        "tutor answers nowhere yet; `everloop personas use tutor PLACE` has it answer at a place.\n",
        "At default tutor answers from the next turn on.\n",
        "support is changed, from the next turn on.\n",
    ]
    shown = msgspec.json.decode((await person.run("personas", "show", "tutor", "--json")).out)
    plain = {"prompt": "", "tools": None, "model": "", "max_tokens": 0}
    assert shown == {
        "persona": {**plain, "name": "tutor", "open_to": "user", "places": ["default"]},
        "files": {"SOUL.md": "Calm."},
    }
    context = await person.run("context")
    assert "support answers, by channel:cli.\n" in context.out
    removed = await person.run("personas", "remove", "support")
    assert removed.out.startswith("support is removed. From the next turn on at channel:cli tutor answers. ")
    told = msgspec.json.decode((await person.run("context", "--json")).out)["persona"]
    assert told == {"name": "tutor", "by": "default", "instead_of": ""}
    assert "SOUL.md" in (await person.run("personas", "show", "tutor")).out
    await person.run("-m", "/persona tutor")
    await person.run("-m", "hello")
    await person.run("personas", "remove", "tutor")
    gone = "tutor was chosen here, and is no longer there. The agent answers as itself, without a persona.\n"
    assert gone in (await person.run("context")).out


async def test_what_cannot_be_is_one_sentence(person):
    for words in (
        ("show", "nobody"),
        ("add", "No Name"),
        ("add", "a", "--tools", "fly"),
        ("add", "a", "--at", "somewhere"),
        ("add", "a", "--prompt-file", "/nowhere"),
        ("use", "none", "somewhere"),
        ("remove", "nobody"),
    ):
        ran = await person.run("personas", *words)
        assert (ran.status, ran.out) == (1, "")
        assert is_one_plain_sentence(ran.err), ran.err
    for words in (("edit", "a"), ("add", "a", "--file", "SOUL.md"), ("add", "a", "--open-to", "guest")):
        ran = await person.run("personas", *words)
        assert (ran.status, is_one_plain_sentence(ran.err)) == (2, True), ran.err


async def test_who_has_changed_a_persona_stands_in_the_audit_by_the_keys_alone(person):
    await person.run("personas", "add", "support", "--prompt", "You answer.")
    await person.run("personas", "use", "support", "channel:cli")
    await person.run("personas", "remove", "support")
    listed = msgspec.json.decode((await person.run("audit", "--json")).out)["lines"]
    noted = [(each["deed"], each["authority"], msgspec.json.decode(each["detail"])["keys"]) for each in listed]
    changed = ("settings.changed", "owner at the terminal")
    assert noted == [
        (*changed, ["personas.support.open_to", "personas.support.prompt"]),
        (*changed, ["personas.support.places"]),
        (*changed, ["personas.support"]),
    ]
