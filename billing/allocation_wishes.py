"""Allocation rules as people write them: projects by slug; what cannot be is refused in words."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from billing.allocation_matching import (
    ANY_VALUE,
    FIELDS,
    OPS,
    SYNONYMS,
    TAG,
    WITHOUT_VALUE,
    condition_in,
    values_of,
)
from billing.models import AllocationTarget, RuleSet
from billing.patterns import PatternError, read_pattern
from billing.records import RuleCondition, RuleRecord, RuleTarget
from projects.access import projects_for
from projects.records import Actor

MAX_RULES: Final = 500
MAX_CONDITIONS: Final = 12
MAX_TARGETS: Final = 24
MAX_VALUES: Final = 200
MAX_KEY: Final = 200
MAX_VALUE: Final = 4000
MAX_WORD: Final = 120  # names, run keys, teams, plan lines
WEIGHT_DECIMALS: Final = 6
WEIGHT_LIMIT: Final = Decimal("1e12")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetWish:
    """A share of what a rule matches: of a project by slug, or of nobody and on purpose.

    The keys of a run and of a plan line are opaque here; the rooms that know them compare them.
    """

    project: str = ""
    weight: Decimal = Decimal(1)
    run_key: str = ""
    team: str = ""
    plan_line_key: str = ""

    @property
    def whose(self) -> tuple[str, ...]:
        """What no two shares of a rule have in common."""
        return (self.project, self.run_key, self.team, self.plan_line_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleWish:
    """A rule: charges that meet all conditions are shared by weight."""

    conditions: tuple[RuleCondition, ...]
    targets: tuple[TargetWish, ...]
    name: str = ""

    def document(self) -> dict[str, Any]:
        """The rule for the audit trail, weights as text."""
        return {
            "name": self.name,
            "conditions": [asdict(one) for one in self.conditions],
            "targets": [{**asdict(one), "weight": str(one.weight)} for one in self.targets],
        }


def wish_in(document: dict[str, Any]) -> RuleWish:
    """The rule of a document that `RuleWish.document` made."""
    return RuleWish(
        name=document["name"],
        conditions=tuple(condition_in(one) for one in document["conditions"]),
        targets=tuple(
            TargetWish(**{**one, "weight": Decimal(one["weight"])}) for one in document["targets"]
        ),
    )


def wishes_of(rule_set: RuleSet | None) -> list[RuleWish]:
    """The rules of a set as people write them, in order."""
    if rule_set is None:
        return []
    rules = rule_set.rules.prefetch_related("targets__project").order_by("position")
    return [
        RuleWish(
            name=rule.name,
            conditions=tuple(condition_in(one) for one in rule.conditions),
            targets=tuple(
                TargetWish(
                    project=target.project.slug if target.project else "",
                    weight=plain_weight(target.weight),
                    run_key=target.run_key,
                    team=target.team,
                    plan_line_key=target.plan_line_key,
                )
                for target in rule.targets.all()
            ),
        )
        for rule in rules
    ]


def plain_weight(weight: Decimal) -> Decimal:
    """A weight without zeros that say nothing: 2.500000 is 2.5."""
    return Decimal(f"{weight.normalize():f}")


def checked(wishes: Sequence[RuleWish]) -> list[RuleWish]:
    """The rules as they are stored.

    Raises:
        ValidationError: a rule cannot be; the message names its place.
    """
    if len(wishes) > MAX_RULES:
        raise ValidationError(_("At most {limit} rules are possible.").format(limit=MAX_RULES))
    found: list[RuleWish] = []
    seen: dict[frozenset[RuleCondition], int] = {}
    for position, wish in enumerate(wishes, start=1):
        try:
            rule = checked_rule(wish)
        except ValidationError as error:
            raise ValidationError(
                [
                    _("Rule {position}: {reason}").format(position=position, reason=reason)
                    for reason in error.messages
                ]
            ) from error
        twin = seen.setdefault(frozenset(rule.conditions), position)
        if twin != position:
            words = _("Rules {first} and {second} are for the same charges; only the first counts.")
            raise ValidationError(words.format(first=twin, second=position))
        found.append(rule)
    return found


def checked_rule(wish: RuleWish) -> RuleWish:
    """One rule as it is stored.

    Raises:
        ValidationError: it cannot be.
    """
    if not wish.conditions:
        raise ValidationError(_("A rule needs a condition that says which charges it is for."))
    if not wish.targets:
        raise ValidationError(_("A rule needs a share that says whose the charges are."))
    if len(wish.conditions) > MAX_CONDITIONS or len(wish.targets) > MAX_TARGETS:
        words = _("A rule has at most {conditions} conditions and {targets} shares.")
        raise ValidationError(words.format(conditions=MAX_CONDITIONS, targets=MAX_TARGETS))
    _check_words([wish.name])
    conditions = tuple(dict.fromkeys(checked_condition(one) for one in wish.conditions))
    targets = tuple(_checked_target(one) for one in wish.targets)
    if len({one.whose for one in targets}) < len(targets):
        raise ValidationError(_("Two shares are for the same; add their weights up in one."))
    return RuleWish(name=wish.name.strip(), conditions=conditions, targets=targets)


def checked_condition(condition: RuleCondition) -> RuleCondition:
    """A condition as it is stored.

    Raises:
        ValidationError: it cannot be.
    """
    field = SYNONYMS.get(condition.field, condition.field)
    if field not in FIELDS:
        raise ValidationError(_("Match by one of {known}.").format(known=", ".join(FIELDS)))
    if condition.op not in OPS:
        raise ValidationError(_("Compare by one of {known}.").format(known=", ".join(OPS)))
    if (field == TAG) != bool(condition.key.strip()):
        raise ValidationError(
            _("A condition by tag names the tag's key; no other condition has one.")
        )
    if len(condition.key) > MAX_KEY or len(condition.value) > MAX_VALUE:
        raise ValidationError(_("A tag's key or a value is too long."))
    if "\x00" in condition.key + condition.value:
        raise ValidationError(_("A value holds a character that no bill has."))
    condition = replace(condition, field=field, key=condition.key.strip())
    if condition.op == "is" and condition.value == ANY_VALUE:
        condition = replace(condition, op="any")
    return replace(condition, value=_checked_value(condition))


def _checked_value(condition: RuleCondition) -> str:
    if condition.op in WITHOUT_VALUE:
        return ""
    value = condition.value if condition.op == "matches" else condition.value.strip()
    if condition.op == "one_of":
        values = list(dict.fromkeys(values_of(condition)))
        if len(values) > MAX_VALUES:
            words = _("At most {limit} values are possible; a pattern may say more.")
            raise ValidationError(words.format(limit=MAX_VALUES))
        value = "\n".join(values)
    if not value:
        raise ValidationError(_("Say which value a charge must have; * means any."))
    if condition.op == "matches":
        try:
            read_pattern(value)
        except PatternError as error:
            raise ValidationError(str(error)) from error
    return value


def _checked_target(target: TargetWish) -> TargetWish:
    weight = target.weight
    if not weight.is_finite() or not 0 < weight < WEIGHT_LIMIT:
        raise ValidationError(_("A weight is a number above 0, such as 1 or 2.5."))
    if weight != round(weight, WEIGHT_DECIMALS):
        words = _("A weight has at most {limit} decimals; weights are shares, not percent.")
        raise ValidationError(words.format(limit=WEIGHT_DECIMALS))
    own = {name: getattr(target, name).strip() for name in ("run_key", "team", "plan_line_key")}
    _check_words(own.values())
    return replace(target, weight=plain_weight(weight), project=target.project.strip(), **own)


def _check_words(words: Iterable[str]) -> None:
    for word in words:
        if len(word) > MAX_WORD or "\x00" in word:
            reason = _("Names and keys have at most {limit} characters.")
            raise ValidationError(reason.format(limit=MAX_WORD))


def projects_of(
    actor: Actor, before: RuleSet | None, wishes: Iterable[RuleWish]
) -> dict[str, UUID]:
    """The projects that rules name; archived ones stay known to rules that are there already.

    Raises:
        ValidationError: there is no such project.
    """
    slugs = {one.project for wish in wishes for one in wish.targets if one.project}
    visible = projects_for(actor).filter(slug__in=slugs)
    known = {project.slug: project.pk for project in visible} | _of_rules(before)
    if unknown := sorted(slugs - known.keys()):
        raise ValidationError(_("There is no project {slug}.").format(slug=", ".join(unknown)))
    return known


def _of_rules(before: RuleSet | None) -> dict[str, UUID]:
    if before is None:
        return {}
    targets = AllocationTarget.objects.filter(rule__rule_set=before, project__isnull=False)
    return {
        one.project.slug: one.project.pk
        for one in targets.select_related("project")
        if one.project is not None
    }


def records_of(wishes: Sequence[RuleWish], projects: dict[str, UUID]) -> tuple[RuleRecord, ...]:
    """The rules as charges are given away by them."""
    return tuple(
        RuleRecord(
            position=position,
            name=wish.name,
            conditions=wish.conditions,
            targets=tuple(
                RuleTarget(
                    weight=one.weight,
                    project_id=projects[one.project] if one.project else None,
                    run_key=one.run_key,
                    team=one.team,
                    plan_line_key=one.plan_line_key,
                )
                for one in wish.targets
            ),
        )
        for position, wish in enumerate(wishes, start=1)
    )
