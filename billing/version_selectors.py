"""Reads of restatement: which versions a month has had, and what changed between two of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import ibis

from billing.expressions import whole_sum
from billing.lake_tables import stored_charges
from billing.models import BillingPeriod, PeriodVersion
from billing.records import Basis
from formulae.units import EXACT
from lake.engine import Engine, open_duckdb

DIFFERENCE_VIEWS: Final = (
    "service_name",
    "day",
    "x_cost_class",
    "sub_account_id",
    "region_id",
    "charge_category",
)
A_WEEK: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedGroup:
    """One group in two versions; None = it is not there, or a charge lacks the cost."""

    group: str | None
    currency: str
    cost_before: Decimal | None
    cost_after: Decimal | None
    rows_before: int
    rows_after: int

    @property
    def change(self) -> Decimal | None:
        """What the newer version adds; a group that is in one version only counts whole."""
        before = Decimal(0) if not self.rows_before else self.cost_before
        after = Decimal(0) if not self.rows_after else self.cost_after
        if before is None or after is None:
            return None
        return EXACT.subtract(after, before)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionDifference:
    """What changed between two versions of a month, by one view."""

    period: BillingPeriod
    before: PeriodVersion
    after: PeriodVersion
    view: str
    basis: Basis
    groups: tuple[ChangedGroup, ...]  # the changed ones, the largest change first
    unchanged: int


def period_of(organisation_id: UUID, period_id: int) -> BillingPeriod | None:
    """A billing month of a source, with its source."""
    return (
        BillingPeriod.objects.filter(organisation_id=organisation_id, pk=period_id)
        .select_related("source", "published_version")
        .first()
    )


def versions_of(period: BillingPeriod) -> list[PeriodVersion]:
    """Every version, newest first, with the delivery that made it."""
    return list(period.versions.select_related("delivery").order_by("-number"))


def version_before(period: BillingPeriod, *, now: datetime) -> PeriodVersion | None:
    """The version that was in force a week ago; else the first one."""
    versions = period.versions.order_by("number")
    known = versions.filter(known_at__lte=now - A_WEEK).last()
    return known or versions.first()


def version_difference(
    before: PeriodVersion, after: PeriodVersion, *, view: str, basis: Basis
) -> VersionDifference:
    """Compare two versions of one month from the lake, exactly.

    Raises:
        ValueError: another view, or versions of two months.
    """
    if view not in DIFFERENCE_VIEWS:
        raise ValueError(f"compare by one of {', '.join(DIFFERENCE_VIEWS)}")
    if before.period_id != after.period_id:
        raise ValueError("versions of two months cannot be compared")
    with open_duckdb() as engine:
        old = _sums(engine, before, view, basis)
        new = _sums(engine, after, view, basis)
    groups = [
        ChangedGroup(
            group=key[0],
            currency=key[1],
            cost_before=old.get(key, (None, 0))[0],
            cost_after=new.get(key, (None, 0))[0],
            rows_before=old.get(key, (None, 0))[1],
            rows_after=new.get(key, (None, 0))[1],
        )
        for key in {**old, **new}
    ]
    changed = [
        one
        for one in groups
        if (one.cost_before, one.rows_before) != (one.cost_after, one.rows_after)
    ]
    return VersionDifference(
        period=after.period,
        before=before,
        after=after,
        view=view,
        basis=basis,
        groups=tuple(sorted(changed, key=_order)),
        unchanged=len(groups) - len(changed),
    )


def _order(one: ChangedGroup) -> tuple[Any, ...]:
    change = one.change
    size = Decimal(0) if change is None else abs(change)
    return (change is not None, -size, str(one.group), one.currency)


def _sums(
    engine: Engine, version: PeriodVersion, view: str, basis: Basis
) -> dict[tuple[str | None, str], tuple[Decimal | None, int]]:
    paths: Sequence[str] = list(version.slices.order_by("path").values_list("path", flat=True))
    if not paths:
        return {}
    charges = stored_charges(engine, paths)
    group: Any = (
        charges.charge_period_start.date().cast("string") if view == "day" else charges[view]
    )
    charges = charges.mutate(x_group=group.cast("string"))
    summed = charges.group_by("x_group", "billing_currency").agg(
        cost=whole_sum(charges, basis.column), count=charges.count()
    )
    return {
        (row["x_group"], row["billing_currency"]): (row["cost"], row["count"])
        for row in engine.rows(summed.order_by(ibis.asc("billing_currency")))
    }
