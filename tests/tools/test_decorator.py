"""From a typed function to what a model is shown, and from what a model writes to a checked call."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from everloop.core.tool import Effect, ToolCall, ToolSpec, parse_args, problems_of
from everloop.ports.tools import CallContext, Tool
from everloop.tools.decorator import schema_of, tool

CONTEXT = CallContext(key="t:1:0", thread="t", session="cli:direct", user="ann")
NOT_JSON = "the arguments are not valid JSON ("
SEND = "send one JSON object"
UNKNOWN = " is not a parameter; the parameters are query, limit, kind, tags"


@tool(Effect.READ, local=True, seconds=5)
async def search(
    query: Annotated[str, "what to look for"],
    limit: Annotated[int, Meta(ge=1, le=50, description="how many")] = 10,
    kind: Literal["web", "news"] = "web",
    tags: list[str] | None = None,
) -> str:
    """Look something up.

    The second paragraph is shown as well.
    """
    return f"{query} {limit} {kind} {tags}"


@tool(guarded=True, name="tell")
async def say(text: str, context: CallContext) -> str:
    """Say it."""
    return f"{context.user}: {text}"


def test_name_docstring_and_signature_become_the_spec() -> None:
    assert search.spec == ToolSpec(
        name="search",
        description="Look something up.\n\nThe second paragraph is shown as well.",
        schema={
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "what to look for"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50, "description": "how many", "default": 10},
                "kind": {"type": "string", "enum": ["web", "news"], "default": "web"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["query"],
        },
        effect=Effect.READ,
        local=True,
        seconds=5,
        closed=True,
    )


async def test_a_call_reaches_the_function() -> None:
    assert await search.run({"query": "x", "limit": 3}, CONTEXT) == "x 3 web None"


async def test_the_context_is_given_to_the_function_and_hidden_from_the_model() -> None:
    assert say.spec.schema["properties"] == {"text": {"type": "string"}}
    assert await say.run({"text": "hi"}, CONTEXT) == "ann: hi"


def test_a_tool_is_unsafe_unless_it_says_otherwise() -> None:
    assert (say.spec.name, say.spec.effect, say.spec.guarded, say.spec.local) == ("tell", Effect.UNSAFE, True, False)


async def test_the_decorator_works_without_brackets() -> None:
    @tool
    async def hello() -> str:
        return "hello"

    assert hello.spec == ToolSpec("hello", "", {"type": "object", "properties": {}, "required": []}, closed=True)
    assert await hello.run({}, CONTEXT) == "hello"


async def test_a_function_inside_a_function_sees_what_surrounds_it() -> None:
    def made(greeting: str) -> Tool:
        @tool(Effect.READ)
        async def greet(name: Annotated[str, "who"]) -> str:
            """Greet."""
            return f"{greeting} {name}"

        return greet

    assert made("hello").spec.schema["properties"] == {"name": {"type": "string", "description": "who"}}
    assert await made("hello").run({"name": "ann"}, CONTEXT) == "hello ann"


def test_a_local_type_in_a_textual_annotation_is_refused_in_a_sentence() -> None:
    Colour = Literal["red", "blue"]

    async def paint(colour: Colour) -> str:
        return colour

    with pytest.raises(TypeError, match="an annotation of paint names Colour, which is not at the top of its module"):
        tool(Effect.READ)(paint)


def test_a_function_that_is_not_async_is_refused() -> None:
    def slow(text: str) -> str:
        return text

    with pytest.raises(TypeError, match="a tool is an async function; write `async def slow`"):
        tool(Effect.READ)(slow)  # type: ignore[arg-type]


async def star(*words: str) -> str:
    return " ".join(words)


async def kwargs(**words: str) -> str:
    return " ".join(words)


async def positional(word: str, /) -> str:
    return word


@pytest.mark.parametrize("function", [star, kwargs, positional])
def test_a_parameter_that_cannot_be_given_by_name_is_refused(function: Any) -> None:
    with pytest.raises(TypeError, match=f"a tool's parameter is given by name, which .* of {function.__name__} cannot"):
        schema_of(function)


async def test_null_for_an_optional_parameter_is_the_default() -> None:
    """Many models write null for what they do not want to give."""
    call = ToolCall("1", "search", '{"query": "x", "limit": null, "kind": null, "tags": null}')
    assert problems_of(call, search.spec) == []
    assert await search.run(parse_args(call), CONTEXT) == "x 10 web None"


async def test_null_is_passed_on_where_it_is_a_value() -> None:
    @tool
    async def rate(stars: int | None = 3) -> str:
        return str(stars)

    assert await rate.run({"stars": None}, CONTEXT) == "None"
    assert await rate.run({}, CONTEXT) == "3"


async def shapes(  # type: ignore[no-untyped-def]
    a: str,
    b: int,
    c: float,
    d: bool,
    e: list[int],
    f: dict[str, int],
    g: int | str,
    h: Literal[1, "one"],
    i: list[dict[str, str]],
    j: Any,
    k: tuple[str, ...],
    l: list,  # type: ignore[type-arg]  # noqa: E741
    m,
) -> str:
    return ""


def test_the_types_of_python_have_their_schema() -> None:
    assert schema_of(shapes)["properties"] == {
        "a": {"type": "string"},
        "b": {"type": "integer"},
        "c": {"type": "number"},
        "d": {"type": "boolean"},
        "e": {"type": "array", "items": {"type": "integer"}},
        "f": {"type": "object"},
        "g": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "h": {"type": ["integer", "string"], "enum": [1, "one"]},
        "i": {"type": "array", "items": {"type": "object"}},
        "j": {},
        "k": {"type": "array", "items": {"type": "string"}},
        "l": {"type": "array"},
        "m": {"type": "string"},
    }


@pytest.mark.parametrize("hint", [bytes, object, Literal[b"x"], set[int]])
def test_a_type_that_no_model_can_write_is_refused(hint: Any) -> None:
    async def odd(x: Any) -> str:
        return ""

    odd.__annotations__["x"] = hint
    with pytest.raises(TypeError, match="a tool's parameter cannot be of type"):
        schema_of(odd)


@pytest.mark.parametrize(
    ("args", "problems"),
    [
        ('{"query": "x"}', []),
        ('{"query": "x", "limit": 5, "kind": "news", "tags": ["a"]}', []),
        ("", ["query is required"]),
        ("  ", ["query is required"]),
        ("{}", ["query is required"]),
        ('{"query": null}', ["query must be string, not null"]),
        ('{"query": 1}', ["query must be string, not 1"]),
        ('{"query": "x", "limit": "5"}', ['limit must be integer, not "5"']),
        ('{"query": "x", "limit": 5.5}', ["limit must be integer, not 5.5"]),
        ('{"query": "x", "limit": true}', ["limit must be integer, not true"]),
        ('{"query": "x", "limit": 0}', ["limit must be at least 1"]),
        ('{"query": "x", "limit": 51}', ["limit must be at most 50"]),
        ('{"query": "x", "kind": "maps"}', ["kind must be one of ['web', 'news']"]),
        ('{"query": "x", "tags": "a"}', ['tags must be array, not "a"']),
        ('{"query": "x", "tags": ["a", 2]}', ["tags[1] must be string, not 2"]),
        ('{"qeury": "x"}', ["query is required", f"qeury{UNKNOWN}"]),
        ('{"query": "x", "extra": null}', [f"extra{UNKNOWN}"]),
        ("[]", ["the arguments must be one JSON object"]),
        ('"x"', ["the arguments must be one JSON object"]),
        ("null", ["the arguments must be one JSON object"]),
        ('{"query": "x"', [f"{NOT_JSON}Input data was truncated); {SEND}"]),
        ("{'query': 'x'}", [f"{NOT_JSON}JSON is malformed: object keys must be strings (byte 1)); {SEND}"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_call_is_said_in_sentences(args: str, problems: list[str]) -> None:
    assert problems_of(ToolCall("1", "search", args), search.spec) == problems


@pytest.mark.parametrize(
    "args", ["[" * 100_000, '{"a":' * 100_000, '{"query": "\ud800"}', '{"query": "\\ud800"}', "\0", "{} {}"]
)
def test_arguments_that_no_parser_likes_are_one_problem_and_no_crash(args: str) -> None:
    [problem] = problems_of(ToolCall("1", "search", args), search.spec)
    assert problem.startswith(NOT_JSON)


def test_a_deep_value_where_anything_goes_is_no_problem() -> None:
    spec = ToolSpec("keep", "", {"type": "object", "properties": {"value": {"type": "array"}}})
    assert problems_of(ToolCall("1", "keep", f'{{"value": {"[" * 900}{"]" * 900}}}'), spec) == []


def test_a_long_value_is_shortened_in_the_sentence() -> None:
    [problem] = problems_of(ToolCall("1", "search", f'{{"query": {list(range(1000))}}}'), search.spec)
    assert len(problem) < 120


def test_schemas_of_others_are_checked_as_far_as_we_know_them() -> None:
    schema = {
        "type": "object",
        "properties": {
            "where": {
                "type": "object",
                "properties": {"lat": {"type": "number"}, "name": {"type": ["string", "null"]}},
                "required": ["lat"],
            },
            "mode": {"const": "fast"},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 3}]},
            "odd": {"type": "date-time-thing"},
        },
        "required": ["where"],
    }
    spec = ToolSpec("go", "", schema)
    good = '{"where": {"lat": 1, "name": null, "more": 1}, "mode": "fast", "either": 4, "odd": [], "unknown": 1}'
    assert problems_of(ToolCall("1", "go", good), spec) == []
    bad = '{"where": {"lat": "1", "name": 2}, "mode": "slow", "either": 2}'
    assert problems_of(ToolCall("1", "go", bad), spec) == [
        'where.lat must be number, not "1"',
        "where.name must be string or null, not 2",
        "mode must be 'fast'",
        "either fits none of the allowed forms",
    ]
    assert problems_of(ToolCall("1", "go", '{"where": {}}'), spec) == ["where.lat is required"]


def test_tools_that_the_same_lines_make_share_what_these_say_and_no_more() -> None:
    """Each person's tools are made anew; what was read of one must not be told of another that differs."""

    def made(most: int, kind: Any, usual: int, text: str = "It is made.") -> Tool:
        async def count(n: Annotated[int, Meta(le=most)] = usual, *, at: Any = None) -> str:
            return ""

        count.__annotations__ = {"n": Annotated[int, Meta(le=most)], "at": kind}
        count.__doc__ = text
        return tool(Effect.READ)(count)

    def shape(made: Tool) -> tuple[Any, ...]:
        properties = made.spec.schema["properties"]
        return properties["n"]["maximum"], properties["at"]["type"], properties["n"]["default"], made.spec.description

    first, again = made(5, str, 2), made(5, str, 2)
    assert again.spec.schema is first.spec.schema
    assert [shape(each) for each in (made(6, str, 2), made(5, int, 2), made(5, str, 3), made(5, str, 2, "Two."))] == [
        (6, "string", 2, "It is made."),
        (5, "integer", 2, "It is made."),
        (5, "string", 3, "It is made."),
        (5, "string", 2, "Two."),
    ]


def test_what_an_annotation_means_that_is_kept_as_text_is_what_its_own_module_says() -> None:
    """As in a file of a plugin, and in a copy of it in which the one word is another."""

    def kinds_in(module: str, kinds: str) -> Any:
        names: dict[str, Any] = {"__name__": module, "tool": tool}
        source = (
            f"from typing import Literal; Kind = Literal[{kinds}]\n@tool\nasync def light(kind: 'Kind') -> str: ..."
        )
        exec(compile(source, f"{module}.py", "exec"), names)
        return names["light"].spec.schema["properties"]["kind"]["enum"]

    assert [kinds_in("lamps", "'red', 'blue'"), kinds_in("doors", "'open'")] == [["red", "blue"], ["open"]]


def test_a_tool_with_a_default_that_has_no_hash_is_made_all_the_same() -> None:
    @tool
    async def gather(names: list[str] = ["ann"]) -> str:  # noqa: B006
        return ", ".join(names)

    assert gather.spec.schema["properties"]["names"]["default"] == ["ann"]
