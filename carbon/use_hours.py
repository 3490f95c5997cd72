"""How devices spent their energy, hour by hour: idle, throttled, capped. Reads and one upsert.

Each reading stands until the next one of its sender, no longer than the longest gap that the site
bridges. Of several senders the one that saw most of the hour counts.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from django.db import connection

IDLE_FRACTION: Final = 0.05  # below this utilisation a device does nothing for the run
# NVML, nvmlClocksEventReasons: hardware slowdown, software and hardware thermal, power brake.
THROTTLED_BITS: Final = 0x8 | 0x20 | 0x40 | 0x80
CAPPED_BIT: Final = 0x4  # software power cap: the limit that somebody set

_MEASURES: Final = (
    "seen_s, seen_j, idle_s, idle_j, throttled_s, throttled_j, capped_s, capped_j, "
    "busy_fraction, sm_clock_hz, power_limit_w"
)
_COPIED: Final = ", ".join(f"{name} = EXCLUDED.{name}" for name in _MEASURES.split(", "))
_UPSERT: Final = f"""
WITH read AS (
    SELECT use.organisation_id, device.site_id, use.device_id, use.sender_id, use.at,
        power.power_w, use.utilisation_fraction, use.sm_clock_hz, use.power_limit_w,
        coalesce(use.throttle_reasons, 0) AS reasons,
        extract(epoch FROM lead(use.at) OVER line - use.at)::float8 AS stands_s
    FROM carbon_usereading use
    JOIN carbon_powersample power USING (device_id, at, sender_id)
    JOIN runs_device device ON device.id = use.device_id
    WHERE use.device_id = ANY(%(devices)s) AND use.at >= %(start)s
        AND use.at < %(end)s + make_interval(secs => %(gap_s)s)
    WINDOW line AS (PARTITION BY use.device_id, use.sender_id ORDER BY use.at)
), held AS (
    SELECT *, date_trunc('hour', at, 'UTC') AS hour, power_w * stands_s AS joule,
        utilisation_fraction < %(idle)s AS is_idle,
        reasons & %(throttled)s <> 0 AS is_throttled,
        reasons & %(capped)s <> 0 AS is_capped
    FROM read
    WHERE stands_s <= %(gap_s)s AND at < %(end)s AND utilisation_fraction IS NOT NULL
), summed AS (
    SELECT organisation_id, site_id, device_id, sender_id, hour,
        sum(stands_s) AS seen_s, sum(joule) AS seen_j,
        coalesce(sum(stands_s) FILTER (WHERE is_idle), 0) AS idle_s,
        coalesce(sum(joule) FILTER (WHERE is_idle), 0) AS idle_j,
        coalesce(sum(stands_s) FILTER (WHERE is_throttled), 0) AS throttled_s,
        coalesce(sum(joule) FILTER (WHERE is_throttled), 0) AS throttled_j,
        coalesce(sum(stands_s) FILTER (WHERE is_capped), 0) AS capped_s,
        coalesce(sum(joule) FILTER (WHERE is_capped), 0) AS capped_j,
        sum(utilisation_fraction * stands_s) / sum(stands_s) AS busy_fraction,
        sum(sm_clock_hz * stands_s)
            / nullif(sum(stands_s) FILTER (WHERE sm_clock_hz IS NOT NULL), 0) AS sm_clock_hz,
        min(power_limit_w) AS power_limit_w
    FROM held
    GROUP BY organisation_id, site_id, device_id, sender_id, hour
    HAVING sum(stands_s) > 0
)
INSERT INTO carbon_deviceusehour
    (organisation_id, site_id, device_id, hour, sender_id, {_MEASURES})
SELECT DISTINCT ON (device_id, hour)
    organisation_id, site_id, device_id, hour, sender_id, {_MEASURES}
FROM summed
ORDER BY device_id, hour, seen_s DESC, sender_id
ON CONFLICT (device_id, hour) DO UPDATE SET sender_id = EXCLUDED.sender_id, {_COPIED}
"""  # noqa: S608 - our own names


def sum_use(device_ids: Sequence[int], *, start: datetime, end: datetime, gap_s: float) -> int:
    """Sum up what devices did in the whole hours of [start, end); say how many device-hours.

    In the caller's transaction. Running it again, or with later readings, replaces the hours.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _UPSERT,
            {
                "devices": list(device_ids),
                "start": start,
                "end": end,
                "gap_s": gap_s,
                "idle": IDLE_FRACTION,
                "throttled": THROTTLED_BITS,
                "capped": CAPPED_BIT,
            },
        )
        return int(cursor.rowcount)
