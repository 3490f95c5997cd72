"""Finds a profile's values in one line, by patterns or by a JSON object's keys; keeps no state."""

import json
import re
from math import prod
from typing import Final

from costwatch_agent.log_profiles import TEXTS, Field, Rule
from costwatch_agent.log_values import at_path, number_of
from costwatch_agent.records import Document

MESSAGES: Final = ("message", "msg", "exc_info")  # of a JSON line: where people write
Values = dict[str, float | str]


def json_object(text: str) -> Document | None:
    """The JSON object of a line, which may have a logger's words before it."""
    start = text.find("{")
    if start < 0 or not text.endswith("}"):
        return None
    try:
        found = json.loads(text[start:])
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def applies(rule: Rule, text: str, lower: str, found: Document | None) -> bool:
    """Whether a line is what a rule speaks of. `lower`: the line in lower case."""
    if rule.match is None:
        return found is not None
    if rule.contains and not any(hint in lower for hint in rule.contains):
        return False
    return rule.match.search(text) is not None


def values_of(rule: Rule, text: str, found: Document | None) -> Values:
    values: Values = {}
    for one in rule.fields:
        value = _value(one, text, found)
        if value is not None:
            values[one.name] = value
    return values


def _value(one: Field, text: str, found: Document | None) -> float | str | None:
    raw: object = None
    if one.find is not None:
        match = one.find.search(text)
        raw = match[1] if match is not None else None
    else:
        every = (at_path(found or {}, key) for key in one.keys)
        raw = next((value for value in every if value is not None), None)
    if raw is None:
        return None
    if one.name in TEXTS:
        return raw if isinstance(raw, str) else None
    if one.product:
        return float(prod(int(part) for part in re.findall(r"\d+", str(raw))))
    number = number_of(raw)
    if number is None or number in one.missing:
        return None
    if one.percent_above_one and number > 1:
        number /= 100
    return number if one.factor == 1 and not one.add else round(number * one.factor + one.add, 9)


def numbers_of(values: Values) -> dict[str, float]:
    return {name: value for name, value in values.items() if isinstance(value, float)}


def spoken(text: str, found: Document | None) -> str:
    """What of a line is words: of a JSON object its messages."""
    if found is None:
        return text
    return " ".join(value for key in MESSAGES if isinstance(value := found.get(key), str))
