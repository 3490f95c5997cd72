"""What the hours of a site should say, from its readings, assignments and like devices."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from django.db import connection

from carbon.attribution import instant_of
from carbon.cascade import (
    CROSS_CHECKED_MICROSECOND,
    PRESENCE_MICROSECOND,
    Grid,
    Metered,
    Rules,
    line_of,
    metered,
)
from carbon.counters import ASSUMED_LIMIT_W, Implausible
from carbon.gaps import (
    Estimates,
    Gaps,
    SeenHours,
    assigned_runs,
    estimated,
    groups_of,
    with_use,
)
from carbon.hour_versions import ClosedHours, current_hours
from carbon.lines import (
    Line,
)
from carbon.metering import (
    HOUR_MICROSECOND,
    Floats,
    Ints,
)
from carbon.site_factors import dated_factors, max_gap_s
from carbon.storing import Aside
from carbon.window_readings import Columns, is_sampled, mean_use, read_window, senders_of
from formulae.units import MICROSECOND_PER_S
from runs.records import AssignmentRecord, DeviceRecord, SiteRecord
from runs.selectors import assignments_between, devices_of

DEVICE_HOURS_AT_ONCE: Final = 500_000
SAMPLED_DEVICE_HOURS_AT_ONCE: Final = 1_000
IMPLAUSIBLE: Final = "counter_above_the_power_limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Hours [start, end) of some devices, in microseconds."""

    device_ids: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputed:
    """Hours as they should be, as they are on the books, and differences set aside."""

    table: ClosedHours
    old: Columns
    aside: tuple[Aside, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    """What holds at a site in a window."""

    site: SiteRecord
    devices: Mapping[int, DeviceRecord]
    assignments: Sequence[AssignmentRecord]
    max_gap: int

    def limit_w(self, device_ids: Ints) -> Floats:
        """The power limit of each device; a generous one where nobody knows it."""
        known = (self.devices.get(int(one)) for one in device_ids)
        return np.array([(one.power_limit_w if one else None) or ASSUMED_LIMIT_W for one in known])

    def models(self) -> dict[int, str]:
        """What kind of accelerator each device is; empty where nobody said."""
        return {
            one.device_id: one.accelerator_key or one.model.strip().lower()
            for one in self.devices.values()
        }


def recomputed(site: SiteRecord, window: Window) -> Recomputed:
    """The hours of a window's devices, and of those whose estimates hang on them."""
    facts = _Site(
        site=site,
        devices={one.device_id: one for one in devices_of(site.site_id)},
        assignments=assignments_between(
            site.organisation_id, instant_of(window.start), instant_of(window.end), site.site_id
        ),
        max_gap=int(max_gap_s(dated_factors(site.site_id)) * MICROSECOND_PER_S),
    )
    grid = Grid(
        devices=np.array(
            sorted({*window.device_ids, *_unseen_devices(facts, window)}), dtype=np.int64
        ),
        start=window.start,
        hours=(window.end - window.start) // HOUR_MICROSECOND,
    )
    whole, aside = _metered(facts, grid)
    table = _table(grid, whole, _estimates(facts, grid, whole))
    old = current_hours(
        "device_id = ANY(%s) AND hour >= %s AND hour < %s",
        [grid.devices.tolist(), instant_of(grid.start), instant_of(grid.end)],
    )
    return Recomputed(table=table, old=old, aside=aside)


def _unseen_devices(facts: _Site, window: Window) -> list[int]:
    """Other devices of the site that were not seen all of the window: late data may tell of them.

    Their estimates follow from those who were seen.
    """
    mine = set(window.device_ids)
    if mine.issuperset(facts.devices):
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT device_id, count(*) FILTER (WHERE hour >= %(low)s AND hour < %(high)s "
            "AND covered_microsecond >= %(hour)s) "
            "FROM carbon_energyhour WHERE site_id = %(site)s AND hour >= %(earliest)s "
            "AND hour < %(latest)s AND superseded_at IS NULL GROUP BY device_id",
            {
                "site": facts.site.site_id,
                "hour": HOUR_MICROSECOND,
                "low": instant_of(window.start),
                "high": instant_of(window.end),
                "earliest": instant_of(window.start - PRESENCE_MICROSECOND - HOUR_MICROSECOND),
                "latest": instant_of(window.end + PRESENCE_MICROSECOND),
            },
        )
        whole = dict(cursor.fetchall())
    hours = (window.end - window.start) // HOUR_MICROSECOND
    known = {*whole, *(one.device_id for one in facts.assignments)}
    return [one for one in known - mine if one in facts.devices and whole.get(one, 0) < hours]


def _metered(facts: _Site, grid: Grid) -> tuple[Metered, tuple[Aside, ...]]:
    """Energy of the grid, a few devices at a time."""
    senders = senders_of(facts.site.site_id)
    parts: list[Metered] = []
    aside: list[Aside] = []
    for part in _chunks(grid):
        readings = read_window(part, senders, max_gap=facts.max_gap)
        line = line_of(readings, part)
        rules = Rules(
            limit_w=facts.limit_w(part.devices),
            max_gap=facts.max_gap,
            assigned=assigned_runs(line, part, facts.assignments),
        )
        energy, implausible = metered(readings, part, line, rules)
        parts.append(energy)
        aside += _aside(facts, part, line, implausible)
    names = Metered.__slots__
    columns = {name: np.concatenate([getattr(one, name) for one in parts]) for name in names}
    return Metered(**columns), tuple(aside)


def _chunks(grid: Grid) -> Iterator[Grid]:
    """Grids of some of the devices, each small enough to hold in memory."""
    sampled = is_sampled(grid.devices.tolist(), grid.start, grid.end)
    at_once = SAMPLED_DEVICE_HOURS_AT_ONCE if sampled else DEVICE_HOURS_AT_ONCE
    step = max(1, at_once // max(1, grid.hours))
    for low in range(0, max(1, len(grid.devices)), step):
        yield Grid(devices=grid.devices[low : low + step], start=grid.start, hours=grid.hours)


def _aside(facts: _Site, grid: Grid, line: Line, found: Implausible) -> Iterator[Aside]:
    """Differences in the window that no device can have drawn, for the quarantine."""
    starts, ends = line.instant(found.start), line.instant(found.end)
    devices = grid.devices[line.index_at(found.start)]
    for row in np.flatnonzero((starts < grid.end) & (ends > grid.start)):
        yield Aside(
            device_uuid=facts.devices[int(devices[row])].device_uuid,
            start=int(starts[row]),
            end=int(ends[row]),
            reading=f"{int(found.energy_millijoule[row])} mJ",
            reason=IMPLAUSIBLE,
        )


def _estimates(facts: _Site, grid: Grid, whole: Metered) -> tuple[Ints, Ints, Ints]:
    """Energy, time and method of what is estimated, by cell of the grid."""
    hour = np.tile(np.arange(grid.hours), len(grid.devices))
    device = np.repeat(grid.devices, grid.hours)
    gap = np.where(hour < _last_hour(facts, grid, whole, hour), whole.assigned, whole.present)
    cells = np.flatnonzero(gap)
    energy, time, method = (np.zeros(grid.size, dtype=np.int64) for _ in range(3))
    if not len(cells):
        return energy, time, method
    gaps = Gaps(
        device=device[cells],
        hour=hour[cells],
        gap_microsecond=gap[cells],
        reset_millijoule=whole.reset[cells],
    )
    wanted = np.isin(hour, gaps.hour) & (whole.covered > 0)
    own = SeenHours(
        device=device[wanted],
        hour=hour[wanted],
        energy_millijoule=(whole.measured + whole.spread - whole.reset)[wanted],
        covered_microsecond=whole.covered[wanted],
    )
    seen = _with_others(facts, grid, own, np.unique(gaps.hour))
    everybody = Grid(
        devices=np.union1d(grid.devices, seen.device), start=grid.start, hours=grid.hours
    )
    groups = groups_of(everybody, facts.assignments, facts.models())
    found = _by_use(facts, grid, gaps, estimated(gaps, seen, groups, hours=grid.hours))
    energy[cells], method[cells] = found.energy_millijoule, found.method
    time[cells] = np.where(found.method > 0, gaps.gap_microsecond, 0)
    return energy, time, method


def _last_hour(facts: _Site, grid: Grid, whole: Metered, hour: Ints) -> int:
    """The place in the window of the last hour in which the site was seen, or beyond it.

    In that hour readings may still come: what is assigned and silent at its end is not estimated.
    """
    seen = int(hour[whole.covered > 0].max(initial=-1))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT max(hour) FROM carbon_energyhour WHERE site_id = %s "
            "AND superseded_at IS NULL AND covered_microsecond > 0 "
            "AND (hour >= %s OR (hour >= %s AND device_id <> ALL(%s)))",
            [
                facts.site.site_id,
                instant_of(grid.end),
                instant_of(grid.start),
                grid.devices.tolist(),
            ],
        )
        (later,) = cursor.fetchone()
    if later is None:
        return seen
    place = int((later - instant_of(grid.start)).total_seconds() // 3600)
    return max(seen, place)


def _with_others(facts: _Site, grid: Grid, own: SeenHours, hours: Ints) -> SeenHours:
    """What was seen of the grid's devices, and of the site's other ones in the same hours."""
    if set(grid.devices.tolist()).issuperset(facts.devices):
        return own
    rows = current_hours(
        "site_id = %s AND hour = ANY(%s) AND covered_microsecond > 0",
        [facts.site.site_id, [instant_of(grid.start + one * HOUR_MICROSECOND) for one in hours]],
    )
    other = ~np.isin(rows["device_id"], grid.devices)
    energy = rows["measured_millijoule"] + rows["spread_millijoule"] - rows["reset_millijoule"]
    place = (rows["hour"] - grid.start) // HOUR_MICROSECOND
    return SeenHours(
        device=np.concatenate([own.device, rows["device_id"][other]]),
        hour=np.concatenate([own.hour, place[other]]),
        energy_millijoule=np.concatenate([own.energy_millijoule, energy[other]]),
        covered_microsecond=np.concatenate(
            [own.covered_microsecond, rows["covered_microsecond"][other]]
        ),
    )


def _by_use(facts: _Site, grid: Grid, gaps: Gaps, found: Estimates) -> Estimates:
    """The estimates, with what is known only by its use."""
    open_rows = np.flatnonzero(found.method == 0)
    limits = {
        (int(gaps.device[row]), int(gaps.hour[row])): limit
        for row in open_rows
        if (limit := facts.devices[int(gaps.device[row])].power_limit_w)
    }
    use = mean_use(limits, grid.start)
    return with_use(gaps, found, {key: (mean, limits[key]) for key, mean in use.items()})


def _table(grid: Grid, whole: Metered, estimates: tuple[Ints, Ints, Ints]) -> ClosedHours:
    """The cells in which there is anything to say."""
    energy, time, method = estimates
    rows = np.flatnonzero((whole.covered > 0) | (whole.measured > 0) | (time > 0))
    hour = grid.start + (rows % grid.hours) * HOUR_MICROSECOND
    checked = (whole.checked >= CROSS_CHECKED_MICROSECOND) & (whole.power_checked > 0)
    by_power = np.where(checked, whole.power_checked, 1)
    divergence = np.where(checked, (whole.counter_checked - by_power) / by_power, np.nan)
    columns = {
        "measured_millijoule": whole.measured,
        "spread_millijoule": whole.spread,
        "estimated_millijoule": energy,
        "covered_microsecond": whole.covered,
        "integrated_millijoule": whole.integrated,
        "estimated_microsecond": time,
        "reset_millijoule": whole.reset,
    }
    return ClosedHours(
        device=grid.devices[rows // grid.hours],
        hour=hour,
        measures={name: values[rows] for name, values in columns.items()},
        method=method[rows],
        divergence=divergence[rows],
    )
