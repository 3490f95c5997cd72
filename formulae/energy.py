"""Energy from power samples and counters, its hours and its three boundaries; no carbon."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import TypeVar

from formulae.allocation import split_integer
from formulae.periods import Period, as_utc, hour_of, split_by_hour
from formulae.units import (
    MICROSECOND_PER_S,
    MILLIJOULE_PER_J,
    QuantityError,
    kwh_from_millijoule,
    require_positive,
    require_range,
)

_Reading = TypeVar("_Reading", int, float)


class Quality(StrEnum):
    """How an interval's energy is known."""

    MEASURED = "measured"
    SPREAD = "spread"
    RESET = "reset"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyInterval:
    """Energy of one device over one period, and how it is known."""

    period: Period
    energy_millijoule: int
    quality: Quality = Quality.MEASURED


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegratedEnergy:
    """Energy of one device between its first and last reading; coverage is None for fewer than two
    instants.
    """

    intervals: tuple[EnergyInterval, ...]
    energy_millijoule: int
    covered_s: float
    coverage_fraction: float | None

    @property
    def energy_kwh(self) -> float | None:
        """The covered energy in kWh; None when nothing is covered."""
        return kwh_from_millijoule(self.energy_millijoule) if self.intervals else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HourEnergy:
    """Energy of one device in one UTC hour; covered_s leaves out what was not seen."""

    hour: Period
    energy_millijoule: int
    covered_s: float

    @property
    def coverage_fraction(self) -> float:
        """Share of the hour that is covered, 0 to 1."""
        return self.covered_s / self.hour.duration_s


def integrate_power(
    samples: Iterable[tuple[datetime, float]], *, max_gap_s: float
) -> IntegratedEnergy:
    """Energy of one device from its power samples.

    E = sum over neighbours of (P_i + P_i+1) / 2 * (t_i+1 - t_i), where t_i+1 - t_i <= max_gap_s

    A longer gap is not bridged: it adds no energy and lowers the coverage. Each interval is rounded
    to a whole millijoule, so a series integrated in parts that share a sample sums to the whole.

    Args:
        samples: (instant, power in W >= 0) in any order; an equal sample twice counts once.
        max_gap_s: longest trusted distance between neighbours, s, > 0.

    Returns:
        Intervals, energy in whole mJ, covered seconds, and their share of the time from first to
        last sample.

    Raises:
        QuantityError: power is negative or not finite, or one instant has two powers.

    Source: trapezoidal rule, NIST Digital Library of Mathematical Functions, 3.5(i).

    >>> from formulae.periods import parse_utc
    >>> hour = [(parse_utc("2026-10-01T00:00Z"), 650.0), (parse_utc("2026-10-01T01:00Z"), 650.0)]
    >>> integrate_power(hour, max_gap_s=3600).energy_kwh
    0.65
    """
    require_positive("max_gap_s", max_gap_s)
    intervals = []
    ordered = _ordered_samples(samples)
    for (start, power_start_w), (end, power_end_w) in pairwise(ordered):
        period = Period(start=start, end=end)
        if period.duration_s <= max_gap_s:
            energy_j = (power_start_w + power_end_w) / 2 * period.duration_s
            intervals.append(
                EnergyInterval(period=period, energy_millijoule=round(energy_j * MILLIJOULE_PER_J))
            )
    return _integrated(intervals, [at for at, _ in ordered])


def integrate_counter(
    readings: Iterable[tuple[datetime, int]], *, max_gap_s: float
) -> IntegratedEnergy:
    """Energy of one device from the readings of its cumulative energy counter.

    E = sum over neighbours of (c_i+1 - c_i), or c_i+1 after a reset (c_i+1 < c_i)

    Across a long gap the difference is measured but its place in time is not: quality ``spread``,
    covered. Across a reset only the energy since the reset is known: quality ``reset``, a lower
    bound, not covered.

    Args:
        readings: (instant, counter in mJ >= 0) in any order; an equal reading twice counts once.
        max_gap_s: longest distance between neighbours that places the energy, s, > 0.

    Returns:
        Intervals, energy in whole mJ, covered seconds, and their share of the time from first to
        last reading.

    Raises:
        QuantityError: a counter is negative, or one instant has two readings.

    Source: NVML API reference, nvmlDeviceGetTotalEnergyConsumption: mJ since the driver was last
    reloaded.

    >>> from formulae.periods import parse_utc
    >>> start, end = parse_utc("2026-10-01T00:00Z"), parse_utc("2026-10-01T00:01Z")
    >>> integrate_counter([(start, 1_000), (end, 40_000_000)], max_gap_s=120).energy_millijoule
    39999000
    """
    require_positive("max_gap_s", max_gap_s)
    intervals = []
    ordered = _ordered_samples(readings)
    for (start, counter_start), (end, counter_end) in pairwise(ordered):
        period = Period(start=start, end=end)
        energy_millijoule, is_reset = counter_delta(counter_start, counter_end)
        is_long = period.duration_s > max_gap_s
        quality = Quality.RESET if is_reset else Quality.SPREAD if is_long else Quality.MEASURED
        intervals.append(
            EnergyInterval(period=period, energy_millijoule=energy_millijoule, quality=quality)
        )
    return _integrated(intervals, [at for at, _ in ordered])


