"""What runs cost: charges or hours at a rate, for a token, a step, a checkpoint; what was lost."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from formulae.time_ledger import Bucket
from planning.accrual_records import AccruedDay, Rate, RateBasis
from projects.models import Project
from projects.records import Role
from reports.run_cost_records import (
    BilledDay,
    CostBasis,
    RunUse,
    cost_of,
    daily_rates,
)
from reports.run_costs import reasons_of, run_costs
from runs.progress import ensure_run, record_progress
from runs.progress_records import EventKind, ProgressPoint, RunEvent, RunNow
from runs.records import RunRecord
from tests import builders
from tests.billing import builders as bills

DAY = date(2026, 9, 14)
NEXT = DAY + timedelta(days=1)
HOUR = 3_600_000_000


def make_run() -> RunRecord:
    return RunRecord(
        run_id=uuid4(),
        project_id=uuid4(),
        slug="main",
        name="Main",
        accelerator_key="h100-sxm-80gb",
        accelerator_count=256,
        precision="bf16",
        start=None,
        end=None,
    )


def make_use(**fields) -> RunUse:
    """A run of 256 accelerators for ten hours that trained two million tokens."""
    now = RunNow(
        run=make_run(),
        at=None,
        step=100,
        tokens_total=fields.pop("tokens", 2_000_000),
        loss=None,
        step_time_s=None,
        mfu_fraction=None,
        is_silent=False,
    )
    known = {
        "hours_by_day": {DAY: Decimal(2560)},
        "accelerator_energy_kwh": 1664.0,
        "it_energy_kwh": 1664.0,
        "facility_energy_kwh": 1996.8,
        "kgco2e": 798.72,
        "steps": 100,
        "checkpoints": 4,
        "buckets": {Bucket.PRODUCTIVE: 2304 * HOUR, Bucket.DOWN: 256 * HOUR},
    }
    return RunUse(now=now, **(known | fields))


def test_one_lost_hour_of_the_cluster_is_priced_as_worked_by_hand():
    found = cost_of(make_use(), {DAY: Decimal("2.50")})

    assert found.basis is CostBasis.RATED
    assert found.cost == Decimal(6400)
    assert found.lost_h == 256
    assert found.loss is not None
    assert found.loss.cost == Decimal(640)
    assert found.loss.facility_kwh is not None
    assert round(found.loss.facility_kwh, 2) == Decimal("199.68")
    assert found.loss.kgco2e is not None
    assert round(found.loss.kgco2e, 2) == Decimal("79.87")


def test_a_run_is_told_for_a_million_tokens_a_step_and_a_checkpoint():
    found = cost_of(make_use(), {DAY: Decimal("2.50")})

    assert found.cost_per_million == Decimal(3200)
    assert found.kwh_per_million == Decimal("998.4")
    assert found.kg_per_million == Decimal("399.36")
    assert found.cost_per_step == Decimal(64)
    assert found.cost_per_checkpoint == Decimal(1600)
    assert found.share(Bucket.DOWN) == pytest.approx(0.1)


def test_charges_of_the_run_come_before_a_rate_and_its_hours_since_then_are_added():
    hours = {DAY: Decimal(10), NEXT: Decimal(4)}
    rates = {DAY: Decimal(100), NEXT: Decimal(2)}

    billed = cost_of(make_use(hours_by_day=hours, charged=Decimal(50), charged_through=NEXT), rates)
    partly = cost_of(make_use(hours_by_day=hours, charged=Decimal(50), charged_through=DAY), rates)

    assert (billed.cost, billed.basis, billed.cost_badge) == (50, CostBasis.CHARGED, "invoiced")
    assert (partly.cost, partly.basis, partly.cost_badge) == (58, CostBasis.MIXED, "accrued")


def test_hours_without_a_rate_leave_the_cost_unknown_and_say_why():
    found = cost_of(make_use(tokens=None, facility_energy_kwh=None, buckets={}), {NEXT: Decimal(1)})

    assert found.cost is None
    assert found.cost_per_million is None
    assert found.loss is None
    told = " ".join(reasons_of(found))
    assert "no rate" in told
    assert "tokens are not reported" in told
    assert "no facility energy" in told


def test_time_of_which_nothing_is_told_is_not_called_lost():
    found = cost_of(make_use(buckets={Bucket.UNKNOWN: HOUR}), {DAY: Decimal(1)})

    assert found.lost_h is None
    assert found.loss is None


def test_the_rate_of_a_day_is_of_its_billed_and_accrued_hours_together():
    rate = Rate(amount=Decimal(3), currency="USD", basis=RateBasis.BILLED_LATELY)

    def accrued(day: date, cost: str | None, unit: str = "accelerator_h") -> AccruedDay:
        return AccruedDay(
            day=day,
            x_cost_class="accelerator",
            currency="USD",
            quantity=Decimal(10),
            unit=unit,
            rate=rate,
            cost=None if cost is None else Decimal(cost),
        )

    found = daily_rates(
        [BilledDay(day=DAY, cost=Decimal(10), accelerator_h=Decimal(10))],
        [accrued(DAY, "30"), accrued(DAY, "999", unit="day"), accrued(NEXT, None)],
        currency="USD",
    )

    assert found == {DAY: Decimal(2)}


@pytest.fixture
def trained() -> Project:
    """A run that reports two steps and a checkpoint, and has neither devices nor charges."""
    moe = builders.project("moe", members=[(builders.person("vera"), Role.VIEWER)])
    run = ensure_run(bills.operator(), moe, "main")
    at = datetime(2026, 9, 14, 8, tzinfo=UTC)
    record_progress(
        bills.operator(),
        run,
        points=[
            ProgressPoint(at=at, step=1, tokens_total=1_000),
            ProgressPoint(at=at + timedelta(hours=1), step=50, tokens_total=50_000),
        ],
        events=[RunEvent(at=at, kind=EventKind.CHECKPOINT, step=1)],
        source="test",
    )
    return moe


@pytest.mark.django_db
def test_what_the_rooms_know_of_a_run_is_joined(trained):
    (row,) = run_costs(trained, as_of=datetime(2026, 9, 20, tzinfo=UTC)).rows

    assert row.found.use.now.tokens_total == 50_000
    assert row.found.use.steps == 50
    assert row.found.use.checkpoints == 1
    assert row.found.cost is None
    assert "no charge is given to it and no device is assigned to it" in row.reasons


@pytest.mark.django_db
def test_a_viewer_reads_the_page_and_sees_why_something_is_not_known(trained):
    client = builders.signed_in(trained.memberships.get().user)

    page = client.get("/projects/moe/run-costs/").content.decode()

    assert "no charge is given to it" in page
    assert "50K" in page
    assert 'href="/projects/moe/run-costs/"' in client.get("/projects/moe/runs/").content.decode()


@pytest.mark.django_db
def test_a_project_without_runs_says_what_is_missing():
    builders.project("moe", members=[(vera := builders.person("vera"), Role.VIEWER)])

    page = builders.signed_in(vera).get("/projects/moe/run-costs/").content.decode()

    assert "No run yet" in page
