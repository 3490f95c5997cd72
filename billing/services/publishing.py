"""Swaps what a period holds: pointer, roll-up and trail move in one transaction."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from billing.amounts import summed
from billing.models import BillingPeriod, ChargeSlice, Delivery, PeriodVersion
from billing.records import Dataset
from billing.services.locking import lock_books
from billing.services.receiving import ask_for_staging, give_up_blobs
from billing.services.rollups import rules_in_force, write_daily_costs
from billing.services.shrinking import live_slices, losses
from formulae.periods import month_from_label
from jobs.records import JobContext
from projects.access import system_actor
from projects.records import Actor
from projects.trail import note


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedSlice:
    """The rows of a delivery in one period, stored but not yet anybody's business."""

    slice_id: UUID
    dataset: Dataset
    period: str
    is_main: bool
    path: str
    size_bytes: int
    rows: int
    totals: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A whole delivery, stored and counted."""

    bill_format: str
    slices: Sequence[StagedSlice]
    rows: int
    totals: list[dict[str, Any]]
    report: dict[str, Any]
    rows_by_file: dict[int, int]  # file position -> rows


def settle(context: JobContext, delivery_id: UUID, *, staged: Staged | None) -> str:
    """Publish a staged delivery, or ask first when a published month would shrink."""
    with transaction.atomic():
        lock_books(context.organisation_id)
        context.assert_still_mine()
        delivery = Delivery.objects.select_for_update(of=("self",)).get(pk=delivery_id)
        if delivery.state in (Delivery.State.PUBLISHED, Delivery.State.REFUSED):
            return str(delivery.state)
        if staged is not None:
            _note_staged(delivery, staged)
        plan = _Plan(delivery)
        shrinking = losses(delivery, plan.periods())
        delivery.report["shrinking"] = shrinking
        if shrinking and not delivery.confirm_shrink:
            delivery.state = Delivery.State.NEEDS_CONFIRMATION
            _save(delivery)
            return str(delivery.state)
        _publish(delivery, plan)
    return str(delivery.state)


def confirm_delivery(actor: Actor, delivery_id: UUID) -> Delivery:
    """Let a delivery shrink published months; its job publishes it.

    Raises:
        ValidationError: the delivery does not wait for a confirmation.
    """
    with transaction.atomic():
        delivery = _waiting(actor, delivery_id)
        Delivery.objects.filter(pk=delivery.pk).update(confirm_shrink=True)
        ask_for_staging(delivery, actor)
        after = {"shrinking": delivery.report.get("shrinking", [])}
        note(actor, "delivery.confirm_shrink", subject=("delivery", delivery.pk), after=after)
    return delivery


def add_delivery(actor: Actor, delivery_id: UUID) -> Delivery:
    """Let a delivery add its rows to the published months instead of replacing them.

    Raises:
        ValidationError: the delivery does not wait for a confirmation.
    """
    with transaction.atomic():
        delivery = _waiting(actor, delivery_id)
        delivery.origin = {**delivery.origin, "adds": True}
        delivery.save(update_fields=["origin"])
        delivery.slices.update(is_main=False)
        ask_for_staging(delivery, actor)
        after = {"shrinking": delivery.report.get("shrinking", [])}
        note(actor, "delivery.add", subject=("delivery", delivery.pk), after=after)
    return delivery


def decline_delivery(actor: Actor, delivery_id: UUID) -> Delivery:
    """Refuse a delivery that would shrink published months; what is published stays.

    Raises:
        ValidationError: the delivery does not wait for a confirmation.
    """
    with transaction.atomic():
        delivery = _waiting(actor, delivery_id)
        delivery.state = Delivery.State.REFUSED
        delivery.refusal = {
            "code": "declined",
            "reason": _("declined by {who}").format(who=actor.label),
        }
        _save(delivery)
        delivery.slices.all().delete()  # their files are swept
        note(actor, "delivery.decline", subject=("delivery", delivery.pk))
    give_up_blobs(delivery.files.values_list("sha256", flat=True))
    return delivery


def _waiting(actor: Actor, delivery_id: UUID) -> Delivery:
    delivery = (
        Delivery.objects.select_for_update(of=("self",))
        .select_related("source")
        .get(pk=delivery_id, organisation_id=actor.organisation_id)
    )
    if delivery.state != Delivery.State.NEEDS_CONFIRMATION:
        raise ValidationError(_("This delivery does not wait for a confirmation."))
    return delivery


def _save(delivery: Delivery) -> None:
    delivery.settled_at = timezone.now()
    fields = ["state", "bill_format", "rows", "totals", "report", "refusal", "settled_at"]
    delivery.save(update_fields=fields)


def _note_staged(delivery: Delivery, staged: Staged) -> None:
    """Keep what staging counted, and make the stored slices known."""
    delivery.bill_format = staged.bill_format
    delivery.rows, delivery.totals = staged.rows, staged.totals
    delivery.report = dict(staged.report)
    for position, rows in staged.rows_by_file.items():
        delivery.files.filter(position=position).update(rows=rows)
    _note_slices(delivery, staged.slices)


def _note_slices(delivery: Delivery, staged: Iterable[StagedSlice]) -> None:
    """Make the staged files known, and the periods that they belong to."""
    for item in staged:
        period, _is_new = BillingPeriod.objects.get_or_create(
            organisation_id=delivery.organisation_id,
            source_id=delivery.source_id,
            dataset=item.dataset,
            start=month_from_label(item.period).start.date(),
        )
        ChargeSlice.objects.create(
            id=item.slice_id,
            organisation_id=delivery.organisation_id,
            delivery=delivery,
            period=period,
            is_main=item.is_main,
            path=item.path,
            size_bytes=item.size_bytes,
            rows=item.rows,
            totals=item.totals,
        )


def _slices_of(delivery: Delivery) -> list[ChargeSlice]:
    return list(
        delivery.slices.select_related("period__published_version").order_by("period__start")
    )


def _publish(delivery: Delivery, plan: "_Plan") -> None:
    """Give every touched period its new version; call it with the books locked."""
    known_at = timezone.now()
    changed = [
        _swap(period, slices, delivery=delivery, known_at=known_at)
        for period, slices in plan.periods()
    ]
    delivery.state = Delivery.State.PUBLISHED
    delivery.report["left_out"] = plan.left_out
    delivery.report["added_to"] = plan.added_to
    delivery.report["dropped"] = plan.dropped
    _save(delivery)
    actor = system_actor(delivery.organisation_id, delivery.received_by)
    after = {"rows": delivery.rows, "totals": delivery.totals, "periods": changed}
    note(actor, "delivery.publish", subject=("delivery", delivery.pk), after=after)


class _Plan:
    """Which slices each touched period shall hold.

    A main slice replaces its period whole; spill-over adds to its. A delivery whose last main slice
    is replaced takes its spill-over in other periods with it: the new delivery brings that again.
    Spill-over does not come back where a whole delivery has replaced it before, and a delivery that
    is late for all its months leaves it out with them.
    """

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._wanted: dict[int, tuple[BillingPeriod, list[ChargeSlice]]] = {}
        self.left_out: list[str] = []
        self.added_to: list[dict[str, Any]] = []
        self.dropped: list[dict[str, Any]] = []
        slices = _slices_of(delivery)
        mains = [item for item in slices if item.is_main]
        replaced = {one for item in mains for one in self._place_main(item)}
        is_late = bool(mains) and len(self.left_out) == len(mains)
        for item in slices:
            if item.is_main:
                continue
            if is_late or self._was_replaced(item, replaced):
                self.left_out.append(str(item.period))
            else:
                self._add(item)
        for delivery_id in replaced:
            self._drop_spill_over(delivery_id)

    def periods(self) -> list[tuple[BillingPeriod, list[ChargeSlice]]]:
        """Every touched period with the slices it shall hold."""
        return list(self._wanted.values())

    def _place_main(self, item: ChargeSlice) -> set[UUID]:
        """Let a slice replace its period; return the deliveries whose main slice goes."""
        live = live_slices(item.period)
        newer = [one for one in live if _is_newer(one.delivery, self._delivery)]
        if any(one.is_main for one in newer):
            self.left_out.append(str(item.period))
            return set()
        self._wanted[item.period.pk] = (item.period, [item, *newer])
        self.dropped += [
            {"period": str(item.period), "rows": one.rows, "of": str(one.delivery_id)}
            for one in live
            if not one.is_main and one not in newer
        ]
        return {one.delivery_id for one in live if one.is_main}

    def _add(self, item: ChargeSlice) -> None:
        """Add spill-over to what its period holds."""
        live = live_slices(item.period)
        others = sum(one.rows for one in live)
        if others:
            entry = {"period": str(item.period), "rows": item.rows, "rows_there": others}
            self.added_to.append(entry)
        self._wanted[item.period.pk] = (item.period, [*live, item])

    def _was_replaced(self, item: ChargeSlice, replaced: Collection[UUID]) -> bool:
        """Whether a whole delivery of the period took the place of these very rows before."""
        live = live_slices(item.period)
        if not any(one.is_main for one in live):
            return False
        before = ChargeSlice.objects.filter(
            delivery_id__in=replaced, period=item.period, is_main=False, rows=item.rows
        ).exclude(pk__in=[one.pk for one in live])
        return any(one.totals == item.totals for one in before)

    def _drop_spill_over(self, delivery_id: UUID) -> None:
        published = ChargeSlice.objects.filter(
            delivery_id=delivery_id, versions__published_period__isnull=False
        ).select_related("period__published_version")
        slices = list(published)
        if any(one.is_main and self._still_wanted(one) for one in slices):
            return
        for one in slices:
            if one.is_main:
                continue
            _period, kept = self._wanted.get(one.period_id, (one.period, live_slices(one.period)))
            self._wanted[one.period_id] = (one.period, [item for item in kept if item.pk != one.pk])

    def _still_wanted(self, one: ChargeSlice) -> bool:
        """Whether the slice stays in its period."""
        if one.period_id not in self._wanted:
            return True
        return any(item.pk == one.pk for item in self._wanted[one.period_id][1])


def _is_newer(one: Delivery, other: Delivery) -> bool:
    """Whether `one` is a later state: by the provider's own time where both have it."""
    if one.version_at and other.version_at and one.version_at != other.version_at:
        return one.version_at > other.version_at
    return one.received_at > other.received_at


def _swap(
    period: BillingPeriod,
    slices: Sequence[ChargeSlice],
    *,
    delivery: Delivery,
    known_at: datetime,
) -> dict[str, Any]:
    """Make a new version of these slices the published one."""
    newest = period.versions.aggregate(newest=Max("number"))["newest"] or 0
    old = period.published_version
    if old is not None:
        PeriodVersion.objects.filter(pk=old.pk).update(superseded_at=known_at)
    version = PeriodVersion.objects.create(
        organisation_id=period.organisation_id,
        period=period,
        number=newest + 1,
        delivery=delivery,
        known_at=known_at,
        rows=sum(item.rows for item in slices),
        totals=summed(item.totals for item in slices),
    )
    version.slices.set(slices)
    write_daily_costs(version, rules_in_force(period.organisation_id))
    if old is not None:
        old.daily_costs.all().delete()
    period.published_version = version
    period.save(update_fields=["published_version"])
    return {
        "period": str(period),
        "version": version.number,
        "rows_before": old.rows if old else None,
        "rows": version.rows,
        "totals": version.totals,
    }
