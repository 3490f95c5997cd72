"""Posts hours anew whose share of the hardware changed as late data told of one more accelerator.

Only hours after those of its readings, which are posted with them.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from django.db import transaction

from carbon.assets import EmbodiedRates
from carbon.attribution import instant_of, microsecond_of
from carbon.entry_queries import current_entries
from carbon.instants import announce
from carbon.intake import lock_site
from carbon.metering import HOUR_MICROSECOND
from carbon.models import FactorSet
from carbon.posting import post_hours
from runs.records import SiteRecord
from runs.selectors import devices_of

DEVICE_HOURS_AT_ONCE: Final = 500_000
HOURS_AT_LEAST: Final = 24


def share_hardware_anew(
    site: SiteRecord,
    start: int,
    *,
    now: datetime | None,
    before_commit: Callable[[], None] | None = None,
) -> int:
    """Post the hours from `start` on whose entries carry another share of the hardware than holds.

    Says how many entries are new. Each stretch is a transaction of its own.
    """
    stale = _stale_hours(site, start)
    if not stale:
        return 0
    posted, end = 0, max(stale) + HOUR_MICROSECOND
    hours = max(HOURS_AT_LEAST, DEVICE_HOURS_AT_ONCE // max(1, len(devices_of(site.site_id))))
    for low in range(min(stale), end, hours * HOUR_MICROSECOND):
        with transaction.atomic():
            lock_site(site.site_id)
            high = min(low + hours * HOUR_MICROSECOND, end)
            posted += post_hours(site, start=low, end=high, posted_at=announce(now))
            if before_commit is not None:
                before_commit()
    return posted


def _stale_hours(site: SiteRecord, start: int) -> list[int]:
    """Posted hours whose share of the hardware is not the one that holds."""
    rates = EmbodiedRates(site)
    if len(rates.assets) < 2:  # shared as it says, whoever is known
        return []
    rows = current_entries().filter(site_id=site.site_id, hour__gte=instant_of(start))
    made_with = set(rows.values_list("hour", "factor_set_id").distinct())
    sets = FactorSet.objects.in_bulk({factor_set_id for _hour, factor_set_id in made_with})
    named = {
        key: [one for one in row.factors if one["kind"] == "embodied"] for key, row in sets.items()
    }
    stale = []
    for hour, factor_set_id in made_with:
        rate = rates.at(hour)
        if named[factor_set_id] != ([] if rate is None else [rate.as_json()]):
            stale.append(microsecond_of(hour))
    return stale
