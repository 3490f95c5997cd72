"""Which zone of a service a site most likely stands in: suggestions, never applied; no tables."""

import csv
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from carbon.factors import DATA, zone_chain
from runs.records import SiteRecord


@cache
def _zones() -> Mapping[tuple[str, str], Mapping[str, str]]:
    with (DATA / "intensity_zones.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    return MappingProxyType({(row["zone_type"], row["zone"]): row for row in rows})


def suggested_zone(site: SiteRecord, provider: str) -> str:
    """The service's key of the zone nearest to the site; empty where none is known."""
    chain = zone_chain(
        provider=site.provider, region=site.region, country=site.country, state=site.state
    )
    for zone in chain:
        found = _zones().get((zone.zone_type, zone.zone), {}).get(provider, "")
        if found:
            return found
    return ""
