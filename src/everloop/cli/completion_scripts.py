"""What bash, zsh and fish complete of `everloop`: scripts that hold all words, so that Tab starts no program."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from .command_tree import CommandNode, Place

HEAD = "# What can follow `everloop`: made by `everloop completion {shell}`, version {version}. Tab starts no program."


def bash_script(nodes: Sequence[CommandNode], version: str) -> str:
    return f"""\
{HEAD.format(shell="bash", version=version)}
_everloop() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} at='' word i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${{COMP_WORDS[i]}}
        case "$at $word" in
{_bash_case(_places(nodes), '            {} ) at="$at $word" ;;')}
        esac
    done
    case "$at $prev" in
{_lines(_bash_values(nodes))}
    esac
    case "$at" in
{_lines(f"        {_quoted(_key(node.place))} ) word={_quoted(' '.join(_all(node)))} ;;" for node in nodes)}
    esac
    COMPREPLY=($(compgen -W "$word" -- "$cur"))
}}
complete -o default -F _everloop everloop
"""


def zsh_script(nodes: Sequence[CommandNode], version: str) -> str:
    return f"""\
#compdef everloop
{HEAD.format(shell="zsh", version=version)}
_everloop() {{
    local at='' word i
    local -a found
    for ((i = 2; i < CURRENT; i++)); do
        word=$words[i]
        case "$at $word" in
{_bash_case(_places(nodes), '            ({}) at="$at $word" ;;')}
        esac
    done
    case "$at $words[CURRENT-1]" in
{_lines(_zsh_values(nodes))}
    esac
    case "$at" in
{_lines(f"        ({_quoted(_key(node.place))}) found=({_zsh_words(node)}) ;;" for node in nodes)}
    esac
    _describe 'everloop' found || _files
}}
if [ "$funcstack[1]" = "_everloop" ]; then
    _everloop "$@"
else
    compdef _everloop everloop
fi
"""


def fish_script(nodes: Sequence[CommandNode], version: str) -> str:
    known = " ".join(_quoted(_key(place)) for place in _places(nodes))
    return f"""\
{HEAD.format(shell="fish", version=version)}
function __everloop_at --description 'Whether the words of a command have been typed, and no further one'
    set -l at ''
    for word in (commandline -opc)[2..]
        if contains -- "$at $word" {known}
            set at "$at $word"
        end
    end
    test "$at" = "$argv[1]"
end
complete -c everloop -e
{_lines(_fish_lines(nodes))}
"""


def _key(place: Place) -> str:
    return "".join(f" {word}" for word in place)


def _places(nodes: Sequence[CommandNode]) -> list[Place]:
    return [node.place for node in nodes if node.place]


def _all(node: CommandNode) -> list[str]:
    return [*node.words, *(name for option in node.options for name in option.names), *node.arguments]


def _bash_case(places: Sequence[Place], line: str) -> str:
    return line.format("|".join(_quoted(_key(place)) for place in places))


def _values(nodes: Sequence[CommandNode]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What may follow each option that takes a value; () where that can be anything."""
    for node in nodes:
        for option in node.options:
            if option.takes_value:
                yield "|".join(_quoted(f"{_key(node.place)} {name}") for name in option.names), option.choices


def _bash_values(nodes: Sequence[CommandNode]) -> Iterator[str]:
    for options, choices in _values(nodes):
        words = f'COMPREPLY=($(compgen -W {_quoted(" ".join(choices))} -- "$cur")); ' if choices else ""
        yield f"        {options} ) {words}return ;;"


def _zsh_values(nodes: Sequence[CommandNode]) -> Iterator[str]:
    for options, choices in _values(nodes):
        words = f"compadd -- {' '.join(map(_quoted, choices))}" if choices else "_files"
        yield f"        ({options}) {words}; return ;;"


def _zsh_words(node: CommandNode) -> str:
    told = {**dict.fromkeys(node.arguments, ""), **node.words, **_abouts(node)}
    pairs = (name.replace(":", "\\:") + (f":{about}" if about else "") for name, about in told.items())
    return " ".join(map(_quoted, pairs))


def _abouts(node: CommandNode) -> dict[str, str]:
    return {name: _in_short(option.about) for option in node.options for name in option.names}


def _fish_lines(nodes: Sequence[CommandNode]) -> Iterator[str]:
    for node in nodes:
        here = f"complete -c everloop -n {_fish_quoted(f'__everloop_at {_fish_quoted(_key(node.place))}')}"
        words: Mapping[str, str] = {**node.words, **dict.fromkeys(node.arguments, "")}
        for word, about in words.items():
            yield f"{here} -f -a {_fish_quoted(word)} -d {_fish_quoted(_in_short(about))}"
        for option in node.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = f" -x -a {_fish_quoted(' '.join(option.choices))}" if option.choices else " -r"
            yield f"{here} {names}{value if option.takes_value else ''} -d {_fish_quoted(_in_short(option.about))}"


def _in_short(about: str) -> str:
    """The first part of a sentence, which is all that fits beside a word."""
    return " ".join(about.split())[:80].partition(";")[0].partition(" (")[0]


def _quoted(text: str) -> str:
    """For bash and zsh."""
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _lines(lines: Iterator[str]) -> str:
    return "\n".join(lines)


SCRIPTS: Mapping[str, Callable[[Sequence[CommandNode], str], str]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}
