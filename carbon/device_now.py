"""Keeps the newest reading of each device at hand; disposable, newest wins."""

import re
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from django.db import connection

from carbon.adapters.binary_rows import listed
from carbon.attribution import instant_of, microsecond_of
from carbon.booked_rows import Round
from carbon.packed import MEASURES, JobNote
from formulae.units import MICROSECOND_PER_S, MILLIJOULE_PER_J
from runs.records import SiteRecord

WHOLE: Final = {"memory_used_bytes", "sm_clock_hz", "throttle_reasons", "xid", "ecc_errors"}
JOB_SHOWN_MICROSECOND: Final = 120 * MICROSECOND_PER_S  # a job that was seen so long ago is over
COUNTER_SPAN_MICROSECOND: Final = 600 * MICROSECOND_PER_S  # a mean over more is no "now"
_INCOMING: Final = "carbon_incoming_now"
CREATE_INCOMING: Final = (
    f"CREATE TEMPORARY TABLE {_INCOMING} (device_id bigint, sender_id int, at bigint, "
    "power_w float8, power_field text, use text, received_at bigint) ON COMMIT DROP"
)
KEEP: Final = (
    "INSERT INTO carbon_devicenow AS stored (device_id, organisation_id, site_id, sender_id, at, "  # noqa: S608 - our names
    "power_w, power_field, use, received_at) "
    "SELECT device_id, %s, %s, sender_id, timestamptz 'epoch' + at * interval '1 microsecond', "
    "power_w, power_field, use::jsonb, "
    "timestamptz 'epoch' + received_at * interval '1 microsecond' "
    f"FROM {_INCOMING} "
    "ON CONFLICT (device_id) DO UPDATE SET sender_id = excluded.sender_id, at = excluded.at, "
    "site_id = excluded.site_id, power_w = excluded.power_w, "
    "power_field = excluded.power_field, use = stored.use || excluded.use, "
    "received_at = excluded.received_at WHERE stored.at <= excluded.at"
)
COUNTER_BEFORE: Final = (
    "SELECT want.device_id, last.at, last.counter_millijoule, last.epoch "
    "FROM unnest(%s::bigint[], %s::timestamptz[]) AS want(device_id, low) "
    "CROSS JOIN LATERAL (SELECT at, counter_millijoule, epoch FROM carbon_counterreading "
    "WHERE device_id = want.device_id AND at < want.low ORDER BY at DESC LIMIT 1) AS last"
)


_encode: Final = msgspec.json.Encoder().encode
_ESCAPED: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_TO_ESCAPE: Final = re.compile(r"[\\\t\n\r]")
_instant: Final = attrgetter("at")
NEVER: Final = np.iinfo(np.int64).min
NEWEST: Final = (
    "SELECT device_id, (extract(epoch FROM at) * 1000000)::bigint FROM carbon_devicenow "
    "WHERE device_id = ANY(%s::bigint[])"
)


def newest_known(device_ids: Sequence[int]) -> npt.NDArray[np.int64]:
    """The instant of the newest booked reading of each device, microseconds; NEVER without one."""
    with connection.cursor() as cursor:
        cursor.execute(NEWEST, [listed(device_ids)])
        known = dict(cursor.fetchall())
    return np.array([known.get(one, NEVER) for one in device_ids], dtype=np.int64)


class _Last(NamedTuple):
    """The newest reading of a device in one table: its row, instant, sender (by index), arrival."""

    row: int
    at: int
    sender: int
    received_at: int


def keep_newest(site: SiteRecord, round_: Round) -> None:
    """Bring the newest readings of a round's devices up to date."""
    newest = {table: _newest(round_, table) for table in ("power", "counters", "use")}
    devices = sorted(set().union(*newest.values()))
    if not devices:
        return
    counted = _power_by_counter(round_, [one for one in devices if one not in newest["power"]])
    jobs = {note.device: note for note in sorted(round_.waiting.jobs, key=lambda one: one.at)}
    rows = [
        _row(round_, device, newest, counted.get(device), jobs.get(device)) for device in devices
    ]
    with connection.cursor() as cursor, connection.wrap_database_errors:
        cursor.execute(CREATE_INCOMING)
        with cursor.copy(f"COPY {_INCOMING} FROM STDIN") as copy:
            copy.write("".join(rows))
        cursor.execute(KEEP, [site.organisation_id, site.site_id])
        cursor.execute(f"DROP TABLE {_INCOMING}")


