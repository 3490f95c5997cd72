"""Changes whose charges are whose: each change makes a new rule set and rolls up again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from billing.models import AllocationRule, AllocationTarget, RuleSet
from billing.selectors import newest_rule_set
from billing.services.locking import lock_books
from jobs import services as jobs
from projects.access import projects_for
from projects.records import Actor
from projects.trail import note


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleWish:
    """A rule as people write it: `match` is sub_account, tag (with its key) or resource."""

    match: str
    value: str
    project: str
    key: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """What no two rules of a set share."""
        return (self.match, self.key, self.value)


def add_rule(actor: Actor, wish: RuleWish) -> UUID:
    """Add a rule behind the others; return the job that applies it.

    Raises:
        ValidationError: the rule cannot be, or is there already.
    """
    with transaction.atomic():
        lock_books(actor.organisation_id)
        wishes = wishes_of(newest_rule_set(actor.organisation_id))
        return _store(actor, [*wishes, wish])


def remove_rule(actor: Actor, position: int) -> UUID:
    """Remove the rule at a position; return the job that applies it.

    Raises:
        ValidationError: there is no such rule.
    """
    with transaction.atomic():
        lock_books(actor.organisation_id)
        wishes = wishes_of(newest_rule_set(actor.organisation_id))
        if not 0 < position <= len(wishes):
            raise ValidationError(_("There is no such rule; it may have been removed already."))
        return _store(actor, [*wishes[: position - 1], *wishes[position:]])


def replace_rules(actor: Actor, wishes: Sequence[RuleWish]) -> bool:
    """Put these rules in force, in their order; return whether that changed anything.

    Raises:
        ValidationError: a rule cannot be.
    """
    with transaction.atomic():
        lock_books(actor.organisation_id)
        if wishes_of(newest_rule_set(actor.organisation_id)) == list(wishes):
            return False
        _store(actor, wishes)
    return True


def wishes_of(rule_set: RuleSet | None) -> list[RuleWish]:
    """The rules of a set as people write them, in order."""
    if rule_set is None:
        return []
    return [
        RuleWish(
            match=rule.conditions[0]["field"],
            key=rule.conditions[0]["key"],
            value=rule.conditions[0]["value"],
            project=rule.targets.all()[0].project.slug,
        )
        for rule in rule_set.rules.prefetch_related("targets__project").order_by("position")
    ]


def _store(actor: Actor, wishes: Sequence[RuleWish]) -> UUID:
    """Store a new set and ask for the roll-up; call it with the books locked."""
    _check_all(wishes)
    before = newest_rule_set(actor.organisation_id)
    projects = _projects(actor, before, {wish.project for wish in wishes})
    rule_set = RuleSet.objects.create(
        organisation_id=actor.organisation_id,
        number=before.number + 1 if before else 1,
        created_by=actor.label[:200],
    )
    for position, wish in enumerate(wishes, start=1):
        rule = AllocationRule.objects.create(
            organisation_id=actor.organisation_id,
            rule_set=rule_set,
            position=position,
            conditions=[{"field": wish.match, "op": "is", "key": wish.key, "value": wish.value}],
        )
        AllocationTarget.objects.create(
            organisation_id=actor.organisation_id,
            rule=rule,
            position=1,
            project_id=projects[wish.project],
        )
    job = jobs.enqueue(
        organisation_id=actor.organisation_id,
        kind="billing.rebuild_daily_costs",
        scope="organisation",
        payload={},
        dedupe_key="rebuild",
        title=_("Allocate charges by the new rules"),
        created_by_user_id=actor.user_id,
        created_by_token_id=actor.token_id,
    )
    note(
        actor,
        "allocation_rules.change",
        subject=("rule_set", rule_set.number),
        before={"rules": [_document(wish) for wish in wishes_of(before)]},
        after={"rules": [_document(wish) for wish in wishes]},
    )
    return job.pk


def _projects(actor: Actor, before: RuleSet | None, slugs: set[str]) -> dict[str, UUID]:
    """The projects of these slugs; archived ones stay known to rules that are there already.

    Raises:
        ValidationError: there is no such project.
    """
    visible = projects_for(actor).filter(slug__in=slugs)
    known = {project.slug: project.pk for project in visible} | _of_rules(before)
    if unknown := sorted(slugs - known.keys()):
        raise ValidationError(
            {"project": _("There is no project {slug}.").format(slug=", ".join(unknown))}
        )
    return known


def _of_rules(before: RuleSet | None) -> dict[str, UUID]:
    if before is None:
        return {}
    targets = AllocationTarget.objects.filter(rule__rule_set=before, project__isnull=False)
    return {one.project.slug: one.project_id for one in targets.select_related("project")}


def _check_all(wishes: Sequence[RuleWish]) -> None:
    seen: set[tuple[str, str, str]] = set()
    for wish in wishes:
        _check(wish)
        if wish.identity in seen:
            raise ValidationError(_("A rule for the same charges is there already."))
        seen.add(wish.identity)


def _check(wish: RuleWish) -> None:
    if wish.match not in AllocationRule.Match.values:
        known = ", ".join(AllocationRule.Match.values)
        raise ValidationError({"match": _("Match by one of {known}.").format(known=known)})
    if not wish.value.strip():
        raise ValidationError({"value": _("Say which value a charge must have; * means any.")})
    if (wish.match == AllocationRule.Match.TAG) != bool(wish.key.strip()):
        raise ValidationError(
            {"key": _("A rule by tag names the tag's key; no other rule has one.")}
        )


def _document(wish: RuleWish) -> dict[str, Any]:
    return {"match": wish.match, "key": wish.key, "value": wish.value, "project": wish.project}
