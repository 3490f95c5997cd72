"""The portfolio: what a row says of a project, and which row comes first."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from uuid import uuid4

import pytest

from billing.services import add_exchange_rate
from planning.forecast_records import ForecastBasis, Interval, ProjectForecast
from planning.records import LineBase, PlanLineRecord, PlanRecord
from projects.records import Role
from reports.portfolio import PortfolioRow, by_stake
from tests import builders
from tests.billing import builders as bills
from tests.billing import price_builders as prices

AS_OF = datetime(2026, 11, 1, tzinfo=UTC)
START, END = date(2026, 9, 1), date(2026, 12, 1)


def make_plan(*, main_run: str = "100", currency: str = "USD") -> PlanRecord:
    """A plan of 180 for a main run of 100."""
    line = PlanLineRecord(
        key="main_run",
        name="Main run",
        base=LineBase.AMOUNT,
        fraction=None,
        amount=Decimal(main_run) * Decimal("1.8"),
        starts_on=START,
        ends_on=END,
    )
    return PlanRecord(
        version_id=1,
        number=1,
        is_approved=True,
        approved_at=AS_OF,
        approved_by="olga",
        currency=currency,
        main_run_cost=Decimal(main_run),
        main_run_starts_on=START,
        main_run_ends_on=END,
        main_run_facility_energy_kwh=None,
        main_run_kgco2e=None,
        estimate_id=uuid4(),
        lines=(line,),
    )


def make_forecast(p50: str, *, ends_on: date = END) -> ProjectForecast:
    amount = Decimal(p50)
    return ProjectForecast(
        made_on=AS_OF.date(),
        basis=ForecastBasis.PROGRESS,
        cost=Interval(p10=amount, p50=amount, p80=amount, p90=amount),
        facility_energy_kwh=None,
        scope_2_location_kgco2e=None,
        main_run_ends_p10=ends_on,
        main_run_ends_p50=ends_on,
        main_run_ends_p90=ends_on,
        learned_fraction=0.5,
        is_open=False,
    )


def make_row(
    p50: str | None = None, *, over_plan: str | None = None, currency: str = "USD", **forecast: date
) -> PortfolioRow:
    """A row of what the portfolio reads of a burn-down."""
    burndown = SimpleNamespace(
        plan=make_plan(currency=currency) if p50 else None,
        forecast=make_forecast(p50, **forecast) if p50 else None,
        currency=currency,
        cost_over_plan=None if over_plan is None else Decimal(over_plan),
        programme_multiple=None,
    )
    return PortfolioRow(project=None, burndown=burndown)


@pytest.mark.parametrize(
    ("p50", "band", "over", "under"),
    [
        ("179.99", "below", "-0.01", "0.01"),
        ("180", "inside", "0.0", "0.0"),
        ("201", "above", "21", None),
    ],
)
def test_the_end_is_told_in_multiples_of_the_main_run_and_against_what_was_approved(
    p50, band, over, under
):
    row = make_row(p50)

    assert row.end_multiple == Decimal(p50) / 100
    assert row.band == band
    assert row.over_approved == Decimal(over)
    assert row.under_approved == (None if under is None else Decimal(under))


def test_the_end_of_the_main_run_is_told_against_its_plan():
    assert make_row("180", ends_on=date(2026, 12, 11)).late_days == 10
    assert make_row("180", ends_on=date(2026, 11, 28)).early_days == 3
    assert make_row("180").early_days is None
    assert make_row().late_days is None


@pytest.mark.django_db
def test_the_most_money_at_stake_comes_first_whatever_its_currency():
    add_exchange_rate(
        bills.operator(), replace(prices.rate_wish(), base="EUR", quote="USD", rate=Decimal(2))
    )
    dollars, euros = make_row("200"), make_row("195", currency="EUR")
    spent, foreign, unknown = make_row(over_plan="1"), make_row("999", currency="JPY"), make_row()

    found = by_stake(
        [dollars, unknown, spent, foreign, euros], bills.operator().organisation_id, as_of=AS_OF
    )

    # 15 euros are 30 dollars, more than 20; nobody knows what a yen is worth.
    assert found == [euros, dollars, spent, foreign, unknown]


@pytest.mark.django_db
def test_a_project_without_plan_or_data_is_shown_as_not_known():
    vera = builders.person("vera")
    builders.project("moe", members=[(vera, Role.VIEWER)])

    page = builders.signed_in(vera).get("/").content.decode()

    assert 'href="/projects/moe/"' in page
    assert page.count("not known") >= 6