def _newest(round_: Round, table: str) -> dict[int, _Last]:
    """The newest good row of each device; at one instant the last that came."""
    good, columns = round_.good(table), round_.columns(table)
    device, at = columns["device"][good], columns["at"][good]
    order = np.lexsort((at, device))
    is_last = np.append(device[order][1:] != device[order][:-1], True) if len(order) else order
    last = good[order[is_last.astype(np.bool_)]]
    told = (columns[name][last].tolist() for name in ("at", "sender", "received_at"))
    rows = map(_Last, last.tolist(), *told)
    return dict(zip(columns["device"][last].tolist(), rows, strict=True))


def _row(
    round_: Round,
    device: int,
    newest: Mapping[str, Mapping[int, _Last]],
    counted_w: float | None,
    job: JobNote | None,
) -> str:
    """The columns of one device as a line for COPY, instants in microseconds."""
    seen = {table: one[device] for table, one in newest.items() if device in one}
    last = max(seen.values(), key=_instant)
    power_w, field = counted_w, "counter" if counted_w is not None else ""
    if "power" in seen:
        power_w = float(round_.columns("power")["power_w"][seen["power"].row])
        field = round_.waiting.power_fields[device]
    use: dict[str, Any] = dict(round_.waiting.devices[device].facts)
    if "use" in seen:
        use |= _measures(round_, seen["use"].row)
        use["job"] = _job(job, last.at)
    elif job is not None:
        use["job"] = _job(job, last.at)
    energy = [seen[one].at for one in ("power", "counters") if one in seen]
    if energy:
        use["energy_at"] = max(energy)
    sender_id = round_.waiting.senders[last.sender].sender_id
    power = "\\N" if power_w is None else repr(power_w)
    return (
        f"{round_.device_ids[device]}\t{sender_id}\t{last.at}\t{power}\t{_escaped(field)}\t"
        f"{_escaped(_encode(use).decode())}\t{last.received_at}\n"
    )


def _escaped(text: str) -> str:
    """A text as COPY takes it."""
    return text.translate(_ESCAPED) if _TO_ESCAPE.search(text) else text


def _measures(round_: Round, row: int) -> dict[str, float | int | None]:
    """What the newest reading of use says; None for what is unread."""
    columns = round_.columns("use")
    found: dict[str, float | int | None] = {}
    for name in MEASURES:
        value = float(columns[name][row])
        whole = name in WHOLE
        found[name] = None if np.isnan(value) else int(value) if whole else value
    return found


def _job(note: JobNote | None, at: int) -> dict[str, str] | None:
    if note is None or note.at < at - JOB_SHOWN_MICROSECOND:
        return None
    return {"kind": note.kind, "job": note.job, "run": note.run_name}


def _power_by_counter(round_: Round, devices: list[int]) -> dict[int, float]:
    """The mean power between the last two readings of a counter, of devices without power, W."""
    good, columns = round_.good("counters"), round_.columns("counters")
    chosen = good[np.isin(columns["device"][good], devices)]
    if not len(chosen):
        return {}
    order = chosen[np.lexsort((columns["at"][chosen], columns["device"][chosen]))]
    device = columns["device"][order]
    points: dict[int, list[tuple[int, int, int]]] = {}
    for index, row in zip(device.tolist(), order.tolist(), strict=True):
        points.setdefault(index, []).append(_point(columns, row))
    single = {index: one for index, one in points.items() if len(one) == 1}
    ids = {int(round_.device_ids[index]): index for index in single}
    if single:
        with connection.cursor() as cursor:
            lows = [instant_of(points[index][0][0]) for index in ids.values()]
            cursor.execute(COUNTER_BEFORE, [list(ids), lows])
            for device_id, at, counter, epoch in cursor.fetchall():
                points[ids[device_id]].insert(0, (microsecond_of(at), counter, epoch))
    means = {index: _mean_w(*one[-2:]) for index, one in points.items() if len(one) > 1}
    return {index: mean for index, mean in means.items() if mean is not None}


def _point(columns: Mapping[str, npt.NDArray[Any]], row: int) -> tuple[int, int, int]:
    return (
        int(columns["at"][row]),
        int(columns["counter_millijoule"][row]),
        int(columns["epoch"][row]),
    )


def _mean_w(first: tuple[int, int, int], last: tuple[int, int, int]) -> float | None:
    """(c1 - c0) / (t1 - t0), where the counter went on."""
    span, energy = last[0] - first[0], last[1] - first[1]
    if first[2] != last[2] or energy < 0 or not 0 < span <= COUNTER_SPAN_MICROSECOND:
        return None
    return energy / MILLIJOULE_PER_J / (span / MICROSECOND_PER_S)
