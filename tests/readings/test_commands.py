"""What is a command, and what is said to the model."""

import pytest

from everloop.readings.commands import command_in, rest_of, unescaped


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("/help", "/help", ""),
        ("  /HELP  ", "/help", ""),
        ("/session rename  my tax ", "/session", "rename  my tax"),
        ("/model\nopenai/gpt", "/model", "openai/gpt"),
        ("/nonsense of mine", "/nonsense", "of mine"),
        ("/two-words", "/two-words", ""),
        ("/tmp", "/tmp", ""),
    ],
)
def test_a_word_after_a_slash_is_a_command(text: str, name: str, rest: str):
    assert (command_in(text), rest_of(text)) == (name, rest)


SAID = ["", "/", "//", "hi /help", "/etc/hosts is broken", "/2", "/v1 is old", "/a.b", "/ help", "// TODO: mend this",
        "//host/share", "/*comment*/", "/help, please", "/" + "x" * 40, "/süß", "—/help"]  # fmt: skip


@pytest.mark.parametrize("text", SAID)
def test_anything_else_is_said_as_it_is(text: str):
    assert (command_in(text), unescaped(text)) == ("", text)


@pytest.mark.parametrize(
    ("text", "said"), [("//help", "/help"), (" //tmp is full", "/tmp is full"), ("//a\nb", "/a\nb")]
)
def test_a_second_slash_says_it_to_the_model(text: str, said: str):
    assert (command_in(text), unescaped(text)) == ("", said)


@pytest.mark.parametrize("text", ["/help", "/nonsense", "/tmp is full"])
def test_what_looks_like_a_command_can_be_said_with_one_slash_more(text: str):
    assert unescaped(f"/{text}") == text
