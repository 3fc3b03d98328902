"""Slack's mrkdwn (https://docs.slack.dev/messaging/formatting-message-text).

It has no escapes but for `&`, `<` and `>`: a mark that is meant as itself is kept from its word by a character of no
width. Without an open `<` nobody is mentioned. `plain` is for `mrkdwn: false`, where these are escaped as well."""

import re
from collections.abc import Sequence

from .dialect import NO_WIDTH, LineDialect, Weight, with_address
from .tree import BOLD, CODE, ITALIC, STRIKE, Run, TextBlock
from .weaving import loosened, weave

_MARKS = {BOLD: "*", ITALIC: "_", STRIKE: "~"}
_LITERAL = re.compile(r"(?<!\w)[*_~](?=\S)")
_BACKTICK = "ˋ"  # where one cannot be escaped
_QUOTE = re.compile(r"^(?=\s*&gt;)", re.MULTILINE)


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Slack(LineDialect):
    limit = 4_000  # 40,000 are taken, more than 4,000 are not shown well
    table_width = 72
    bullet = "•"
    indents_code = False
    between: Weight = (6,)

    def tame(self, text: str) -> str:
        return escape(text)

    def inline(self, runs: Sequence[Run]) -> str:
        pieces: list[str] = []
        for closed, opened, text in weave(loosened(runs), self._run, self._mark, self._mark):
            after = opened + text
            if closed and (opened or after[:1].isalnum()):
                closed += NO_WIDTH
            if opened and not closed and pieces and pieces[-1][-1:].isalnum():
                opened = NO_WIDTH + opened
            pieces += [piece for piece in (closed + opened, text) if piece]
        return _QUOTE.sub(NO_WIDTH, "".join(pieces))

    def _mark(self, style: int) -> str:
        return _MARKS.get(style, "||")

    def _run(self, run: Run) -> str:
        if run.href:
            label = self._text(run.text.replace("\n", " "))
            return f"<{escape(run.href)}>" if with_address(run) == run.text else f"<{escape(run.href)}|{label}>"
        if run.style & CODE:
            code = escape(run.text.replace("\n", " ").replace("`", _BACKTICK))
            return f"`{code}`" if code.strip() else code
        return self._text(run.text)

    def _text(self, text: str) -> str:
        return _LITERAL.sub(lambda found: found[0] + NO_WIDTH, escape(text).replace("`", _BACKTICK))

    def heading(self, block: TextBlock) -> str:
        return self.inline([Run(run.text, run.style | BOLD, run.href) for run in block.runs])

    def code(self, block: TextBlock) -> str:
        return f"```\n{escape(unfenced(block.text))}\n```"

    def quoted(self, text: str) -> str:
        return "\n".join(f"&gt; {line}" if line else "&gt;" for line in text.split("\n"))

    def inner_quote(self) -> str:
        return "&gt; "


def unfenced(code: str) -> str:
    """Code that does not end the fence around it."""
    return code.replace("``", f"`{NO_WIDTH}`") if "```" in code else code


SLACK = Slack()
