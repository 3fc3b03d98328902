"""A prompt does not wait for what only an answer needs."""

import subprocess
import sys

HEAVY = {"markdown_it", "pygments", "difflib", "rich", "prompt_toolkit", "wcwidth"}
MODULES = ("markdown", "tool_view", "diffs", "approvals", "theme", "thoughts")


def loaded_by(program: str) -> set[str]:
    names = subprocess.check_output([sys.executable, "-c", f"{program}; import sys; print(*sys.modules)"], text=True)
    return HEAVY & set(names.split())


def test_what_takes_its_time_is_loaded_with_the_first_mark_and_the_first_fence():
    begin = "; ".join(f"import everloop.cli.chat_view.{name}" for name in MODULES)
    assert loaded_by(begin) == set()
    from_theme = "everloop.cli.chat_view.theme.theme_named('dark', True)"
    answer = f"{begin}; answer = everloop.cli.chat_view.markdown.StreamedMarkdown({from_theme}, lambda: 80)"
    assert loaded_by(f"{answer}; answer.feed('words\\n\\n- alone\\n\\n')") == set()
    assert loaded_by(f"{answer}; answer.feed('**bold**\\n\\n')") == {"markdown_it"}
    assert loaded_by(f"{answer}; answer.feed('```python\\nx\\n```\\n')") == {"pygments"}
