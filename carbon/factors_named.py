"""The factors behind a set of entries, as answers name them; hours of one series as one line."""

from typing import Final

from django.db import connection
from django.db.models import QuerySet, Sum

from carbon.models import EmissionEntry
from carbon.records import FactorUsed

HOURLY: Final = "hour"
_HOUR_OF: Final = r"/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}Z(/.*)?$"
# Hours of one series become one line, with the mean of their values weighed by energy.
_NAMED: Final = """
WITH used AS (
    SELECT * FROM unnest(%(ids)s::bigint[], %(weights)s::float8[]) AS used(id, weight)
), named AS (
    SELECT factor->>'level' = %(hourly)s AS is_hourly,
           CASE WHEN factor->>'level' = %(hourly)s
                THEN regexp_replace(
                    regexp_replace(factor->>'id', %(hour_of)s, ''), '^hourly-factor/.*$',
                    'hourly-factor')
                ELSE factor->>'id' END AS id,
           factor->>'kind' AS kind, (factor->>'value')::float8 AS value, factor->>'unit' AS unit,
           (factor->>'year')::int AS year, factor->>'source' AS source, factor->>'level' AS level,
           factor->>'basis' AS basis, factor->>'version' AS version, used.weight
    FROM used JOIN carbon_factorset AS held ON held.id = used.id,
         jsonb_array_elements(held.factors) AS factor
)
SELECT id, kind,
       CASE WHEN min(value) = max(value) THEN min(value)
            WHEN sum(weight) > 0 THEN sum(value * weight) / sum(weight)
            ELSE avg(value) END,
       unit, max(year), source, level,
       CASE WHEN is_hourly THEN string_agg(DISTINCT basis, '; ') ELSE min(basis) END,
       CASE WHEN is_hourly THEN '' ELSE min(version) END,
       count(*)
FROM named GROUP BY is_hourly, id, kind, unit, source, level
"""


def factors_named(entries: QuerySet[EmissionEntry]) -> tuple[FactorUsed, ...]:
    """The distinct factors of these entries, by kind and id."""
    sums = entries.values("factor_set_id").annotate(weight=Sum("accelerator_energy_millijoule"))
    used = list(sums.values_list("factor_set_id", "weight"))
    if not used:
        return ()
    with connection.cursor() as cursor:
        cursor.execute(
            _NAMED,
            {
                "ids": [one for one, _weight in used],
                "weights": [float(weight) for _one, weight in used],
                "hourly": HOURLY,
                "hour_of": _HOUR_OF,
            },
        )
        rows = cursor.fetchall()
    found = [
        FactorUsed(
            factor_id=row[0],
            kind=row[1],
            value=row[2],
            unit=row[3],
            year=row[4],
            source=row[5],
            level=row[6],
            basis=row[7],
            version=f"{row[9]} h" if row[6] == HOURLY else row[8],
        )
        for row in rows
    ]
    return tuple(sorted(found, key=lambda one: (one.kind, one.version, one.factor_id)))
