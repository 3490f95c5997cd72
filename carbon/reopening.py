"""Which hours new readings touch, and so are to be closed again: up to the readings beside them."""

from datetime import datetime
from typing import Any, Final

import numpy as np
from django.db import connection

from carbon.adapters.binary_rows import listed
from carbon.attribution import instant_of, microsecond_of
from carbon.booked_rows import Round
from carbon.intake import LONGEST_MICROSECOND
from carbon.metering import HOUR_MICROSECOND, Ints
from carbon.site_factors import dated_factors, max_gap_s
from carbon.storing import open_hours
from formulae.units import MICROSECOND_PER_S
from runs.records import SiteRecord
from runs.selectors import devices_of

NOWHERE: Final = np.iinfo(np.int64).max
# A counter goes on through a gap, and what a gap lacks is estimated between its two ends.
BESIDE: Final = (
    "SELECT want.device_id, "
    "greatest((SELECT at FROM carbon_powersample WHERE device_id = want.device_id "
    "AND at < want.low ORDER BY at DESC LIMIT 1), "
    "(SELECT at FROM carbon_counterreading WHERE device_id = want.device_id "
    "AND at < want.low ORDER BY at DESC LIMIT 1)), "
    "least((SELECT at FROM carbon_powersample WHERE device_id = want.device_id "
    "AND at > want.high ORDER BY at LIMIT 1), "
    "(SELECT at FROM carbon_counterreading WHERE device_id = want.device_id "
    "AND at > want.high ORDER BY at LIMIT 1)) "
    "FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[]) AS want(device_id, low, high)"
)
NEWEST: Final = (
    "SELECT device_id, (use->>'energy_at')::bigint FROM carbon_devicenow "
    "WHERE device_id = ANY(%s::bigint[]) AND use ? 'energy_at'"
)


def reopen(site: SiteRecord, round_: Round, *, now: datetime) -> None:
    """Mark the hours that the stored readings of a round touch; nothing new touches nothing."""
    if not any(round_.new_by_sender.values()):
        return
    device, low, high = _spans(site, round_)
    if not len(device):
        return
    reach = int(max_gap_s(dated_factors(site.site_id)) * MICROSECOND_PER_S)
    before, after = _beside(device, low, high)
    first = np.minimum(low - reach, before) // HOUR_MICROSECOND
    last = -(-np.maximum(high + reach, after) // HOUR_MICROSECOND)
    for start, end in np.unique(np.stack([first, last], axis=1), axis=0):
        open_hours(
            site,
            [int(one) for one in device[(first == start) & (last == end)]],
            int(start) * HOUR_MICROSECOND,
            int(end) * HOUR_MICROSECOND,
            received_at=now,
        )


def _spans(site: SiteRecord, round_: Round) -> tuple[Ints, Ints, Ints]:
    """The devices of a round with their first and last reading; a node's stand for its devices."""
    count = len(round_.device_ids)
    low, high = np.full(count, NOWHERE), np.full(count, -1)
    for table in ("power", "counters", "use"):
        good, columns = round_.good(table), round_.columns(table)
        np.minimum.at(low, columns["device"][good], columns["at"][good])
        np.maximum.at(high, columns["device"][good], columns["at"][good])
    seen = high >= 0
    seen_spans = (one[seen].tolist() for one in (round_.device_ids, low, high))
    spans = {device: (first, last) for device, first, last in zip(*seen_spans, strict=True)}
    for device, first, last in _of_nodes(site, round_):
        known = spans.get(device, (first, last))
        spans[device] = (min(known[0], first), max(known[1], last))
    rows = np.array([(one, *span) for one, span in spans.items()], dtype=np.int64).reshape(-1, 3)
    return rows[:, 0], rows[:, 1], rows[:, 2]


def _of_nodes(site: SiteRecord, round_: Round) -> list[tuple[int, int, int]]:
    """The devices of nodes whose power was read, with the span of those readings."""
    good, columns = round_.good("nodes"), round_.columns("nodes")
    if not len(good):
        return []
    spans: dict[str, tuple[int, int]] = {}
    for index in np.unique(columns["device"][good]):
        at = columns["at"][good][columns["device"][good] == index]
        spans[round_.waiting.nodes_named[index]] = (int(at.min()), int(at.max()))
    return [
        (one.device_id, *spans[one.node]) for one in devices_of(site.site_id) if one.node in spans
    ]


def _beside(device: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """The readings before and after each span; the span's own ends where there is none near."""
    before, after = low.copy(), high.copy()
    with connection.cursor() as cursor:
        cursor.execute(NEWEST, [listed(device.tolist())])
        newest: dict[int, int] = dict(cursor.fetchall())
        known = np.array([newest.get(one, NOWHERE) for one in device.tolist()], dtype=np.int64)
        in_order = known < low
        before[in_order] = known[in_order]
        late = np.flatnonzero(~in_order)
        if len(late):
            _look_beside(cursor, (device, low, high), late, before, after)
    near = low - before <= LONGEST_MICROSECOND
    return np.where(near, before, low), np.where(after - high <= LONGEST_MICROSECOND, after, high)


def _look_beside(
    cursor: Any, spans: tuple[Ints, Ints, Ints], rows: Ints, before: Ints, after: Ints
) -> None:
    """Fill in the neighbours of spans that are not the newest of their device."""
    device, low, high = (values[rows] for values in spans)
    position = {int(one): int(row) for one, row in zip(device, rows, strict=True)}
    cursor.execute(
        BESIDE,
        [device.tolist(), [instant_of(one) for one in low], [instant_of(one) for one in high]],
    )
    for device_id, earlier, later in cursor.fetchall():
        row = position[device_id]
        if earlier is not None:
            before[row] = microsecond_of(earlier)
        if later is not None:
            after[row] = microsecond_of(later)