def counter_delta(counter_start_millijoule: int, counter_end_millijoule: int) -> tuple[int, bool]:
    """Energy between two readings of a cumulative counter, and whether the counter was reset in
    between.

    E = c1 - c0 when c1 >= c0, else c1 (reset; what came before it is unknown)

    Args:
        counter_start_millijoule: c0, mJ, >= 0.
        counter_end_millijoule: c1, mJ, >= 0.

    Returns:
        Energy in mJ, >= 0, and whether c1 < c0.

    Source: NVML API reference, nvmlDeviceGetTotalEnergyConsumption; reset rule of Prometheus
    increase().

    >>> counter_delta(5_000, 7_500), counter_delta(5_000, 1_200)
    ((2500, False), (1200, True))
    """
    require_range(
        "energy counter (mJ)", min(counter_start_millijoule, counter_end_millijoule), low=0
    )
    is_reset = counter_end_millijoule < counter_start_millijoule
    return (
        counter_end_millijoule if is_reset else counter_end_millijoule - counter_start_millijoule
    ), is_reset


def is_plausible_energy(
    energy_millijoule: int,
    *,
    duration_s: float,
    power_limit_w: float,
    tolerance_fraction: float = 0.2,
) -> bool:
    """Whether a device can have drawn this energy.

    0 <= E <= (1 + tolerance) * P_limit * t

    Args:
        energy_millijoule: metered energy, mJ.
        duration_s: length of the interval, s, > 0.
        power_limit_w: power limit of the device, W, > 0.
        tolerance_fraction: how far above its limit a device may read, fraction, >= 0.

    Returns:
        True when possible; what is not belongs in quarantine.

    Source: design rule; NVML states +/- 5 % for power readings, the tolerance leaves room for short
    peaks.

    >>> is_plausible_energy(700_000 * 60, duration_s=60, power_limit_w=700)
    True
    >>> is_plausible_energy(900_000 * 60, duration_s=60, power_limit_w=700)
    False
    """
    limit_w = require_positive("power_limit_w", power_limit_w) * (1 + tolerance_fraction)
    limit_millijoule = limit_w * require_positive("duration_s", duration_s) * MILLIJOULE_PER_J
    return 0 <= energy_millijoule <= limit_millijoule


def split_energy_by_hour(interval: EnergyInterval) -> list[EnergyInterval]:
    """The parts of an interval in the UTC hours that it touches.

    E_hour = E * overlap_s(interval, hour) / duration_s, by largest remainder, so the parts sum to E

    Args:
        interval: energy over any period.

    Returns:
        Parts in order, each within one hour, whole mJ.

    Source: pro rata by time, as in the GHG Protocol's hourly activity data; largest remainder as in
    allocation.

    >>> from formulae.periods import parse_utc
    >>> start, end = parse_utc("2026-10-01T00:59:50Z"), parse_utc("2026-10-01T01:00:20Z")
    >>> period = Period(start=start, end=end)
    >>> parts = split_energy_by_hour(EnergyInterval(period=period, energy_millijoule=100))
    >>> [part.energy_millijoule for part in parts]
    [33, 67]
    """
    if hour_of(interval.period.start).covers(interval.period):
        return [interval]
    periods = split_by_hour(interval.period)
    parts = split_integer(
        interval.energy_millijoule, [period.duration_microsecond for period in periods]
    )
    return [
        EnergyInterval(period=period, energy_millijoule=part, quality=interval.quality)
        for period, part in zip(periods, parts, strict=True)
    ]


