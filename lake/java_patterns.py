r"""RE2 patterns, which all our expressions write, as Java's regular expressions mean the same.

They differ in what nobody notices until a bill holds it: Java's `$` matches before a last line
break, its `(?i)` knows only ASCII, its `\b` counts Chinese letters as words, its classes nest.
"""

import re
from typing import Final

# d: only \n ends a line, so that `.` matches what RE2's does; u: (?i) folds all of Unicode
FLAGS: Final = "(?du)"
_LINES: Final = re.compile(r"\(\?[a-zA-Z]*m")  # the flag by which $ ends each line
_WORD: Final = "(?-i:[0-9A-Za-z_])"  # or (?i) would count the long s and the Kelvin sign in
_ESCAPES: Final = {
    "b": f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))",
    "B": f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))",
    "s": r"[\t\n\f\r ]",
    "S": r"[^\t\n\f\r ]",
}
_IN_CLASS: Final = {"s": r"\t\n\f\r "}
_POSIX: Final = {
    "alnum": "Alnum",
    "alpha": "Alpha",
    "digit": "Digit",
    "lower": "Lower",
    "punct": "Punct",
    "upper": "Upper",
    "xdigit": "XDigit",
}


def java_pattern(pattern: str) -> str:
    r"""The Java pattern that matches what the RE2 pattern does.

    >>> java_pattern("^-?[0-9]+$")
    '(?du)^-?[0-9]+\\z'
    >>> java_pattern(r"a\$[$[&&]\\")
    '(?du)a\\$[$\\[\\&\\&]\\\\'
    """
    made, position = [FLAGS], 0
    end = "$" if _LINES.search(pattern) else r"\z"
    while position < len(pattern):
        if pattern[position] == "[":
            taken, text = _class(pattern, position)
        else:
            taken, text = _one(pattern, position, end)
        made.append(text)
        position += taken
    return "".join(made)


def _one(pattern: str, position: int, end: str) -> tuple[int, str]:
    """What stands outside a class: letters taken, and what they become."""
    letter = pattern[position]
    if letter == "\\" and position + 1 < len(pattern):
        escaped = pattern[position + 1]
        return 2, _ESCAPES.get(escaped, letter + escaped)
    return 1, end if letter == "$" else letter


def _class(pattern: str, position: int) -> tuple[int, str]:
    """A class in brackets; in Java an inner bracket or && would mean something."""
    made, at = ["["], position + 1
    if pattern.startswith("^", at):
        made.append("^")
        at += 1
    first = at
    while at < len(pattern) and (pattern[at] != "]" or at == first):
        letter = pattern[at]
        name = pattern[at + 2 : pattern.find(":]", at)] if pattern.startswith("[:", at) else ""
        if name in _POSIX:
            made.append(rf"\p{{{_POSIX[name]}}}")
            at += len(name) + 4
        elif letter == "\\" and at + 1 < len(pattern):
            made.append(_IN_CLASS.get(pattern[at + 1], pattern[at : at + 2]))
            at += 2
        else:
            made.append("\\" + letter if letter in "[&]" else letter)
            at += 1
    made.append("]")
    return at + 1 - position, "".join(made)


def java_replacement(replacement: str) -> str:
    r"""The replacement text: groups are \1 for RE2, $1 for Java.

    >>> java_replacement(r"\1 for $5")
    '$1 for \\$5'
    """
    made, position = "", 0
    while position < len(replacement):
        letter = replacement[position]
        if letter == "\\" and replacement[position + 1 : position + 2].isdigit():
            made += "$" + replacement[position + 1]
            position += 2
            continue
        made += "\\" + letter if letter in "\\$" else letter
        position += 1
    return made
