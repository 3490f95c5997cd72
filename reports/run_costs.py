"""Reads what each run of a project cost, drew and emitted beside what it trained."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.utils.translation import gettext as _

from billing.cost_questions import CostQuestion, Scope
from billing.records import Basis
from billing.selectors import cost_by_day, cost_table
from carbon.energy_questions import EnergyQuestion
from carbon.energy_records import EnergyRow
from carbon.energy_selectors import booked_table
from formulae.money import divide, exact_sum
from formulae.time_ledger import Bucket
from planning.accruals import accruals_of
from planning.selectors import baseline_of
from projects.models import Project
from reports.run_cost_records import (
    LOST,
    S_PER_H,
    BilledDay,
    CostBasis,
    RunCost,
    RunUse,
    cost_of,
    daily_rates,
)
from runs.progress_basis import mfu_bases
from runs.progress_devices import allocated_device_s
from runs.progress_records import EventKind, ProgressDay, RunNow
from runs.progress_selectors import events_of, latest_of, ledger_by_hour, progress_by_day
from runs.progress_words import bucket_name
from runs.records import RunRecord

FIRST_DAY: Final = date(2000, 1, 1)
FIRST_INSTANT: Final = datetime(2000, 1, 1, tzinfo=UTC)
LONGEST_LEDGER: Final = timedelta(days=750)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What part of a run's time went into a bucket."""

    name: str
    fraction: float | None
    is_lost: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run as the page shows it, with the reasons of what is not known."""

    found: RunCost
    run: RunRecord
    shares: tuple[Share, ...]
    reasons: tuple[str, ...]
    denominator: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCosts:
    """The runs of a project, the dearest first."""

    currency: str
    basis: str
    as_of: datetime
    rows: tuple[RunRow, ...]
    bucket_names: tuple[str, ...]
    settled_through: date | None


def run_costs(project: Project, *, as_of: datetime, basis: str = "effective") -> RunCosts:
    """What each run cost until `as_of`.

    Args:
        project: as `projects.access.project_for` gave it.
        as_of: aware instant.
        basis: billed, effective, list or contracted.
    """
    plan = baseline_of(project, as_of=as_of)
    currency = plan.currency if plan else project.currency
    accruals = accruals_of(project, as_of=as_of, currency=currency, basis=basis)
    billed = _billed(project, currency=currency, basis=basis, as_of=as_of)
    rates = daily_rates(billed, accruals.days, currency=currency)
    uses = _uses(project, currency=currency, basis=basis, as_of=as_of)
    shown = [bucket for bucket in Bucket if any(use.buckets.get(bucket) for use in uses)]
    found = [cost_of(use, rates) for use in uses]
    found.sort(key=lambda one: (one.cost is None, -(one.cost or 0), one.use.now.run.name))
    return RunCosts(
        currency=currency,
        basis=basis,
        as_of=as_of,
        rows=tuple(_row(one, shown) for one in found),
        bucket_names=tuple(bucket_name(bucket) for bucket in shown),
        settled_through=accruals.settled_through,
    )


def _row(found: RunCost, shown: Sequence[Bucket]) -> RunRow:
    basis = found.use.mfu_basis
    return RunRow(
        found=found,
        run=found.use.now.run,
        shares=tuple(
            Share(name=bucket_name(one), fraction=found.share(one), is_lost=one in LOST)
            for one in shown
        ),
        reasons=reasons_of(found),
        denominator=f"{basis.denominator}; {basis.flop_basis}" if basis else "",
    )


def reasons_of(found: RunCost) -> tuple[str, ...]:
    """Why parts of a run are not known, in words."""
    use = found.use
    reasons = [_cost_reason(found)] if found.basis is CostBasis.UNKNOWN else []
    if use.facility_energy_kwh is None:
        reasons.append(_("no facility energy is booked for it"))
    if use.now.tokens_total is None:
        reasons.append(_("its tokens are not reported, so nothing is told for a token"))
    else:
        reasons += _progress_reasons(use)
    if use.buckets and found.lost_h is None:
        reasons.append(_("nothing tells how its time was spent"))
    return tuple(reasons)


def _cost_reason(found: RunCost) -> str:
    if found.use.has_foreign_charges:
        return _("some of its charges are in another currency or have no such cost")
    if found.use.hours_by_day:
        return _("its hours have no rate: nothing is billed and no price is stated")
    return _("no charge is given to it and no device is assigned to it")


def _progress_reasons(use: RunUse) -> list[str]:
    reasons = []
    if use.mfu_basis is None:
        reasons.append(_("set its parameters and accelerator to know its MFU"))
    if not use.checkpoints:
        reasons.append(_("its checkpoints are not reported"))
    return reasons


def _billed(project: Project, *, currency: str, basis: str, as_of: datetime) -> list[BilledDay]:
    """What accelerators cost by day, of days with billed hours."""
    rows = cost_by_day(
        project.organisation_id,
        project.pk,
        basis=basis,
        start_on=FIRST_DAY,
        end_on=as_of.date() + timedelta(days=1),
        as_of=as_of,
    )
    return [
        BilledDay(day=row.day, cost=row.cost, accelerator_h=row.accelerator_h)
        for row in rows
        if row.currency == currency and row.accelerator_h
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Charged:
    """What allocation gives to a run."""

    cost: Decimal | None
    through: date
    has_foreign: bool


def _charged(
    project: Project, *, currency: str, basis: str, as_of: datetime
) -> dict[str, _Charged]:
    """Charges by the run that an allocation rule names."""
    question = CostQuestion(
        group_by=("run_key", "day"),
        basis=Basis(basis),
        scope=Scope(project_id=project.pk),
        end_on=as_of.date() + timedelta(days=1),
        as_of=as_of,
    )
    costs: defaultdict[str, list[Decimal | None]] = defaultdict(list)
    last: dict[str, date] = {}
    foreign: set[str] = set()
    for row in cost_table(project.organisation_id, question).rows:
        key, day = row.group
        if not key or not day:
            continue
        last[key] = max(last.get(key, FIRST_DAY), date.fromisoformat(day))
        if row.currency == currency:
            costs[key].append(row.cost)
        elif row.cost is None or row.cost:
            foreign.add(key)
    return {
        key: _Charged(
            cost=None if None in costs[key] else exact_sum(one for one in costs[key] if one),
            through=through,
            has_foreign=key in foreign or None in costs[key],
        )
        for key, through in last.items()
    }


def _uses(project: Project, *, currency: str, basis: str, as_of: datetime) -> list[RunUse]:
    """What is known of each run of a project."""
    told = latest_of(project.pk, as_of)
    bases = mfu_bases(now.run for now in told)
    allocated = allocated_device_s(project.pk, FIRST_INSTANT, as_of)
    charged = _charged(project, currency=currency, basis=basis, as_of=as_of)
    energy = _energy(project, as_of)
    days = _days(project, as_of)
    saved = _checkpoints(project, as_of)
    found = []
    for now in told:
        run = now.run
        hours = {
            day: divide(Decimal(repr(seconds)), S_PER_H) or Decimal(0)
            for day, seconds in allocated.get(run.run_id, {}).items()
        }
        charge, booked = charged.get(run.slug), energy.get(run.slug)
        of_run = days.get(run.run_id, [])
        found.append(
            RunUse(
                now=now,
                hours_by_day=hours,
                charged=charge.cost if charge else None,
                charged_through=charge.through if charge else None,
                has_foreign_charges=bool(charge and charge.has_foreign),
                accelerator_energy_kwh=booked.accelerator_energy_kwh if booked else None,
                it_energy_kwh=booked.it_energy_kwh if booked else None,
                facility_energy_kwh=booked.facility_energy_kwh if booked else None,
                kgco2e=booked.scope_2_location_kgco2e if booked else None,
                steps=now.step,
                checkpoints=saved.get(run.run_id, 0),
                mfu_fraction=_mfu(of_run),
                mfu_basis=bases.get(run.run_id),
                buckets=_ledger(project, now, hours, as_of),
            )
        )
    return found


def _energy(project: Project, as_of: datetime) -> Mapping[str, EnergyRow]:
    """Energy and emissions on the books by the slug of the run."""
    question = EnergyQuestion(
        organisation_id=project.organisation_id,
        by="run",
        project=project.slug,
        project_id=project.pk,
        end=as_of,
        as_of=as_of,
    )
    return {row.key.partition("/")[2]: row for row in booked_table(question).rows}


def _days(project: Project, as_of: datetime) -> dict[UUID, list[ProgressDay]]:
    found: defaultdict[UUID, list[ProgressDay]] = defaultdict(list)
    end_on = as_of.date() + timedelta(days=1)
    for one in progress_by_day(project.pk, start_on=FIRST_DAY, end_on=end_on, as_of=as_of):
        found[one.run_id].append(one)
    return found


def _checkpoints(project: Project, as_of: datetime) -> dict[UUID, int]:
    counts: defaultdict[UUID, int] = defaultdict(int)
    for run, event in events_of(project.pk, FIRST_INSTANT, as_of):
        counts[run.run_id] += event.kind is EventKind.CHECKPOINT
    return counts


def _mfu(days: Sequence[ProgressDay]) -> float | None:
    """Utilisation over all days that have one, each weighed by its assigned device-time."""
    known = [
        (one.mfu_fraction, one.allocated_device_s)
        for one in days
        if one.mfu_fraction is not None and one.allocated_device_s
    ]
    whole = sum(seconds for _share, seconds in known)
    return sum(share * seconds for share, seconds in known) / whole if whole else None


def _ledger(
    project: Project, now: RunNow, hours: Mapping[date, Decimal], as_of: datetime
) -> dict[Bucket, int]:
    """A run's assigned device-time by bucket, over the days on which it had devices."""
    if not hours:
        return {}
    start = datetime.combine(min(hours), datetime.min.time(), tzinfo=UTC)
    spent: defaultdict[Bucket, int] = defaultdict(int)
    for hour in ledger_by_hour(
        project.organisation_id,
        project.pk,
        max(start, as_of - LONGEST_LEDGER),
        as_of,
        now.run.run_id,
    ):
        for bucket, amount in hour.device_microseconds.items():
            spent[bucket] += amount
    return dict(spent)