def energy_by_hour(intervals: Iterable[EnergyInterval]) -> list[HourEnergy]:
    """Energy and coverage of one device for each UTC hour that its intervals touch.

    E_hour = sum of the parts of intervals in that hour; sum over hours = sum over intervals

    Args:
        intervals: of one device, not overlapping, in any order.

    Returns:
        Hours in order; hours that no interval touches are absent, not zero.

    Source: as split_energy_by_hour.

    >>> from formulae.periods import parse_utc
    >>> period = Period(start=parse_utc("2026-10-01T00:30Z"), end=parse_utc("2026-10-01T01:30Z"))
    >>> hours = energy_by_hour([EnergyInterval(period=period, energy_millijoule=3_600)])
    >>> [(hour.energy_millijoule, hour.coverage_fraction) for hour in hours]
    [(1800, 0.5), (1800, 0.5)]
    """
    energy_millijoule: dict[datetime, int] = {}
    covered_microsecond: dict[datetime, int] = {}
    for interval in intervals:
        for part in split_energy_by_hour(interval):
            start = hour_of(part.period.start).start
            energy_millijoule[start] = energy_millijoule.get(start, 0) + part.energy_millijoule
            seen = 0 if part.quality is Quality.RESET else part.period.duration_microsecond
            covered_microsecond[start] = covered_microsecond.get(start, 0) + seen
    return [
        HourEnergy(
            hour=hour_of(start),
            energy_millijoule=energy_millijoule[start],
            covered_s=covered_microsecond[start] / MICROSECOND_PER_S,
        )
        for start in sorted(energy_millijoule)
    ]


def it_energy_kwh(accelerator_energy_kwh: float | None, host_factor: float | None) -> float | None:
    """Energy of the IT equipment: accelerators with the hosts around them.

    E_it = E_accelerator * host_factor

    Args:
        accelerator_energy_kwh: metered at the accelerators, kWh, >= 0; None when unknown.
        host_factor: IT watts per accelerator watt, 1 or more; None until a site sets or measures
            it.

    Returns:
        kWh, or None when either is unknown; no factor is assumed.

    Source: Latif et al. 2025, IEEE Access 13:61740 (measured 8 x H100 host: 8.4 kW); 1.0 when
    metered at the host.

    >>> it_energy_kwh(166.4, 1.5)
    249.60000000000002
    """
    if accelerator_energy_kwh is None or host_factor is None:
        return None
    require_range("accelerator_energy_kwh", accelerator_energy_kwh, low=0)
    return accelerator_energy_kwh * require_range("host_factor", host_factor, low=1)


def facility_energy_kwh(it_energy_kwh: float | None, pue: float | None) -> float | None:
    """Energy of the facility: IT equipment with cooling and power losses.

    E_facility = E_it * PUE

    Args:
        it_energy_kwh: kWh, >= 0; None when unknown.
        pue: power usage effectiveness of the site in that hour, 1 or more; None when unknown.

    Returns:
        kWh, or None when either is unknown.

    Source: ISO/IEC 30134-2:2016, power usage effectiveness.

    >>> facility_energy_kwh(166.4, 1.2)
    199.68
    """
    if it_energy_kwh is None or pue is None:
        return None
    return require_range("it_energy_kwh", it_energy_kwh, low=0) * require_range("pue", pue, low=1)


def _ordered_samples(
    samples: Iterable[tuple[datetime, _Reading]],
) -> list[tuple[datetime, _Reading]]:
    """Samples by time, repeats dropped; two values at one instant are refused."""
    by_instant: dict[datetime, _Reading] = {}
    for at, reading in samples:
        require_range("a power sample (W) or counter (mJ)", reading, low=0)
        if by_instant.setdefault(as_utc(at), reading) != reading:
            raise QuantityError(
                f"two readings at {at}: {by_instant[as_utc(at)]} and {reading}; keep one"
            )
    return sorted(by_instant.items())


def _integrated(
    intervals: Sequence[EnergyInterval], instants: Sequence[datetime]
) -> IntegratedEnergy:
    """Sum intervals; a reset interval gives energy but no coverage."""
    covered = [
        item.period.duration_microsecond for item in intervals if item.quality is not Quality.RESET
    ]
    covered_s = sum(covered) / MICROSECOND_PER_S
    whole = Period(start=instants[0], end=instants[-1]) if len(instants) > 1 else None
    return IntegratedEnergy(
        intervals=tuple(intervals),
        energy_millijoule=sum(item.energy_millijoule for item in intervals),
        covered_s=covered_s,
        coverage_fraction=covered_s / whole.duration_s if whole else None,
    )
