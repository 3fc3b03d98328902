"""A SKILL.md as it is read: the fields, what is required, and a sentence about what is wrong."""

import pytest

from everloop.memory.skills.frontmatter import FrontmatterError, read, split
from everloop.memory.skills.skill import Skill, parse

HEAD = "---\nname: pdf\ndescription: Read pdfs.\n"


def skill(head: str, body: str = "Do it.") -> Skill:
    return parse("pdf", f"---\n{head}---\n\n{body}\n".encode())


def test_all_fields_of_the_format_are_read():
    found = skill(
        "name: pdf\ndescription: >\n  Read pdfs,\n  page by page.\nlicense: Apache-2.0\n"
        "compatibility: 'needs poppler'\n"
        "allowed-tools: Bash(git:*) Read\nalways: true\n"
        "metadata:\n  author: ann\n  everloop:\n    requires:\n      bins: [pdftotext, jq]\n"
        "      env:\n        - PDF_KEY\n"
    )
    assert found == Skill(
        name="pdf",
        description="Read pdfs, page by page.",
        body="Do it.",
        license="Apache-2.0",
        compatibility="needs poppler",
        allowed_tools=("Bash(git:*)", "Read"),
        always=True,
        bins=("pdftotext", "jq"),
        env=("PDF_KEY",),
    )


@pytest.mark.parametrize(
    "metadata",
    [
        """'{"nanobot": {"requires": {"bins": ["gh"], "env": ["T"]}}}'""",
        """{"nanobot": {"requires": {"bins": ["gh"], "env": ["T"]}}}""",
        '''"{\\"everloop\\": {\\"requires\\": {\\"bins\\": [\\"gh\\"], \\"env\\": [\\"T\\"]}}}"''',
        """\n  everloop: '{"requires": {"bins": ["gh"], "env": ["T"]}}\'""",
        "\n  nanobot:\n    requires:\n      bins: gh\n      env: T",
    ],
)
def test_what_it_requires_is_read_as_json_or_as_yaml(metadata: str):
    found = skill(f"description: x\nmetadata: {metadata}\n")
    assert (found.wrong, found.bins, found.env) == ("", ("gh",), ("T",))


def test_without_a_head_the_first_sentence_is_the_description():
    assert parse("pdf", b"# PDF\n\nReads pdfs.\n") == Skill("pdf", "Reads pdfs.", "# PDF\n\nReads pdfs.", bare=True)


BROKEN = {
    b"---\nname: pdf\n": "the frontmatter that begins with --- has no closing ---",
    b"---\nname: other\ndescription: x\n---\n": "its name is 'other', and its folder 'pdf': both have to be the same",
    b"---\nname: pdf\n---\n": "there is no description, by which the agent knows when to use it",
    b"---\ndescription: a\ndescription: b\n---\n": "line 3 of the frontmatter: description stands there twice",
    b"---\ndescription: &a x\n---\n": (
        "line 2 of the frontmatter: & (an anchor, an alias or a tag) is not read here; put the value in quotes"
    ),
    b"---\ndescription: 'x\n---\n": 'line 3 of the frontmatter: "\'x" is not closed',
    b"---\ndescription: x\n\tname: pdf\n---\n": (
        "line 3 of the frontmatter: a line begins with a tab; indent with spaces"
    ),
    b"---\nwhat is this\n---\n": "line 2 of the frontmatter: 'what is this' is no `key: value`",
    b"---\ndescription: x\nalways: maybe\n---\n": "always is true or false",
    b"---\ndescription: x\nmetadata: '{'\n---\n": "metadata is a text, but no JSON",
    b'---\ndescription: x\nmetadata: {"everloop": {"requires": {"bins": ["../x"]}}}\n---\n': (
        "metadata.requires.bins names '../x', which is no name"
    ),
    b"---\ndescription: " + b"x" * 1025 + b"\n---\n": "the description has more than 1,024 characters",
}


@pytest.mark.parametrize("content", BROKEN)
def test_what_is_wrong_is_said_in_a_sentence(content: bytes):
    assert parse("pdf", content) == Skill("pdf", wrong=f"SKILL.md: {BROKEN[content]}")


def test_what_cannot_be_read_is_said_too():
    assert parse("pdf", None) == Skill("pdf", wrong="there is no SKILL.md in it that can be read")
    unread = "its SKILL.md is not UTF-8 text, or longer than 80,000 bytes"
    assert parse("pdf", b"\xff\xfe") == Skill("pdf", wrong=unread)


@pytest.mark.parametrize("name", ["PDF", "a_b", "-a", "a--b", "a/b", "..", "", "a" * 65, "skíll"])
def test_a_folder_has_a_plain_name(name: str):
    assert parse(name, HEAD.encode()).wrong.startswith("its folder is called ")


DEEP = "a:\n" + "".join(f"{' ' * depth}k:\n" for depth in range(1, 12))


@pytest.mark.parametrize("text", ["a: {b: c}", "a:\n  c: d\n e: f", "- a", "a: |x\n  y", "a: !!python/object x", DEEP])
def test_what_is_not_read_is_refused(text: str):
    with pytest.raises(FrontmatterError):
        read(text)


def test_a_head_may_end_the_file_and_begin_with_a_mark():
    assert split("\ufeff---\r\na: b\r\n---") == ("a: b", "")
