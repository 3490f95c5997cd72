"""The portfolio: where each project stands and ends, the most money at stake first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from billing.price_selectors import exchange_rate
from formulae.money import divide, multiply
from formulae.units import EXACT
from planning.records import Burndown
from planning.selectors import burndown_of
from projects.access import Actor, projects_for
from projects.models import Project

BAND: Final = (Decimal("1.8"), Decimal("2.0"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioRow:
    """One project on the first page."""

    project: Project
    burndown: Burndown

    @property
    def standing(self) -> str:
        """The badge: within-plan, above-plan, over-band, or not-set when it cannot be said."""
        multiple, over = self.burndown.programme_multiple, self.burndown.cost_over_plan
        if multiple is None or over is None:
            return "not-set"
        if multiple > BAND[1]:
            return "over-band"
        return "above-plan" if over > 0 else "within-plan"

    @property
    def cost_badge(self) -> str:
        """How cost to date is known: from bills, or with a part that is accrued."""
        if self.burndown.cost_to_date is None:
            return ""
        return "accrued" if self.burndown.accrued_cost else "invoiced"

    @property
    def end_p50(self) -> Decimal | None:
        """Half of all futures cost less at completion."""
        forecast = self.burndown.forecast
        return forecast.cost.p50 if forecast and forecast.cost else None

    @property
    def end_multiple(self) -> Decimal | None:
        """P50 at completion over the main run's planned cost."""
        plan = self.burndown.plan
        if plan is None or self.end_p50 is None:
            return None
        return divide(self.end_p50, plan.main_run_cost)

    @property
    def band(self) -> str:
        """Where that multiple lies: below 1.8, from 1.8 to 2.0, or above."""
        if self.end_multiple is None:
            return ""
        if self.end_multiple > BAND[1]:
            return "above"
        return "inside" if self.end_multiple >= BAND[0] else "below"

    @property
    def over_approved(self) -> Decimal | None:
        """P50 at completion less what was approved."""
        plan = self.burndown.plan
        if plan is None or self.end_p50 is None:
            return None
        return EXACT.subtract(self.end_p50, plan.budget_at_completion)

    @property
    def under_approved(self) -> Decimal | None:
        """What P50 leaves of the approved budget, where it leaves any."""
        over = self.over_approved
        return None if over is None or over > 0 else EXACT.minus(over)

    @property
    def late_days(self) -> int | None:
        """How many days after its planned last day the main run ends; below 0 is early."""
        plan, forecast = self.burndown.plan, self.burndown.forecast
        if plan is None or forecast is None:
            return None
        return (forecast.main_run_ends_p50 - plan.main_run_ends_on).days

    @property
    def early_days(self) -> int | None:
        """How many days before it, where it is early."""
        return None if self.late_days is None or self.late_days >= 0 else -self.late_days

    @property
    def emissions_p50(self) -> Decimal | None:
        """Half of all futures emit less, kgCO2e, location-based."""
        forecast = self.burndown.forecast
        found = forecast.scope_2_location_kgco2e if forecast else None
        return found.p50 if found else None

    @property
    def stake(self) -> Decimal | None:
        """The money at stake: P50 over approved, else cost to date over plan."""
        over = self.over_approved
        return self.burndown.cost_over_plan if over is None else over


def portfolio(actor: Actor, *, as_of: datetime) -> list[PortfolioRow]:
    """Every project that the actor may see, the most money at stake first."""
    rows = [
        PortfolioRow(project=project, burndown=burndown_of(project, as_of=as_of))
        for project in projects_for(actor)
    ]
    return by_stake(rows, actor.organisation_id, as_of=as_of)


def by_stake(
    rows: Sequence[PortfolioRow], organisation_id: UUID, *, as_of: datetime
) -> list[PortfolioRow]:
    """Rows by money at stake, those without any known last.

    Amounts are compared at the newest exchange rates and never added; a currency without a rate
    comes after those that compare.
    """
    quote = rows[0].burndown.currency if rows else ""
    rates: dict[str, Decimal | None] = {}
    for row in rows:
        base = row.burndown.currency
        if base not in rates:
            found = exchange_rate(organisation_id, base=base, quote=quote, on=as_of.date())
            rates[base] = found.rate if found else None

    def place(row: PortfolioRow) -> tuple[int, Decimal]:
        rate = rates[row.burndown.currency]
        if row.stake is None:
            return 2, Decimal(0)
        if rate is None:
            return 1, -row.stake
        return 0, -multiply(row.stake, rate)

    return sorted(rows, key=place)
