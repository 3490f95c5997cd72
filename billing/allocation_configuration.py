"""Allocation rules as a section of the configuration document; the rest of it lives beside.

The short shape of a rule, {match, key, value, project}, is read for ever and written wherever it
says all; the full shape has `when`, a list of conditions, and `shares`.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from billing.allocation_matching import ANY_VALUE, TAG, values_of
from billing.allocation_selectors import newest_rule_set
from billing.allocation_wishes import RuleWish, TargetWish, wishes_of
from billing.records import RuleCondition
from billing.services.allocation import replace_rules
from projects.records import Actor

_SHORT_FIELDS: Final = ("sub_account", TAG, "resource")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ShortRule(_Strict):
    """One condition, one project: all of it."""

    match: Literal["sub_account", "tag", "resource"]
    key: str = ""
    value: str = Field(min_length=1, max_length=500)
    project: str

    def wish(self) -> RuleWish:
        """The rule as services take it."""
        condition = RuleCondition(field=self.match, key=self.key, value=self.value)
        if self.value == ANY_VALUE:
            condition = RuleCondition(field=self.match, key=self.key, op="any")
        return RuleWish(conditions=(condition,), targets=(TargetWish(project=self.project),))


class _Condition(_Strict):
    field: str
    key: str = ""
    op: str = "is"
    value: str = ""
    values: list[str] = []  # of one_of


class _Share(_Strict):
    project: str | None = None
    weight: str | int = "1"
    run_key: str = ""
    team: str = ""
    plan_line_key: str = ""


class FullRule(_Strict):
    """Conditions that all hold, and shares by weight."""

    name: str = ""
    when: list[_Condition]
    shares: list[_Share]

    def wish(self) -> RuleWish:
        """The rule as services take it.

        Raises:
            ValueError: a weight is no number.
        """
        return RuleWish(
            name=self.name,
            conditions=tuple(
                RuleCondition(
                    field=one.field,
                    key=one.key,
                    op=one.op,
                    value="\n".join(one.values) if one.values else one.value,
                )
                for one in self.when
            ),
            targets=tuple(
                TargetWish(
                    project=one.project or "",
                    weight=_weight(one.weight),
                    run_key=one.run_key,
                    team=one.team,
                    plan_line_key=one.plan_line_key,
                )
                for one in self.shares
            ),
        )


def _shape(document: Any) -> str:
    """Which of the two shapes a rule is written in."""
    if isinstance(document, ShortRule | FullRule):
        return "short" if isinstance(document, ShortRule) else "full"
    return (
        "full" if isinstance(document, dict) and {"when", "shares"} & document.keys() else "short"
    )


Rule = Annotated[
    Annotated[ShortRule, Tag("short")] | Annotated[FullRule, Tag("full")], Discriminator(_shape)
]


def _weight(text: str | int) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError as error:
        raise ValueError(f"allocation_rules: weight {text!r} is no number") from error


def dump(organisation_id: UUID) -> dict[str, Any]:
    """The rules in force, in their order."""
    wishes = wishes_of(newest_rule_set(organisation_id))
    return {"allocation_rules": [_short(wish) or _full(wish) for wish in wishes]}


def apply(actor: Actor, rules: Sequence[ShortRule | FullRule] | None) -> list[str]:
    """Replace all rules by these, None changes nothing; return what changed.

    Raises:
        ValidationError: a rule cannot be.
        ValueError: a weight is no number.
    """
    if rules is None:
        return []
    wishes = [rule.wish() for rule in rules]
    if replace_rules(actor, wishes) is None:
        return []
    return [f"allocation_rules: {len(wishes)} in force"]


def _short(wish: RuleWish) -> dict[str, Any] | None:
    """A rule of one plain condition and one whole project in the short shape."""
    if wish.name or len(wish.conditions) != 1 or len(wish.targets) != 1:
        return None
    (condition,), (target,) = wish.conditions, wish.targets
    is_plain = condition.field in _SHORT_FIELDS and condition.op in ("is", "any")
    if not is_plain or target != TargetWish(project=target.project) or not target.project:
        return None
    return {
        "match": condition.field,
        **({"key": condition.key} if condition.key else {}),
        "value": ANY_VALUE if condition.op == "any" else condition.value,
        "project": target.project,
    }


def _full(wish: RuleWish) -> dict[str, Any]:
    return {
        **({"name": wish.name} if wish.name else {}),
        "when": [_condition_document(one) for one in wish.conditions],
        "shares": [_share_document(one) for one in wish.targets],
    }


def _condition_document(condition: RuleCondition) -> dict[str, Any]:
    document: dict[str, Any] = {"field": condition.field}
    if condition.key:
        document["key"] = condition.key
    document["op"] = condition.op
    if condition.op == "one_of":
        document["values"] = list(values_of(condition))
    elif condition.value:
        document["value"] = condition.value
    return document


def _share_document(target: TargetWish) -> dict[str, Any]:
    names: Sequence[str] = ("run_key", "team", "plan_line_key")
    return {
        "project": target.project or None,
        "weight": f"{target.weight:f}",
        **{name: value for name in names if (value := getattr(target, name))},
    }
