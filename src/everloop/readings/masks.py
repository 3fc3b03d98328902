"""What looks like a secret in a text, by its shape: keys as hosts write them, passwords in addresses, `token = …`."""

import re
from functools import cache

# Keys as their hosts write them: known by how they begin, wherever they stand.
KEY_SHAPE = (
    r"\b(?:(?:sk-|ev_|xai-|gsk_|AIza|gh[pousr]_|github_pat_|glpat-|hf_|pplx-|nvapi-|csk-|fw_|xox[abeprs]-|npm_)[\w-]{12,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}\b|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]{0,8192})?)"
)
BEARER = r"(?i)\b((?:bearer|basic)\s+)[\w.~+/=-]{8,}"
# With what stands before the secret in a group. What may be repeated is bounded, for the text may be one that a
# stranger has made to be slow to search.
SHAPES = (
    r"(://[^/@\s:]*:)[^/@\s]+(?=@)",
    BEARER,
    r"(?i)([?&][^=&\s]{0,40}(?:key|token|secret|code|password)=)[^&\s]+",
    r"""(?i)\b((?:[\w-]{0,40}(?:api[_-]?key|token|secret)|password|authorization|cookie)["']?\s*[:=]\s*["']?)[^\s"',;}]{8,}""",
    KEY_SHAPE,
)
MASK = "***"


def masked_shapes(text: str) -> str:
    for shape in _compiled():
        text = shape.sub(lambda found: "".join(found.groups()) + MASK, text)
    return text


@cache
def _compiled() -> list[re.Pattern[str]]:
    return [re.compile(shape) for shape in SHAPES]
