"""Which factors hold at a site in which hour: measured by the hour first, published last."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Final

from carbon.assets import EmbodiedRates
from carbon.attribution import instant_of, microsecond_of
from carbon.boundaries import Boundary, boundaries_of, boundary_on, country_of
from carbon.factors import (
    cloud_name,
    factor_on,
    factors_on,
    site_factor_used,
    zone_chain,
)
from carbon.hourly_factors import PeriodFactor, factors_of_hours
from carbon.intensity import intensities_for, upstream_for
from carbon.metering import HOUR_MICROSECOND
from carbon.places import geography_of
from carbon.records import DatedFactor, FactorsUsed, FactorUsed, GridFactor
from carbon.residual_mixes import mixes_of, residual_used
from carbon.site_factors import dated_factors, grid_factors
from carbon.site_offers import (
    PublishedFigure,
    latest,
    published_pue_figures,
    published_wue_figures,
)
from runs.records import SiteRecord

FLEET: Final = "fleet"
_UNITS: Final = {"host_factor": "ratio", "pue": "ratio", "wue_l_per_kwh": "L/kWh"}
_LEVEL_OF: Final = {"region": "provider_region", "geography": "provider_geography", "fleet": FLEET}
Hours = Mapping[int, FactorUsed]


def factors_by_day(
    site: SiteRecord, days: Iterable[date], dated: Sequence[DatedFactor] | None = None
) -> dict[date, FactorsUsed]:
    """The factors of a site on each of these days, where nothing is known by the hour."""
    chain = zone_chain(
        provider=site.provider, region=site.region, country=site.country, state=site.state
    )
    grid: list[GridFactor] = grid_factors(zone.zone for zone in chain)
    own = dated_factors(site.site_id) if dated is None else dated
    found = {}
    for day in days:
        used = factors_on(day, dated=own, grid=grid, chain=chain)
        if used.pue.level == "not set":
            used = replace(used, pue=_published(site, "pue", day.year) or used.pue)
        wue = factor_on(own, "wue_l_per_kwh", day)
        water = factor_on(own, "source_l_per_kwh", day)
        found[day] = replace(
            used,
            wue=site_factor_used(wue, "wue", "L/kWh") if wue else _published(site, "wue", day.year),
            source_water=site_factor_used(water, "source_water", "L/kWh") if water else None,
        )
    return found


def _published(site: SiteRecord, kind: str, year: int) -> FactorUsed | None:
    """What the provider publishes of the region, else its geography, else its fleet."""
    if not site.provider:
        return None
    cloud, region = cloud_name(site.provider), site.region.strip().lower()
    geography = geography_of(country_of(site))
    figures = published_pue_figures() if kind == "pue" else published_wue_figures()
    for key in (f"{cloud}:{region}", f"{cloud}/{geography}", cloud):
        found = latest([one for one in figures if one.applies_to == key], year)
        if found and found.scope in _LEVEL_OF:
            return _published_used(found, kind)
    return None


def _published_used(one: PublishedFigure, kind: str) -> FactorUsed:
    return FactorUsed(
        factor_id=f"published-{kind}/{one.applies_to}/{one.year}",
        kind=kind,
        value=one.value,
        unit="ratio" if kind == "pue" else "L/kWh",
        year=one.year,
        source=f"{one.source} ({one.provider}, {one.about})",
        level=_LEVEL_OF[one.scope],
        basis="published",
    )


def factors_by_hour(
    site: SiteRecord, hours: Collection[int]
) -> tuple[dict[int, FactorsUsed], dict[int, Boundary]]:
    """The factors and the boundary of a site in each of these hours (microseconds).

    Hours with the same factors share one record, so that callers can tell them by identity.
    """
    if not hours:
        return {}, {}
    day_of = {hour: instant_of(hour).date() for hour in hours}
    days = set(day_of.values())
    by_day = factors_by_day(site, days)
    boundaries = boundaries_of(site)
    boundary_by_day = {day: boundary_on(boundaries, day) for day in days}
    mixes = mixes_of(site.organisation_id)
    residual_by_day = {
        day: residual_used(mixes, boundary_by_day[day].market_zone, day.year) for day in days
    }
    embodied = EmbodiedRates(site)
    overlay = _by_the_hour(site, min(hours), max(hours) + HOUR_MICROSECOND)
    same: dict[tuple[int, ...], FactorsUsed] = {}
    found = {}
    for hour, day in day_of.items():
        told = {name: factors.get(hour) for name, factors in overlay.items()}
        made = embodied.at(instant_of(hour)) if embodied.assets else None
        key = (id(by_day[day]), id(residual_by_day[day]), id(made), *map(id, told.values()))
        if key not in same:
            same[key] = _overlaid(by_day[day], told, residual_by_day[day], made)
        found[hour] = same[key]
    return _merged(found), {hour: boundary_by_day[day] for hour, day in day_of.items()}


def _overlaid(
    base: FactorsUsed,
    told: Mapping[str, FactorUsed | None],
    residual: FactorUsed | None,
    embodied: FactorUsed | None,
) -> FactorsUsed:
    """What is known of the hour before what is known of the day."""
    hourly = {name: factor for name, factor in told.items() if factor is not None}
    host = hourly.get("host_factor")
    if host is not None and host.basis == "estimated" and base.host_factor is not None:
        del hourly["host_factor"]  # a lower bound does not replace what the site has set
    return replace(base, residual=residual, embodied=embodied, **hourly)


def _merged(found: dict[int, FactorsUsed]) -> dict[int, FactorsUsed]:
    """The same record for equal factors of different days."""
    one_of: dict[FactorsUsed, FactorsUsed] = {}
    by_id: dict[int, FactorsUsed] = {}
    for used in found.values():
        if id(used) not in by_id:
            by_id[id(used)] = one_of.setdefault(used, used)
    return {hour: by_id[id(used)] for hour, used in found.items()}


def _by_the_hour(site: SiteRecord, start: int, end: int) -> dict[str, Hours]:
    """What is known by the hour, or by month and year as it was measured; empty kinds left out."""
    grid = intensities_for(site, start, end)
    every = {
        "host_factor": period_factors(site, "host_factor", start, end),
        "pue": period_factors(site, "pue", start, end),
        "wue": period_factors(site, "wue_l_per_kwh", start, end),
        "grid": grid,
        "upstream": _upstream(grid, upstream_for(site, start, end)) if grid else {},
    }
    return {name: factors for name, factors in every.items() if factors}


def _upstream(grid: Hours, upstream_g_per_kwh: Mapping[int, float]) -> Hours:
    """Upstream of the hour's grid factor, which stays the source of both."""
    return {
        hour: replace(
            grid[hour],
            factor_id=f"upstream/{grid[hour].factor_id}",
            kind="upstream",
            value=value,
            basis="lifecycle less direct",
        )
        for hour, value in upstream_g_per_kwh.items()
        if hour in grid
    }


