"""What a project's devices draw, cost and emit at this moment. Reads; nothing is kept."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from carbon.now_records import NodeReadings, SiteNow
from carbon.now_selectors import sites_now
from formulae.money import divide, exact_sum, multiply
from planning.accruals import accruals_of
from planning.selectors import baseline_of
from projects.models import Project
from runs.selectors import assignments_between, site_by_id

_INSTANT: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The project now; None where it is not known. Power is of devices that report."""

    assigned: int
    reporting: int
    power_w: float | None
    cost_per_h: Decimal | None
    currency: str
    emitted_kgco2e_per_h: float | None


def live_of(project: Project, *, now: datetime) -> Live | None:
    """The devices that are assigned now; None while none is.

    The cost of an hour is that of the newest day that is not billed yet, at the rate in force.
    """
    mine = [
        one
        for one in assignments_between(project.organisation_id, now, now + _INSTANT)
        if one.project_id == project.pk
    ]
    if not mine:
        return None
    device_ids = {one.device_id for one in mine}
    places = [
        _of_devices(found, device_ids)
        for site_id in sorted({one.site_id for one in mine})
        if (site := site_by_id(project.organisation_id, site_id)) is not None
        for found in sites_now(project.organisation_id, now=now, slug=site.slug)
    ]
    plan = baseline_of(project, as_of=now)
    currency = plan.currency if plan else project.currency
    rate = _rate(project, now, currency)
    return Live(
        assigned=len(device_ids),
        reporting=sum(place.live for place in places),
        power_w=_sum([place.power_w for place in places if place.live]),
        cost_per_h=None if rate is None else multiply(rate, Decimal(len(device_ids))),
        currency=currency,
        emitted_kgco2e_per_h=_sum([place.emitted_kgco2e_per_h for place in places if place.live]),
    )


def _of_devices(place: SiteNow, device_ids: set[int]) -> SiteNow:
    """A site with these devices alone."""
    nodes = (
        NodeReadings(
            name=node.name,
            devices=tuple(one for one in node.devices if one.device_id in device_ids),
        )
        for node in place.nodes
    )
    return replace(place, nodes=tuple(node for node in nodes if node.devices))


def _rate(project: Project, now: datetime, currency: str) -> Decimal | None:
    """The cost of an accelerator-hour on the newest accrued day."""
    accrued = accruals_of(project, as_of=now, currency=currency)
    hours = [one for one in accrued.days if one.unit == "accelerator_h"]
    newest = [one for one in hours if one.day == max(day.day for day in hours)]
    costs = [one.cost for one in newest if one.cost is not None]
    if not newest or len(costs) < len(newest):
        return None
    return divide(exact_sum(costs), exact_sum(one.quantity for one in newest))


def _sum(values: list[float | None]) -> float | None:
    """The sum; None without values, or where one is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
