"""Charges own hardware: metered records and a rate card become a delivery like any other."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from billing.adapters.focus import FOCUS
from billing.allocation_matching import TAG
from billing.allocation_selectors import newest_rule_set
from billing.allocation_wishes import RuleWish, TargetWish, checked_condition, wishes_of
from billing.models import Source
from billing.own_charges import own_charges
from billing.own_records import PROVIDER, MeteredDay, OwnOwner, OwnRateCard
from billing.records import RuleCondition
from billing.services.allocation import number_of, replace_rules
from billing.services.receiving import (
    IncomingFile,
    NewDelivery,
    Receipt,
    ensure_source,
    receive_files,
)
from projects.records import Actor


def charge_own_hardware(
    actor: Actor,
    *,
    source_name: str,
    month: str,
    days: Sequence[MeteredDay],
    card: OwnRateCard,
) -> Receipt:
    """Store a month of own hardware as charges; the month is replaced whole.

    The same records by the same card again are nothing new; other ones restate the month.

    Raises:
        ChargesRefusedError: a record or the card cannot be; nothing is stored.
    """
    content = own_charges(month, days, card)
    with transaction.atomic():
        source = ensure_source(actor, source_name, FOCUS.name)
        Source.objects.filter(pk=source.pk).update(kind=Source.Kind.OWN_HARDWARE)
    return receive_files(
        actor,
        NewDelivery(
            source_name=source_name,
            files=[IncomingFile(name=f"own-hardware-{month}.csv", chunks=[content])],
            periods=(month,),
            bill_format=FOCUS.name,
            confirm_shrink=True,  # the records are the month's whole word
            again=True,
        ),
    )


def give_own_hardware(actor: Actor, owners: Iterable[OwnOwner]) -> UUID | None:
    """See that charges of own hardware go to the projects and runs that their tags name.

    A rule for each that has none is put behind all others: whatever somebody ruled before it wins,
    and a rule that is there stays as somebody made it.

    Returns:
        The job that applies the rules; None where each had its own already.

    Raises:
        RulesChangedError: somebody changed the rules meanwhile; ask again.
        ValidationError: a project is unknown, or there are too many rules.
    """
    before = newest_rule_set(actor.organisation_id)
    wishes = wishes_of(before)
    known = {frozenset(wish.conditions) for wish in wishes}
    wanted = [_rule_of(one) for one in sorted(set(owners), key=lambda one: (one.project, one.run))]
    new = [wish for wish in wanted if frozenset(wish.conditions) not in known]
    if not new:
        return None
    return replace_rules(actor, [*wishes, *new], instead_of=number_of(before))


def _rule_of(owner: OwnOwner) -> RuleWish:
    run = RuleCondition(field=TAG, key="run", op="is", value=owner.run)
    without = RuleCondition(field=TAG, key="run", op="absent", value="")
    conditions = (
        RuleCondition(field="provider", op="is", value=PROVIDER),
        RuleCondition(field=TAG, key="project", op="is", value=owner.project),
        run if owner.run else without,
    )
    name = f"{owner.project}/{owner.run}" if owner.run else owner.project
    return RuleWish(
        name=_("Own hardware of {name}").format(name=name)[:120],
        conditions=tuple(checked_condition(one) for one in conditions),
        targets=(
            TargetWish(project=owner.project, run_key=owner.run, plan_line_key=owner.plan_line_key),
        ),
    )
