"""Reads of allocation rules, now or at an instant; costs are read elsewhere."""

from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from billing.allocation_matching import condition_in
from billing.models import AllocationRule, RuleSet
from billing.records import RuleRecord, RuleTarget


def newest_rule_set(organisation_id: UUID, as_of: datetime | None = None) -> RuleSet | None:
    """The allocation rules in force, now or at an instant."""
    rule_sets = RuleSet.objects.filter(organisation_id=organisation_id)
    if as_of is not None:
        rule_sets = rule_sets.filter(created_at__lte=as_of)
    return rule_sets.order_by("-number").first()


def rules_of(rule_set: RuleSet | None) -> tuple[RuleRecord, ...]:
    """The rules of a set, first wins; none without a set."""
    if rule_set is None:
        return ()
    rules = rule_set.rules.prefetch_related("targets").order_by("position")
    return tuple(_record(rule) for rule in rules)


def _record(rule: AllocationRule) -> RuleRecord:
    return RuleRecord(
        position=rule.position,
        name=rule.name,
        conditions=tuple(condition_in(one) for one in rule.conditions),
        targets=tuple(
            RuleTarget(
                weight=target.weight,
                project_id=target.project_id,
                run_key=target.run_key,
                team=target.team,
                plan_line_key=target.plan_line_key,
            )
            for target in rule.targets.all()
        ),
    )


def allocation_rules(organisation_id: UUID) -> QuerySet[AllocationRule]:
    """The rules in force with their projects, first wins."""
    rule_set = newest_rule_set(organisation_id)
    return (
        AllocationRule.objects.filter(rule_set=rule_set)
        .prefetch_related("targets__project")
        .order_by("position")
    )
