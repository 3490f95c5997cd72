"""What an allocation rule looks at, and whether a charge meets it, in plain Python.

The engine decides the same by `expressions.allocated`; this is for checks, for values that no
charge carries (its source), and for refusing rules that cannot be.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from billing.patterns import read_pattern
from billing.records import RuleCondition, RuleRecord

TAG: Final = "tag"
SOURCE: Final = "source"
# A condition's field -> the column of a stored charge. A tag is looked up by its key.
FIELD_COLUMNS: Final[Mapping[str, str]] = {
    "sub_account": "sub_account_id",
    "billing_account": "billing_account_id",
    TAG: "tags",
    "resource": "resource_id",
    "resource_name": "resource_name",
    "service": "service_name",
    "service_category": "service_category",
    "region": "region_id",
    "provider": "provider_name",
    "cost_class": "x_cost_class",
    "charge_category": "charge_category",
    "invoice_issuer": "invoice_issuer_name",
}
FIELDS: Final = (*FIELD_COLUMNS, SOURCE)
SYNONYMS: Final = {"label": TAG}  # labels of Google arrive as tags
OPS: Final = ("is", "one_of", "any", "absent", "starts_with", "matches")
WITHOUT_VALUE: Final = ("any", "absent")
ANY_VALUE: Final = "*"


def condition_in(document: Mapping[str, Any]) -> RuleCondition:
    """A stored condition; the older shape said any value by `is *`."""
    condition = RuleCondition(
        field=str(document["field"]),
        op=str(document.get("op") or "is"),
        value=str(document.get("value") or ""),
        key=str(document.get("key") or ""),
    )
    if condition.op == "is" and condition.value == ANY_VALUE:
        return replace(condition, op="any", value="")
    return condition


def values_of(condition: RuleCondition) -> tuple[str, ...]:
    """The values of `one_of`, one a line."""
    return tuple(line.strip() for line in condition.value.splitlines() if line.strip())


def meets(value: str | None, condition: RuleCondition) -> bool:
    """Whether a value, None where there is none, meets a condition."""
    if condition.op in WITHOUT_VALUE:
        return (value is None) is (condition.op == "absent")
    return value is not None and _meets(value, condition)


@lru_cache(maxsize=65_536)
def _meets(value: str, condition: RuleCondition) -> bool:
    if condition.op == "one_of":
        return value in values_of(condition)
    if condition.op == "starts_with":
        return value.startswith(condition.value)
    if condition.op == "matches":
        return read_pattern(condition.value).is_in(value)
    return value == condition.value


def position_of(charge: Mapping[str, Any], rules: Iterable[RuleRecord]) -> int | None:
    """The position of the first rule that a stored charge meets, decided without an engine.

    The rules are in order, and those of one source only: see `rules_for_source`.
    """
    for rule in rules:
        if all(meets(_value(charge, one), one) for one in rule.conditions):
            return rule.position
    return None


def _value(charge: Mapping[str, Any], condition: RuleCondition) -> str | None:
    found = charge[FIELD_COLUMNS[condition.field]]
    if condition.field != TAG:
        return None if found is None else str(found)
    value = dict(found or ()).get(condition.key)
    return None if value is None else str(value)


def rules_for_source(rules: Sequence[RuleRecord], source: str) -> tuple[RuleRecord, ...]:
    """The rules that charges of one source can meet, in order, with nothing left about sources."""
    return tuple(
        replace(rule, conditions=tuple(one for one in rule.conditions if one.field != SOURCE))
        for rule in sorted(rules, key=lambda rule: rule.position)
        if all(meets(source, one) for one in rule.conditions if one.field == SOURCE)
    )


def name_sources(rules: Iterable[RuleRecord]) -> bool:
    """Whether any of the rules looks at a charge's source."""
    return any(one.field == SOURCE for rule in rules for one in rule.conditions)


def columns_of(rules: Iterable[RuleRecord]) -> tuple[str, ...]:
    """The columns of a stored charge that these rules look at."""
    return tuple(
        dict.fromkeys(
            FIELD_COLUMNS[one.field]
            for rule in rules
            for one in rule.conditions
            if one.field != SOURCE
        )
    )
