"""Check of device-hours: recomputed from the readings in pure Python by formulae, one by one."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from audit.records import Finding
from carbon.attribution import Owner, instant_of, microsecond_of
from carbon.models import (
    CounterReading,
    EnergyHour,
    MeteredInterval,
    OpenHours,
    PowerSample,
    Sender,
    UseReading,
)
from carbon.plain_hours import (
    HOUR,
    DeviceReadings,
    PlainDevice,
    PlainHour,
    add_gaps,
    plain_device,
)
from carbon.site_factors import dated_factors, max_gap_s
from formulae.metering import estimated_gap_millijoule, estimated_use_millijoule
from formulae.spans import Span
from formulae.units import MICROSECOND_PER_S
from runs.records import AssignmentRecord, DeviceRecord, SiteRecord
from runs.selectors import assignments_of_site, devices_of

LIMIT_UNKNOWN_W: Final = 5_000.0
ORDER: Final = ("agent", "remote_write", "promql", "api", "file")
FIELDS: Final = (
    "measured_millijoule",
    "spread_millijoule",
    "estimated_millijoule",
    "covered_microsecond",
    "integrated_millijoule",
    "estimated_microsecond",
    "reset_millijoule",
    "estimate_method",
)
NOTHING: Final = (0, 0, 0, 0, 0, 0, 0, "")
Told = tuple[int, int, int, int, int, int, int, str]  # as FIELDS
Hours = dict[int, PlainHour]


def verify_hours(site: SiteRecord) -> Iterator[Finding]:
    """Hours of the devices against their readings; hours still open are left out."""
    marks = OpenHours.objects.filter(site_id=site.site_id).values_list("start", "end")
    still_open = [(microsecond_of(start), microsecond_of(end)) for start, end in marks]
    devices = devices_of(site.site_id)
    computed = computed_hours(site, devices, still_open)
    for device in devices:
        booked, expected = _booked_hours(device.device_id), computed[device.device_id]
        for hour in sorted({*booked, *expected}) if booked != expected else ():
            wanted, found = expected.get(hour, NOTHING), booked.get(hour, NOTHING)
            if wanted != found and not _is_open(hour, still_open):
                yield Finding(
                    code="energy_hour",
                    where=f"{site.slug}, {device.device_uuid}, {instant_of(hour).isoformat()}",
                    expected=_words(wanted),
                    found=_words(found),
                )


def _words(told: Told) -> str:
    return (
        ", ".join(f"{name} {value}" for name, value in zip(FIELDS, told, strict=True) if value)
        or "nothing"
    )


def _is_open(hour: int, still_open: Sequence[Span]) -> bool:
    return any(low <= hour < high for low, high in still_open)


def _booked_hours(device_id: int) -> dict[int, Told]:
    rows = EnergyHour.objects.filter(device_id=device_id, superseded_at__isnull=True)
    found = rows.values_list("hour", *FIELDS)
    return {microsecond_of(row[0]): row[1:] for row in found.iterator(chunk_size=10_000)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole:
    """All devices of a site with what is known of them."""

    devices: Mapping[int, DeviceRecord]
    hours: Mapping[int, Hours]
    owners: Mapping[int, Mapping[int, Owner]]


def computed_hours(
    site: SiteRecord, devices: Sequence[DeviceRecord], still_open: Sequence[Span]
) -> dict[int, dict[int, Told]]:
    """The hours of all devices of a site as they should be, by device and hour."""
    max_gap = int(max_gap_s(dated_factors(site.site_id)) * MICROSECOND_PER_S)
    places = _places(site.site_id)
    seen = {
        one.device_id: plain_device(
            _readings(one.device_id, places),
            limit_w=one.power_limit_w or LIMIT_UNKNOWN_W,
            max_gap=max_gap,
        )
        for one in devices
    }
    return _with_estimates(site, devices, seen, still_open)


def _with_estimates(
    site: SiteRecord,
    devices: Sequence[DeviceRecord],
    seen: Mapping[int, PlainDevice],
    still_open: Sequence[Span],
) -> dict[int, dict[int, Told]]:
    reported = sorted(
        {
            hour
            for device in seen.values()
            for hour, found in device.hours.items()
            if found.covered and not _is_open(hour, still_open)
        }
    )
    if not reported:
        return {one.device_id: {} for one in devices}
    whole: Span = (reported[0], reported[-1] + HOUR)
    assigned = _assigned(site, whole)
    hours = {
        device_id: add_gaps(
            device,
            within=whole,
            assigned=[(low, high) for _owner, low, high in assigned[device_id]],
        )
        for device_id, device in seen.items()
    }
    known = _Whole(
        devices={one.device_id: one for one in devices},
        hours=hours,
        owners={one: _owners(assigned[one]) for one in hours},
    )
    return _told(known, last=reported[-1])


def _places(site_id: UUID) -> dict[int, int]:
    """Each sender's place in precedence; 0 is a file's, or a batch's without one."""
    senders = [
        (pk, kind) for pk, kind in Sender.objects.filter(site_id=site_id).values_list("pk", "kind")
    ]
    ordered = sorted((ORDER.index(kind), pk) for pk, kind in [(0, "file"), *senders])
    return {pk: place for place, (_rank, pk) in enumerate(ordered)}


