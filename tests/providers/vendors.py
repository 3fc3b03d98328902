"""The vendors' own types as judges of a request. Their SDKs take seconds to import, so it is done on first use."""

from typing import Any

import pytest

from everloop.providers import dialects


def allowed(dialect: dialects.Name, body: dict[str, Any]) -> bool:
    """Whether the vendor of the dialect knows every field of this request and misses none."""
    from pydantic import ValidationError

    try:
        return _ask(dialect, body)
    except (ValidationError, AssertionError):
        return False


def _ask(dialect: dialects.Name, body: dict[str, Any]) -> bool:
    if dialect == "anthropic_messages":
        from tests.providers.test_anthropic_with_the_vendors_sdk import check

        check(pytest.importorskip("anthropic"), body)
        return True
    if dialect == "gemini":
        pytest.importorskip("google.genai")
        from tests.providers.test_gemini_with_the_vendors_sdk import understood

        return bool(understood(body))
    pytest.importorskip("openai")
    from tests.providers.test_responses_with_the_vendors_sdk import admits, params

    return admits(params(dialect), body)
