"""Python that only works something out: no file is written, nothing is started, whatever the model thought of."""

import ast
import sys


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_MODULES = _set(
    "math cmath datetime statistics calendar decimal fractions itertools functools collections string re json csv "
    "operator random textwrap unicodedata zoneinfo"
)
_BUILTINS = _set("exec eval compile globals locals vars setattr delattr getattr breakpoint input help exit quit")


def is_pure(code: str) -> bool:
    """Whether a program can do nothing but calculate, read files and print. What does not parse can do nothing."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return True
    opened = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and _reads(node)}
    return all(_harmless(node, opened) for node in ast.walk(tree))


def shown_value(code: str) -> str:
    """The program as Python's prompt would run it: the value of a last expression, or of a last name, is printed."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return code
    if not tree.body or any(isinstance(node, ast.Call) and _is_print(node) for node in ast.walk(tree)):
        return code
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body[-1] = _printed(last.value)
    elif isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name):
        tree.body.append(_printed(ast.Name(last.targets[0].id, ast.Load())))
    else:
        return code
    return ast.unparse(ast.fix_missing_locations(tree))


def _printed(value: ast.expr) -> ast.Expr:
    return ast.Expr(ast.Call(ast.Name("print", ast.Load()), [value], []))


def _is_print(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "print"


def _reads(call: ast.Call) -> bool:
    """Whether this is `open` of a file that is only read."""
    if not (isinstance(call.func, ast.Name) and call.func.id == "open" and len(call.args) in (1, 2)):
        return False
    if any(isinstance(given, ast.Starred) for given in call.args):
        return False
    modes = [*call.args[1:], *(word.value for word in call.keywords if word.arg == "mode")]
    if any(word.arg not in ("mode", "encoding", "newline", "errors") for word in call.keywords):
        return False
    return all(isinstance(mode, ast.Constant) and mode.value in ("r", "rt", "rb") for mode in modes)


def _harmless(node: ast.AST, opened: set[int]) -> bool:
    match node:
        case ast.Import(names=names):
            return all(name.name in _MODULES for name in names)
        case ast.ImportFrom(module=module, level=level):
            known = level == 0 and module in _MODULES
            return known and all(_is_own(name.name) for name in node.names)
        case ast.Name(id="open"):
            return id(node) in opened
        case ast.Name(id=name):
            return name not in _BUILTINS and not name.startswith("__")
        case ast.Attribute(attr=attr):
            return _is_own(attr)
    return True


def _is_own(name: str) -> bool:
    """Whether it is a module's own: most modules also give away those that they import, such as `json.codecs`."""
    return not name.startswith("_") and name != "open" and (name in _MODULES or name not in sys.stdlib_module_names)