def _readings(device_id: int, places: Mapping[int, int]) -> DeviceReadings:
    last = len(places)
    samples = PowerSample.objects.filter(device_id=device_id)
    intervals = MeteredInterval.objects.filter(device_id=device_id)
    counters = CounterReading.objects.filter(device_id=device_id)
    return DeviceReadings(
        samples=[
            (places.get(sender, last), microsecond_of(at), power_w)
            for sender, at, power_w in samples.values_list("sender_id", "at", "power_w")
        ],
        intervals=[
            (places.get(sender, last), microsecond_of(start), microsecond_of(end), energy)
            for sender, start, end, energy in intervals.values_list(
                "sender_id", "start", "end", "energy_millijoule"
            )
        ],
        counters=[
            (places.get(sender, last), microsecond_of(at), counter, epoch)
            for sender, at, counter, epoch in counters.values_list(
                "sender_id", "at", "counter_millijoule", "epoch"
            )
        ],
    )


def _assigned(site: SiteRecord, whole: Span) -> defaultdict[int, list[tuple[Owner, int, int]]]:
    """Each device's assignments within the hours of the site, by start."""
    found: defaultdict[int, list[tuple[Owner, int, int]]] = defaultdict(list)
    ordered: list[AssignmentRecord] = sorted(
        assignments_of_site(site.site_id), key=lambda one: one.start
    )
    for one in ordered:
        low = max(microsecond_of(one.start), whole[0])
        high = whole[1] if one.end is None else min(microsecond_of(one.end), whole[1])
        if low < high:
            found[one.device_id].append(((one.project_id, one.run_id), low, high))
    return found


def _owners(assigned: Sequence[tuple[Owner, int, int]]) -> dict[int, Owner]:
    """For whom the device worked longest in each hour."""
    longest: dict[int, tuple[int, Owner]] = {}
    for owner, low, high in assigned:
        for hour in range(low // HOUR * HOUR, high, HOUR):
            inside = min(hour + HOUR, high) - max(hour, low)
            if inside > longest.get(hour, (0, owner))[0]:
                longest[hour] = (inside, owner)
    return {hour: owner for hour, (_inside, owner) in longest.items()}


def _groups(whole: _Whole, device_id: int, hour: int) -> Iterator[tuple[str, object]]:
    """The groups whose mean power stands for a device in an hour, the nearest first."""
    owner = whole.owners[device_id].get(hour)
    device = whole.devices[device_id]
    model = device.accelerator_key or device.model.strip().lower()
    if owner is not None:
        yield "run", owner
    if owner is not None or model:
        yield "own", device_id
    if model:
        yield "model", model


def _told(whole: _Whole, *, last: int) -> dict[int, dict[int, Told]]:
    """What every hour says, its estimates with it."""
    means: defaultdict[tuple[str, object, int], list[int]] = defaultdict(lambda: [0, 0])
    for device_id, hours in whole.hours.items():
        for hour, found in hours.items():
            for method, key in _groups(whole, device_id, hour) if found.covered else ():
                mean = means[method, key, hour]
                mean[0] += found.measured + found.spread - found.reset
                mean[1] += found.covered
    told: dict[int, dict[int, Told]] = {}
    for device_id, hours in whole.hours.items():
        told[device_id] = {}
        for hour, found in hours.items():
            gap = found.assigned if hour < last else found.present
            energy, method = _estimate(whole, device_id, (hour, gap, found.reset), means)
            time = gap if method else 0
            row = (
                *(found.measured, found.spread, energy, found.covered),
                *(found.integrated, time, found.reset, method),
            )
            if found.covered or found.measured or time:
                told[device_id][hour] = row
    return told


def _estimate(
    whole: _Whole,
    device_id: int,
    what: tuple[int, int, int],
    means: Mapping[tuple[str, object, int], Sequence[int]],
) -> tuple[int, str]:
    """The energy of an hour's unseen time and by whom it is estimated; (0, "") where nobody is."""
    hour, gap, reset = what
    if not gap:
        return 0, ""
    for method, key in _groups(whole, device_id, hour):
        energy, time = means.get((method, key, hour), (0, 0))
        if time and (method != "own" or time >= gap):
            estimated = estimated_gap_millijoule(
                gap, reference_millijoule=energy, reference_microsecond=time, known_millijoule=reset
            )
            return estimated, method
    limit_w = whole.devices[device_id].power_limit_w
    use = _mean_use(device_id, hour) if limit_w else None
    if limit_w is None or use is None:
        return 0, ""
    estimated = estimated_use_millijoule(
        gap, utilisation_fraction=use, limit_w=limit_w, known_millijoule=reset
    )
    return estimated, "use"


def _mean_use(device_id: int, hour: int) -> float | None:
    rows = UseReading.objects.filter(
        device_id=device_id, at__gte=instant_of(hour), at__lt=instant_of(hour + HOUR)
    )
    read = rows.values_list("utilisation_fraction", flat=True)
    values = [one for one in read if one is not None]
    return min(1.0, math.fsum(values) / len(values)) if values else None
