"""Comments in headers: (like this one (and in it)), which mean nothing."""


def uncommented(text: str) -> str:
    """The text with a space for each comment. They nest, and within a quoted string a parenthesis begins none. Raises
    ValueError for a comment or a quoted string that does not end."""
    kept, depth, quoted, at = [], 0, False, 0
    while at < len(text):
        each = text[at]
        if each == "\\" and (quoted or depth):  # the next one means nothing but itself
            kept.append("" if depth else text[at : at + 2])
            at += 2
            continue
        if each == '"' and not depth:
            quoted = not quoted
        if each == "(" and not quoted:
            depth += 1
        elif each == ")" and depth and not quoted:
            depth -= 1
            kept.append("" if depth else " ")
        elif not depth:
            kept.append(each)
        at += 1
    if depth or quoted:
        raise ValueError("a comment or a quoted string does not end")
    return "".join(kept)
