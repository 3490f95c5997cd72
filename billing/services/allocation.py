"""Changes whose charges are whose: each change makes a new rule set and rolls up again."""

from collections.abc import Sequence
from dataclasses import asdict
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from billing.allocation_selectors import newest_rule_set
from billing.allocation_wishes import RuleWish, checked, projects_of, records_of, wishes_of
from billing.models import AllocationRule, AllocationTarget, RuleSet
from billing.services.locking import lock_books
from jobs import services as jobs
from projects.records import Actor
from projects.trail import note


class RulesChangedError(ValidationError):
    """Somebody else changed the rules since they were read."""


def replace_rules(
    actor: Actor, wishes: Sequence[RuleWish], *, instead_of: int | None = None
) -> UUID | None:
    """Put these rules in force, in their order; return the job that applies them.

    Args:
        actor: who; the caller has checked the role.
        wishes: all rules, the first wins.
        instead_of: the number of the rule set that these rules were made from, 0 where there was
            none; without it they replace whatever is in force.

    Returns:
        None where these rules are in force already.

    Raises:
        RulesChangedError: other rules than `instead_of` are in force by now.
        ValidationError: a rule cannot be.
    """
    wanted = checked(wishes)
    with transaction.atomic():
        lock_books(actor.organisation_id)
        before = newest_rule_set(actor.organisation_id)
        if instead_of is not None and instead_of != number_of(before):
            raise RulesChangedError(
                _("Somebody changed the rules meanwhile; look at them and preview again.")
            )
        if wishes_of(before) == wanted:
            return None
        return _store(actor, before, wanted)


def number_of(rule_set: RuleSet | None) -> int:
    """The number of a rule set; 0 where there is none yet."""
    return 0 if rule_set is None else rule_set.number


def _store(actor: Actor, before: RuleSet | None, wishes: Sequence[RuleWish]) -> UUID:
    """Make a new set and ask for the roll-up; call it with the books locked."""
    projects = projects_of(actor, before, wishes)
    rule_set = RuleSet.objects.create(
        organisation_id=actor.organisation_id,
        number=number_of(before) + 1,
        created_by=actor.label[:200],
    )
    for record in records_of(wishes, projects):
        rule = AllocationRule.objects.create(
            organisation_id=actor.organisation_id,
            rule_set=rule_set,
            position=record.position,
            name=record.name,
            conditions=[asdict(one) for one in record.conditions],
        )
        AllocationTarget.objects.bulk_create(
            AllocationTarget(
                organisation_id=actor.organisation_id, rule=rule, position=place, **asdict(target)
            )
            for place, target in enumerate(record.targets, start=1)
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
        before={"rules": [wish.document() for wish in wishes_of(before)]},
        after={"rules": [wish.document() for wish in wishes]},
    )
    return job.pk
