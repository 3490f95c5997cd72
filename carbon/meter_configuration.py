"""A site's meters and factors of periods as part of the one document; computed ones stay out."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict

from carbon.meter_texts import FACTORS, METERS, MeterRow, level_of, meter_row, period_text, written
from carbon.models import HourlyFactor, SiteMeterReading
from carbon.site_meters import store_meter_rows
from projects.records import Actor
from runs.records import SiteRecord


class MeterEntry(BaseModel):
    """What a meter counted over a period, or a PUE or WUE that holds over it."""

    model_config = ConfigDict(extra="forbid")

    what: str
    period: Annotated[str, BeforeValidator(written)]
    value: float
    tier: str = "estimated"
    source: str = ""

    def row(self, where: str) -> MeterRow:
        """The row that a file would have."""
        fields = {
            "what": self.what,
            "period": self.period,
            "value": repr(self.value),
            "tier": self.tier,
            "source": self.source,
        }
        return meter_row(fields, where=where)


def apply_meters(
    actor: Actor, site: SiteRecord, entries: Sequence[MeterEntry], *, now: datetime
) -> None:
    """State what the entries say; whoever calls brings the site's hours up to date."""
    if entries:
        rows = [one.row(f"sites.{site.slug}.meters.{number}") for number, one in enumerate(entries)]
        store_meter_rows(actor, site, rows, now=now)


def dump_meters(site_id: UUID) -> list[dict[str, Any]]:
    """The readings, and the factors that somebody entered."""
    readings = SiteMeterReading.objects.filter(site_id=site_id, superseded_at__isnull=True)
    factors = HourlyFactor.objects.filter(
        site_id=site_id, superseded_at__isnull=True, denominator__isnull=True, kind__in=FACTORS
    )
    found = [
        *(
            (row.meter, level_of(row.start, row.end), row.start, row.value, "estimated", row.source)
            for row in readings
        ),
        *((row.kind, row.level, row.start, row.value, row.tier, row.source) for row in factors),
    ]
    order = (*METERS, *FACTORS)
    return [
        {
            "what": what,
            "period": period_text(level, start),
            "value": value,
            **({"tier": tier} if what in FACTORS else {}),
            "source": source,
        }
        for what, level, start, value, tier, source in sorted(
            found, key=lambda one: (order.index(one[0]), one[2], one[1] or "")
        )
        if level is not None
    ]
