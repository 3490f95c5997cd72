"""What providers publish of PUE, water and carbon-free power, read from carbon/data; pure."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from carbon.factors import DATA
from formulae.units import strict_float


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFigure:
    """A figure that somebody published of a region, a geography, a fleet or the industry.

    `applies_to` is "aws:us-east-1", "azure/apac", "aws", "industry", or empty: of nobody's cloud.
    """

    scope: str
    provider: str
    about: str
    applies_to: str
    value: float
    low: float | None
    high: float | None
    year: int
    source: str
    licence: str


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def _figures(name: str, column: str) -> tuple[PublishedFigure, ...]:
    return tuple(
        PublishedFigure(
            scope=row["scope"],
            provider=row["provider"],
            about=row["about"],
            applies_to=row["applies_to"],
            value=strict_float(row[column]),
            low=strict_float(row["low"]) if row["low"] else None,
            high=strict_float(row["high"]) if row["high"] else None,
            year=int(row["year"]),
            source=row["source"],
            licence=row["licence"],
        )
        for row in _rows(name)
    )


@cache
def published_pue_figures() -> tuple[PublishedFigure, ...]:
    """The rows of carbon/data/pue.csv."""
    return _figures("pue.csv", "pue")


@cache
def published_wue_figures() -> tuple[PublishedFigure, ...]:
    """The rows of carbon/data/wue.csv, L per kWh of IT energy."""
    return _figures("wue.csv", "wue_l_per_kwh")


@cache
def _market_rows() -> tuple[tuple[str, PublishedFigure], ...]:
    return tuple(
        (
            row["kind"],
            PublishedFigure(
                scope="region" if row["region"] else "fleet",
                provider=row["provider"],
                about=row["location"],
                applies_to=":".join(filter(None, (row["provider"], row["region"]))),
                value=strict_float(row["fraction"]),
                low=None,
                high=None,
                year=int(row["year"]),
                source=f"{row['source']} ({row['reference']}; {row['licence']})",
                licence=row["licence"],
            ),
        )
        for row in _rows("market.csv")
    )


def carbon_free_shares() -> tuple[PublishedFigure, ...]:
    """Carbon-free shares by region, matched hour by hour, fraction."""
    return tuple(figure for kind, figure in _market_rows() if kind == "hourly_carbon_free")


def match_claims() -> tuple[PublishedFigure, ...]:
    """Shares of a year's electricity that providers say they matched, fraction; claims only."""
    return tuple(figure for kind, figure in _market_rows() if kind == "claim_yearly_match")


def latest(figures: Sequence[PublishedFigure], year: int) -> PublishedFigure | None:
    """The figure of the last year not after `year`, else of the first year; None without any."""
    past = [figure for figure in figures if figure.year <= year]
    if past:
        return max(past, key=lambda figure: figure.year)
    return min(figures, key=lambda figure: figure.year, default=None)
