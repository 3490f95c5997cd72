"""Embodied carbon in two views: amortised by use, and whole in the year of purchase. Reads."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db.models import Count, Sum
from django.db.models.functions import TruncDate

from carbon.assets import Asset, embodied_range
from carbon.entry_queries import current_entries
from runs.records import SiteRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbodiedYear:
    """Embodied carbon of a calendar year; the range is None unless every piece has one."""

    year: int
    kgco2e: float | None
    kgco2e_low: float | None
    kgco2e_high: float | None


def inventory_years(assets: Sequence[Asset]) -> list[EmbodiedYear]:
    """Hardware whole in the year of its purchase, as the corporate inventory books it."""
    by_year: dict[int, list[Asset]] = defaultdict(list)
    for one in assets:
        by_year[one.purchased_on.year].append(one)
    return [
        EmbodiedYear(
            year=year,
            kgco2e=math.fsum(one.kgco2e for one in bought),
            kgco2e_low=_sum([one.kgco2e_low for one in bought]),
            kgco2e_high=_sum([one.kgco2e_high for one in bought]),
        )
        for year, bought in sorted(by_year.items())
    ]


def _sum(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return math.fsum(known) if len(known) == len(values) else None


def amortised_years(site: SiteRecord, assets: Sequence[Asset]) -> list[EmbodiedYear]:
    """Hardware by the hours of its use, as entries carry it; its range by that of the pieces."""
    days = current_entries().filter(site_id=site.site_id)
    rows = days.annotate(day=TruncDate("hour", tzinfo=UTC)).values("day")
    sums = rows.annotate(
        count=Count("pk"), known=Count("embodied_kgco2e"), kg=Sum("embodied_kgco2e")
    )
    by_year: dict[int, list[tuple[float | None, float | None, float | None]]] = defaultdict(list)
    for row in sums:
        day = row["day"]
        span = embodied_range(assets, datetime(day.year, day.month, day.day, tzinfo=UTC))
        kg = float(row["kg"]) if row["known"] == row["count"] else None
        low, high = (None, None) if kg is None or span is None else (kg * span[0], kg * span[1])
        by_year[day.year].append((kg, low, high))
    return [
        EmbodiedYear(
            year=year,
            kgco2e=_sum([kg for kg, _low, _high in found]),
            kgco2e_low=_sum([low for _kg, low, _high in found]),
            kgco2e_high=_sum([high for _kg, _low, high in found]),
        )
        for year, found in sorted(by_year.items())
    ]
