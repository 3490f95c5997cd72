"""Factors of a plan's energy, carbon and water at a place, each with its range; no tables."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from carbon.factors import choose_grid, cloud_name, cloud_regions, shipped_grid_factors, zone_chain
from carbon.places import geography_of
from carbon.records import FactorUsed, GridFactor
from carbon.site_offers import (
    PublishedFigure,
    carbon_free_shares,
    latest,
    match_claims,
    published_pue_figures,
    published_wue_figures,
)

FLEET: Final = "provider's fleet"
GEOGRAPHY: Final = "provider's geography"
REGION: Final = "cloud_region"
INDUSTRY: Final = "industry average"
MARKET_CFE: Final = "estimate: grid x (1 - hourly carbon-free share), no instrument seen"
MARKET_CLAIM: Final = "provider's claim, no instrument seen"
MARKET_GRID: Final = "grid average: no contract and no residual mix known"
_LEVEL_OF_SCOPE: Final = {
    "region": REGION,
    "geography": GEOGRAPHY,
    "fleet": FLEET,
    "industry": INDUSTRY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceFactor:
    """A factor at a place; low and high are None where nothing is published about its range."""

    kind: str
    value: float
    low: float | None
    high: float | None
    unit: str
    year: int | None
    source: str
    level: str
    basis: str = ""

    def as_json(self) -> dict[str, Any]:
        """The object that reports and commands print."""
        return {
            "kind": self.kind,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "year": self.year,
            "source": self.source,
            "level": self.level,
            "basis": self.basis,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceFactors:
    """What a plan needs of a place: location-based and market-based intensity, PUE and WUE."""

    grid: PlaceFactor | None
    market: PlaceFactor | None
    pue: PlaceFactor | None
    wue_l_per_kwh: PlaceFactor | None

    @property
    def named(self) -> tuple[PlaceFactor, ...]:
        """Those that are known."""
        found = (self.grid, self.market, self.pue, self.wue_l_per_kwh)
        return tuple(one for one in found if one is not None)


def place_factors(*, provider: str, region: str, country: str, year: int) -> PlaceFactors:
    """The factors of a cloud region, or of a country (ISO 3166-1 alpha-3) for one's own hall.

    Nearest first, and each says at which level it was found: the region, the provider's geography,
    its fleet, the average of the industry. The grid's chain is that of the books (choose_grid). No
    residual mix is shipped, so the market-based figure never rests on one.
    """
    cloud, code = cloud_name(provider), region.strip().lower()
    known = cloud_regions().get((cloud, code))
    country = country.strip().upper() or (known.country if known else "")
    chain = zone_chain(provider=cloud, region=code, country=country, state="")
    used = choose_grid(shipped_grid_factors(), chain, year=year)
    grid = _grid(used, country=country, state=known.state if known else "") if used else None
    keys = _keys(cloud, code, country)
    return PlaceFactors(
        grid=grid,
        market=_market(cloud, code, grid, year) if grid else None,
        pue=_nearest(published_pue_figures(), keys, kind="pue", unit="ratio", year=year),
        wue_l_per_kwh=_nearest(published_wue_figures(), keys, kind="wue", unit="L/kWh", year=year),
    )


def _keys(cloud: str, region: str, country: str) -> tuple[str, ...]:
    """What a published figure may apply to, nearest first."""
    geography = geography_of(country)
    candidates = (
        f"{cloud}:{region}" if cloud and region else "",
        f"{cloud}/{geography}" if cloud and geography else "",
        cloud,
        "industry",
    )
    return tuple(one for one in candidates if one)


def _nearest(
    figures: Iterable[PublishedFigure], keys: tuple[str, ...], *, kind: str, unit: str, year: int
) -> PlaceFactor | None:
    rows = tuple(figures)
    for key in keys:
        found = latest([row for row in rows if row.applies_to == key], year)
        if found:
            return PlaceFactor(
                kind=kind,
                value=found.value,
                low=found.low,
                high=found.high,
                unit=unit,
                year=found.year,
                source=f"{found.source} ({found.provider}, {found.about})",
                level=_LEVEL_OF_SCOPE[found.scope],
            )
    return None


def _grid(used: FactorUsed, *, country: str, state: str) -> PlaceFactor:
    """The grid factor, ranged over all that is shipped about the same place."""
    values = {used.value} | {
        row.value_g_per_kwh
        for row in shipped_grid_factors()
        if row.zone_type == used.level == "world"
        or _is_about(row, used, country=country, state=state)
    }
    is_ranged = len(values) > 1
    return PlaceFactor(
        kind="grid_intensity",
        value=used.value,
        low=min(values) if is_ranged else None,
        high=max(values) if is_ranged else None,
        unit=used.unit,
        year=used.year,
        source=used.source,
        level=used.level,
        basis=used.basis,
    )


def _is_about(row: GridFactor, used: FactorUsed, *, country: str, state: str) -> bool:
    """Whether a row speaks of the place: the same region or state, else the country and in it."""
    if used.level == "cloud_region":
        is_same = row.factor_id.rpartition("/")[0] == used.factor_id.rpartition("/")[0]
        return is_same or (row.zone_type == "us_state" and row.zone == state)
    if row.zone_type == "cloud_region":
        provider, _, region = row.zone.partition(":")
        place = cloud_regions().get((provider, region))
        if place is None or used.level == "world":
            return False
        return place.state == state if used.level == "us_state" else place.country == country
    return row.zone_type == used.level == "country" and row.zone == country


def _market(cloud: str, region: str, grid: PlaceFactor, year: int) -> PlaceFactor:
    """Market-based intensity as far as it can be known before a contract is seen."""
    market = replace(grid, kind="market_intensity", level=MARKET_GRID)
    location_high = grid.value if grid.high is None else grid.high
    share = latest(
        [row for row in carbon_free_shares() if row.applies_to == f"{cloud}:{region}"], year
    )
    if share:
        return replace(
            market,
            value=grid.value * (1 - share.value),
            low=0.0,
            high=location_high,
            year=share.year,
            source=f"{share.source}: {share.value:.0%} carbon-free ({share.about}) x {grid.source}",
            level=MARKET_CFE,
        )
    claims = [row for row in match_claims() if row.applies_to == cloud and row.year <= year]
    claim = latest(claims, year)
    if claim:
        return replace(
            market,
            low=0.0,
            high=location_high,
            source=f"{claim.source}, {claim.year}: {claim.value:.0%}; without it {grid.source}",
            level=MARKET_CLAIM,
        )
    return market
