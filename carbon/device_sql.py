"""The SQL behind energy by device: device-hours that hold, their emissions, whose they are."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from carbon.energy_questions import EnergyQuestion
from carbon.energy_records import KNOWABLE
from carbon.energy_selectors import asked_entries
from carbon.market_groups import market_by_group
from runs.records import DeviceRecord

MEASURES: Final = (
    "measured_millijoule",
    "spread_millijoule",
    "estimated_millijoule",
    "covered_microsecond",
)
_ENERGY: Final = "(h.measured_millijoule + h.spread_millijoule + h.estimated_millijoule)"
_SUMS: Final = ", ".join(
    f"CASE WHEN count(*) = count(e.{name}) THEN sum(e.{name}) END AS {name}" for name in KNOWABLE
)
# An hour without energy emits nothing; unknown over anything stays unknown.
_PER_MILLIJOULE: Final = ", ".join(
    f"CASE WHEN b.energy = 0 THEN 0 ELSE {figure} / b.energy END AS {name}"
    for name, figure in (
        *((one, f"b.{one}") for one in KNOWABLE[:-1]),
        (KNOWABLE[-1], f"CASE WHEN m.site_id IS NULL THEN b.{KNOWABLE[-1]} ELSE m.kgco2e END"),
    )
)
# What a millijoule of each site's hour came to, all owners together; market-based with contracts.
RATES: Final = f"""
booked AS (
  SELECT e.site_id, e.hour, sum(e.accelerator_energy_millijoule)::float8 AS energy, {_SUMS}
  FROM carbon_emissionentry e
  WHERE e.organisation_id = %(organisation)s AND e.reverses_id IS NULL
    AND e.site_id = ANY(%(sites)s) AND e.hour >= %(start)s AND e.hour < %(end)s
    AND (%(as_of)s::timestamptz IS NULL OR e.posted_at <= %(as_of)s)
    AND NOT EXISTS (
      SELECT 1 FROM carbon_emissionentry r WHERE r.reverses_id = e.id
      AND (%(as_of)s::timestamptz IS NULL OR r.posted_at <= %(as_of)s))
  GROUP BY e.site_id, e.hour),
rates AS MATERIALIZED (
  SELECT b.site_id, b.hour, {_PER_MILLIJOULE}
  FROM booked b LEFT JOIN unnest(%(market_sites)s::uuid[], %(market_hours)s::timestamptz[],
    %(market_kgco2e)s::float8[]) AS m(site_id, hour, kgco2e)
    ON m.site_id = b.site_id AND m.hour = b.hour)
"""  # noqa: S608 - names of ours only
RATED: Final = ", ".join(f"r.{name} * {_ENERGY} AS {name}" for name in KNOWABLE)
HELD: Final = """
h.site_id = ANY(%(sites)s) AND h.hour >= %(start)s AND h.hour < %(end)s
AND (%(devices)s::bigint[] IS NULL OR h.device_id = ANY(%(devices)s))
AND CASE WHEN %(as_of)s::timestamptz IS NULL THEN h.superseded_at IS NULL
    ELSE h.known_at <= %(as_of)s AND (h.superseded_at IS NULL OR h.superseded_at > %(as_of)s) END
"""
OWNED: Final = """
owned AS (SELECT * FROM unnest(%(owned_devices)s::bigint[], %(lows)s::timestamptz[],
  %(highs)s::timestamptz[]) AS a(device_id, low, high))
"""
OF_NOBODY: Final = """NOT EXISTS (SELECT 1 FROM owned a WHERE a.device_id = h.device_id
  AND a.low < h.hour + interval '1 hour' AND a.high > h.hour)"""
OF_OWNER: Final = """EXISTS (SELECT 1 FROM owned a WHERE a.device_id = h.device_id
  AND a.low <= h.hour AND a.high >= h.hour + interval '1 hour')"""


def asked_params(question: EnergyQuestion, devices: Iterable[DeviceRecord]) -> dict[str, Any]:
    """The parameters of the SQL above for a question with a start and an end."""
    chosen = list(devices)
    everybody = replace(
        question, project="", project_id=None, run="", run_id=None, allowed=None, node="", device=""
    )
    market = market_by_group(
        question.organisation_id,
        asked_entries(everybody),
        ("site_id", "hour"),
        as_of=question.as_of,
    )
    return {
        "organisation": question.organisation_id,
        "start": question.start,
        "end": question.end,
        "as_of": question.as_of,
        "sites": sorted({one.site_id for one in chosen}),
        "devices": [one.device_id for one in chosen] if question.node or question.device else None,
        "market_sites": [site for site, _hour in market],
        "market_hours": [hour for _site, hour in market],
        "market_kgco2e": list(market.values()),
    }
