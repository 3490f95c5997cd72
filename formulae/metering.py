"""Rules of metering: counters, precedence, gaps, factors that meters measure; no carbon.

Instants are whole microseconds since 1970-01-01 UTC, energies whole millijoules.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from formulae.allocation import split_integer
from formulae.energy import counter_delta
from formulae.spans import Span, common_spans, merged_spans
from formulae.units import (
    MICROSECOND_PER_S,
    MILLIJOULE_PER_J,
    QuantityError,
    require_positive,
    require_range,
)

SHORTEST_JUDGED_S: Final = 1.0
Piece = tuple[int, int, int]  # start, end, millijoules


def counter_step(
    start: tuple[int, int],
    end: tuple[int, int],
) -> tuple[int, bool]:
    """Energy between two readings of a counter that knows its epoch, and whether it began again.

    E = c1 - c0 in one epoch with c1 >= c0, else c1 (began again; what came before is unknown)

    Args:
        start: (c0 in mJ >= 0, epoch); epoch 0: the sender does not know it.
        end: (c1 in mJ >= 0, epoch).

    Returns:
        Energy in mJ, and whether the counter began again in between.

    Source: NVML API reference, nvmlDeviceGetTotalEnergyConsumption: mJ since the driver was last
    reloaded.

    >>> counter_step((5_000, 7), (9_000, 7)), counter_step((5_000, 7), (9_000, 8))
    ((4000, False), (9000, True))
    >>> counter_step((5_000, 0), (9_000, 8)), counter_step((5_000, 7), (1_200, 7))
    ((4000, False), (1200, True))
    """
    if start[1] and end[1] and start[1] != end[1]:
        require_range("energy counter (mJ)", end[0], low=0)
        return end[0], True
    return counter_delta(start[0], end[0])


def most_millijoule(duration_microsecond: int, *, limit_w: float) -> float:
    """The most energy that a device can plausibly have drawn.

    E_max = 1.2 * P_limit * max(t, 1 s)

    Args:
        duration_microsecond: length of the interval, us, > 0.
        limit_w: power limit of the device, W, > 0.

    Returns:
        Energy in mJ. Counters step every 10 to 100 ms: below a second they say nothing of power.

    Source: design rule, as is_plausible_energy; step of the counter: gpuopenanalytics/pynvml 18.

    >>> most_millijoule(60_000_000, limit_w=700)
    50400000.0
    >>> most_millijoule(1, limit_w=700)
    840000.0
    """
    duration_s = max(
        require_positive("duration_microsecond", duration_microsecond) / MICROSECOND_PER_S,
        SHORTEST_JUDGED_S,
    )
    return require_positive("limit_w", limit_w) * 1.2 * duration_s * MILLIJOULE_PER_J


def shortest_microsecond(energy_millijoule: int, *, limit_w: float, at_most: int) -> int:
    """The shortest time in which a device can have drawn this energy.

    t = min(E / P_limit, at_most)

    Energy since a counter began again is placed in this stretch before its reading: when it began
    is unknown.

    Args:
        energy_millijoule: E, mJ, > 0.
        limit_w: power limit of the device, W, > 0.
        at_most: length of the interval, us, > 0.

    Returns:
        Whole microseconds, 1 or more.

    Source: E = P t.

    >>> shortest_microsecond(7_000_000, limit_w=700, at_most=60_000_000)
    10000000
    """
    require_positive("limit_w", limit_w)
    needed = math.ceil(energy_millijoule * (MICROSECOND_PER_S / MILLIJOULE_PER_J) / limit_w)
    return max(1, min(needed, at_most))


def outside_covered(piece: Piece, covered: Sequence[Span]) -> list[Piece]:
    """The parts of a piece of energy in time that is not covered yet: a device-second counts once.

    E_part = E * duration_part / duration, by largest remainder over covered and free parts

    Args:
        piece: (start, end, mJ).
        covered: ascending stretches that neither overlap nor touch, us.

    Returns:
        Free parts in order, whole mJ.

    Source: pro rata by time, as split_energy_by_hour.

    >>> outside_covered((0, 100, 1_000), [(40, 60)])
    [(0, 40, 400), (60, 100, 400)]
    >>> outside_covered((0, 100, 1_000), [(0, 100)])
    []
    """
    start, end, energy_millijoule = piece
    first = bisect_right(covered, start, key=lambda span: span[1])
    last = bisect_left(covered, end, key=lambda span: span[0])
    if first >= last:
        return [piece]
    inside = common_spans([(start, end)], covered[first:last])
    cuts = sorted({start, end, *(at for span in inside for at in span)})
    spans = list(pairwise(cuts))
    parts = split_integer(energy_millijoule, [high - low for low, high in spans])
    return [
        (low, high, part)
        for (low, high), part in zip(spans, parts, strict=True)
        if (low, high) not in inside
    ]


def cascade(tiers: Iterable[Sequence[Piece]]) -> tuple[list[list[Piece]], list[Span]]:
    """Readings of several kinds and senders of one device, each second from the best that knows it.

    tier_i counts in time that no tier before it covers

    The order: counters read in time (agent, remote-write, Prometheus pull, API, file), counters
    across a gap, intervals, power; the senders of each in the same order.

    Args:
        tiers: pieces (start, end, mJ) of one kind and sender each, the best first; those of one
            tier do not overlap.

    Returns:
        What counts of each tier, and the time that all of them cover, us.

    Source: design rule; double counting by several meters: carbon accounting keeps one activity
    record a unit of time (GHG Protocol Corporate Standard, chapter 7, completeness and accuracy).

    >>> cascade([[(0, 10, 70)], [(5, 20, 150)]])
    ([[(0, 10, 70)], [(10, 20, 100)]], [(0, 20)])
    """
    covered: list[Span] = []
    counted: list[list[Piece]] = []
    for tier in tiers:
        free = [part for piece in tier for part in outside_covered(piece, covered)]
        counted.append(free)
        covered = merged_spans([*covered, *((start, end) for start, end, _energy in free)])
    return counted, covered


def estimated_gap_millijoule(
    gap_microsecond: int,
    *,
    reference_millijoule: int,
    reference_microsecond: int,
    known_millijoule: int = 0,
) -> int:
    """Energy of a device in time that nobody saw, at the mean power of those who were seen.

    E = max(0, gap * E_reference / t_reference - E_known), rounded half to even

    Args:
        gap_microsecond: unseen time, us, >= 0.
        reference_millijoule: energy of the reference (the same run, the device itself, the same
            model at the site) in that hour, mJ, >= 0.
        reference_microsecond: device time in which it was seen, us, > 0.
        known_millijoule: what a counter that began again counted in the gap, mJ, >= 0.

    Returns:
        Energy in mJ beyond what is known.

    Source: estimation of missing interval data from comparable periods and meters, as in
    validation-estimation-editing (VEE) of utilities, for example California's Direct Access
    Standards.

    >>> estimated_gap_millijoule(600, reference_millijoule=7_000, reference_microsecond=3_000)
    1400
    """
    if reference_microsecond <= 0:
        raise QuantityError("a reference must have been seen: its time is not above 0")
    whole, rest = divmod(gap_microsecond * reference_millijoule, reference_microsecond)
    twice = 2 * rest
    is_up = twice > reference_microsecond or (twice == reference_microsecond and whole % 2 == 1)
    return max(0, whole + int(is_up) - known_millijoule)


def estimated_use_millijoule(
    gap_microsecond: int,
    *,
    utilisation_fraction: float,
    limit_w: float,
    known_millijoule: int = 0,
) -> int:
    """Energy of a device of which only its use is known.

    E = max(0, P_limit * utilisation * gap - E_known)

    Args:
        gap_microsecond: time without energy, us, >= 0.
        utilisation_fraction: mean utilisation in that hour, 0 to 1.
        limit_w: power limit of the device, its thermal design power where none is set, W, > 0.
        known_millijoule: what a counter that began again counted in the gap, mJ, >= 0.

    Returns:
        Energy in mJ; a rough figure, the last resort.

    Source: Green Algorithms (Lannelongue et al. 2021, Advanced Science 8:2100707), use factor times
    thermal design power.

    >>> estimated_use_millijoule(60_000_000, utilisation_fraction=0.5, limit_w=700)
    21000000
    """
    require_range("utilisation_fraction", utilisation_fraction, low=0, high=1)
    energy_j = (
        require_positive("limit_w", limit_w)
        * utilisation_fraction
        * (gap_microsecond / MICROSECOND_PER_S)
    )
    return max(0, round(energy_j * MILLIJOULE_PER_J) - known_millijoule)


def divergence_fraction(counter_millijoule: int, integrated_millijoule: int) -> float | None:
    """How far a counter is off the power integrated over the same time.

    d = (E_counter - E_power) / E_power

    Args:
        counter_millijoule: E_counter, mJ, >= 0.
        integrated_millijoule: E_power, mJ, >= 0.

    Returns:
        A fraction, negative where the counter says less; None where power says nothing was drawn.

    Source: reported differences: zeus issues 12 (within 1 %) and 181 (187 J against 327 J, idle);
    above 5 % the hour is marked.

    >>> round(divergence_fraction(187_000, 327_000), 3)
    -0.428
    """
    if integrated_millijoule <= 0:
        return None
    return (counter_millijoule - integrated_millijoule) / integrated_millijoule


def measured_host_factor(
    node_mean_w: Sequence[float], accelerator_mean_w: Sequence[float], *, includes: bool
) -> float | None:
    """The host factor that nodes measured.

    f = sum P_node / sum P_accelerators, or (sum P_accelerators + sum P_node) / sum P_accelerators
    where the nodes' meters leave the accelerators out

    Args:
        node_mean_w: mean power of each node's meter over the hour, W, >= 0.
        accelerator_mean_w: mean power of each node's accelerators together, W, >= 0.
        includes: whether the meters see the accelerators (BMC, PDU; not RAPL).

    Returns:
        IT watts per accelerator watt; None without accelerator power, or below 1, which cannot be.

    Source: ceems, flag GPUPowerInHostPower: power that includes accelerators must not count twice.

    >>> measured_host_factor([8_400.0], [5_600.0], includes=True)
    1.5
    >>> measured_host_factor([1_120.0], [5_600.0], includes=False)
    1.2
    """
    nodes_w, accelerators_w = math.fsum(node_mean_w), math.fsum(accelerator_mean_w)
    if accelerators_w <= 0:
        return None
    factor = nodes_w / accelerators_w if includes else (accelerators_w + nodes_w) / accelerators_w
    return factor if factor >= 1 else None


def measured_pue(facility_kwh: float, it_kwh: float) -> float:
    """PUE of a period from its two meters.

    PUE = E_facility / E_it

    Args:
        facility_kwh: energy of the whole facility, kWh, >= it_kwh.
        it_kwh: energy of the IT equipment, kWh, > 0.

    Returns:
        A ratio, 1 or more.

    Source: ISO/IEC 30134-2:2016, power usage effectiveness.

    >>> measured_pue(1_200.0, 1_000.0)
    1.2
    """
    require_positive("it_kwh", it_kwh)
    return require_range("facility_kwh / it_kwh", facility_kwh / it_kwh, low=1)


def measured_wue(water_l: float, it_kwh: float) -> float:
    """WUE of a period from the water meter and the IT meter.

    WUE = water / E_it, on IT energy, never on the facility's

    Args:
        water_l: water used on site, L, >= 0.
        it_kwh: energy of the IT equipment, kWh, > 0.

    Returns:
        Litres per kWh of IT energy.

    Source: The Green Grid, White Paper 35, Water Usage Effectiveness; ISO/IEC 30134-9:2022.

    >>> measured_wue(1_800.0, 1_000.0)
    1.8
    """
    return require_range("water_l", water_l, low=0) / require_positive("it_kwh", it_kwh)
