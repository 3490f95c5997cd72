"""Regular expressions of allocation rules: the part of RE2 that means the same in every engine.

A pattern is read strictly, written again in one plain form for the engine, and matched here a
second time without any engine, for checks. No rule and no charge is known here.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from django.utils.translation import gettext as _

MAX_LENGTH: Final = 300
MAX_REPEAT: Final = 100  # RE2 stops at 1,000, counting what lies inside each other
MAX_COPIES: Final = 500
LAST_POINT: Final = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]
_CLASSES: Final[dict[str, tuple[Ranges, bool]]] = {
    "d": (((0x30, 0x39),), False),
    "D": (((0x30, 0x39),), True),
    "w": (((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)), False),
    "W": (((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)), True),
    "s": (((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20)), False),
    "S": (((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20)), True),
}
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ALL_BUT_NEWLINE: Final[Ranges] = ((0x0A, 0x0A),)
_REPEAT: Final = re.compile(r"\{([0-9]{1,4})(,([0-9]{1,4})?)?\}")


class PatternError(ValueError):
    """A text that is no pattern of ours; the message says where and what instead."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A part of a pattern: its plain form, and the places where it can end."""

    form: str
    ends: Callable[[str, frozenset[int]], frozenset[int]]
    copies: int = 1  # how many times the engine writes it out
    is_endless: bool = False  # repeats without an upper bound somewhere inside


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that was read: `engine_form` is for an engine, `is_in` needs none."""

    text: str
    engine_form: str
    _node: _Node = field(repr=False)

    def is_in(self, value: str) -> bool:
        """Whether the pattern matches anywhere in the value."""
        return bool(self._node.ends(value, frozenset(range(len(value) + 1))))


@lru_cache(maxsize=512)
def read_pattern(text: str) -> Pattern:
    """The pattern that a text means.

    Raises:
        PatternError: it is none, or uses what engines understand differently.
    """
    if not text:
        raise PatternError(_("The pattern is empty."))
    if len(text) > MAX_LENGTH:
        raise PatternError(
            _("The pattern has {count} characters; at most {limit} are allowed.").format(
                count=len(text), limit=MAX_LENGTH
            )
        )
    if any(ord(one) < 0x20 or 0xD800 <= ord(one) <= 0xDFFF for one in text):
        raise PatternError(_("The pattern holds a control character."))
    reader = _Reader(text)
    node = reader.alternatives()
    if reader.rest():
        raise reader.error(_("there is no group to close"))
    return Pattern(text=text, engine_form=node.form, _node=node)


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def rest(self) -> str:
        """What is not read yet."""
        return self._text[self._at :]

    def error(self, reason: str) -> PatternError:
        """A refusal that names the place."""
        return PatternError(
            _("The pattern cannot be used: at character {place}, {reason}.").format(
                place=self._at + 1, reason=reason
            )
        )

    def alternatives(self) -> _Node:
        """`a|b|c`."""
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else _either(options)

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        while self.rest() and self.rest()[0] not in "|)":
            parts.append(self._repeated())
        if not parts:
            raise self.error(_("an alternative or a group is empty; write (…)? for what may lack"))
        return parts[0] if len(parts) == 1 else _in_order(parts)

    def _repeated(self) -> _Node:
        start = self._at
        node = self._single()
        bounds = self._bounds()
        if bounds is None:
            return node
        self._take("?")  # lazy or greedy finds the same charges
        if self._bounds() is not None:
            raise self.error(_("a repeat is repeated"))
        if node.form in (r"\A", r"\z"):
            self._at = start
            raise self.error(_("the start or the end of a text cannot repeat"))
        least, most = bounds
        if most is None and node.is_endless:
            raise self.error(_("a repeat without end stands inside another"))
        found = _times(node, least, most)
        if found.copies > MAX_COPIES:
            raise self.error(_("repeats inside repeats grow too large"))
        return found

    def _bounds(self) -> tuple[int, int | None] | None:
        """How often the part before repeats; None where it does not."""
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        if not self.rest().startswith("{"):
            return None
        match = _REPEAT.match(self.rest())
        if match is None:
            raise self.error(
                _("a brace that is no repeat such as {{2,5}} is written \\{{").format()
            )
        least = int(match[1])
        most = least if match[2] is None else int(match[3]) if match[3] else None
        if least > MAX_REPEAT or (most is not None and not least <= most <= MAX_REPEAT):
            raise self.error(
                _("a repeat goes up to {limit}, the smaller first").format(limit=MAX_REPEAT)
            )
        self._at += len(match[0])
        return least, most

    def _single(self) -> _Node:
        sign = self.rest()[0]
        if sign == "(":
            return self._group()
        if sign == "[":
            return self._class()
        if sign in "*+?{":
            raise self.error(_("there is nothing to repeat before {sign}").format(sign=sign))
        if sign in "]}":
            raise self.error(_("{sign} by itself is written \\{sign}").format(sign=sign))
        self._at += 1
        if sign == ".":
            return _one_of(_ALL_BUT_NEWLINE, is_not=True)
        if sign == "^":
            return _START
        if sign == "$":
            return _END
        return self._escaped() if sign == "\\" else _one_of(_only(sign))

    def _group(self) -> _Node:
        self._at += 1
        if self._take("?") and not self._take(":"):
            raise self.error(_("(?…) is not supported: no lookaround, no flags, no named groups"))
        node = self.alternatives()
        if not self._take(")"):
            raise self.error(_("a group is not closed"))
        return _Node(f"(?:{node.form})", node.ends, node.copies, node.is_endless)

    def _escaped(self) -> _Node:
        ranges, is_not = self._escape()
        return _one_of(ranges, is_not=is_not)

    def _escape(self) -> tuple[Ranges, bool]:
        r"""What stands behind a backslash: \d \w \s and their opposites, \t \n \r \f, or a sign."""
        if not self.rest():
            raise self.error(_("the backslash at the end escapes nothing"))
        sign = self.rest()[0]
        if sign.isdigit():
            raise self.error(_("references to groups are not supported"))
        if sign not in _CLASSES and sign not in _ESCAPES and (sign.isalnum() or sign == "_"):
            raise self.error(_("\\{sign} is not supported").format(sign=sign))
        self._at += 1
        if sign in _CLASSES:
            return _CLASSES[sign]
        return _only(_ESCAPES.get(sign, sign)), False

    def _class(self) -> _Node:
        self._at += 1
        is_not = self._take("^")
        ranges: list[tuple[int, int]] = []
        while not self._take("]"):
            if not self.rest():
                raise self.error(_("a class of characters is not closed"))
            ranges += self._range()
        if not ranges:
            raise self.error(_("a class of characters is empty"))
        return _one_of(_merged(ranges), is_not=is_not)

    def _range(self) -> Ranges:
        first = self._member()
        if not self.rest().startswith("-") or self.rest().startswith("-]"):
            return first
        self._at += 1
        last = self._member() if self.rest() else ()
        if not (_is_one(first) and _is_one(last)) or first[0][0] > last[0][0]:
            raise self.error(_("a range goes from one character to a later one"))
        return ((first[0][0], last[0][0]),)

    def _member(self) -> Ranges:
        sign = self.rest()[0]
        if sign == "[":
            raise self.error(_("a bracket in a class is written \\["))
        self._at += 1
        if sign != "\\":
            return _only(sign)
        ranges, is_not = self._escape()
        return _opposite(ranges) if is_not else ranges

    def _take(self, sign: str) -> bool:
        found = self.rest().startswith(sign)
        self._at += len(sign) if found else 0
        return found


def _only(sign: str) -> Ranges:
    return ((ord(sign), ord(sign)),)


def _is_one(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


def _merged(ranges: list[tuple[int, int]]) -> Ranges:
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def _opposite(ranges: Ranges) -> Ranges:
    found, start = [], 0
    for first, last in ranges:
        if start < first:
            found.append((start, first - 1))
        start = last + 1
    if start <= LAST_POINT:
        found.append((start, LAST_POINT))
    return tuple(found)


def _sign(point: int) -> str:
    """One character in the plain form: letters and digits as they are, the rest escaped."""
    sign = chr(point)
    if point >= 0x80 and sign.isprintable():
        return sign
    if sign.isalnum() or sign in " _":
        return sign
    return f"\\{sign}" if 0x20 < point < 0x7F else f"\\x{{{point:X}}}"


def _one_of(ranges: Ranges, *, is_not: bool = False) -> _Node:
    """One character in, or not in, these ranges of code points."""

    def ends(text: str, starts: frozenset[int]) -> frozenset[int]:
        return frozenset(
            at + 1
            for at in starts
            if at < len(text)
            and any(first <= ord(text[at]) <= last for first, last in ranges) is not is_not
        )

    if _is_one(ranges) and not is_not:
        return _Node(_sign(ranges[0][0]), ends)
    inner = "".join(
        _sign(first) if first == last else f"{_sign(first)}-{_sign(last)}" for first, last in ranges
    )
    return _Node(f"[{'^' if is_not else ''}{inner}]", ends)


def _in_order(parts: list[_Node]) -> _Node:
    def ends(text: str, starts: frozenset[int]) -> frozenset[int]:
        for part in parts:
            starts = part.ends(text, starts)
        return starts

    return _Node(
        "".join(part.form for part in parts),
        ends,
        sum(part.copies for part in parts),
        any(part.is_endless for part in parts),
    )


def _either(options: list[_Node]) -> _Node:
    def ends(text: str, starts: frozenset[int]) -> frozenset[int]:
        return frozenset[int]().union(*(option.ends(text, starts) for option in options))

    return _Node(
        "|".join(option.form for option in options),
        ends,
        sum(option.copies for option in options),
        any(option.is_endless for option in options),
    )


def _times(node: _Node, least: int, most: int | None) -> _Node:
    def ends(text: str, starts: frozenset[int]) -> frozenset[int]:
        for _turn in range(least):
            starts = node.ends(text, starts)
        found, fresh, turn = starts, starts, least
        while fresh and (most is None or turn < most):
            fresh = node.ends(text, fresh) - found
            found, turn = found | fresh, turn + 1
        return found

    bounds = f"{{{least},{'' if most is None else most}}}"
    return _Node(
        f"{node.form}{bounds}",
        ends,
        node.copies * max(least, most or 1, 1),
        most is None or node.is_endless,
    )


_START: Final = _Node(r"\A", lambda _text, starts: starts & {0})
_END: Final = _Node(r"\z", lambda text, starts: starts & {len(text)})