def period_factors(site: SiteRecord, kind: str, start: int, end: int) -> Hours:
    """A factor by hour: that of the hour itself, else of its month, else of its year."""
    found: dict[int, FactorUsed] = {}
    for one in factors_of_hours(site.site_id, kind, instant_of(start), instant_of(end)):
        used = _period_used(one)
        low = max(microsecond_of(one.start), start)
        first = -(-low // HOUR_MICROSECOND) * HOUR_MICROSECOND
        for hour in range(first, min(microsecond_of(one.end), end), HOUR_MICROSECOND):
            found.setdefault(hour, used)
    return found


def _period_used(one: PeriodFactor) -> FactorUsed:
    start = one.start.astimezone(UTC)
    return FactorUsed(
        factor_id=one.factor_id,
        kind="wue" if one.kind == "wue_l_per_kwh" else one.kind,
        value=one.value,
        unit=_UNITS[one.kind],
        year=start.year,
        source=one.source,
        level=one.level,
        basis=one.tier,
        version=_named_period(one.level, start),
    )


def _named_period(level: str, start: datetime) -> str:
    """The hour, month or year that a factor speaks of."""
    pattern = {"hour": "%Y-%m-%dT%HZ", "month": "%Y-%m"}.get(level, "%Y")
    return start.strftime(pattern)
