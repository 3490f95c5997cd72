"""Device-days of a site as billing charges them: used hours by run, idle hours, kWh. Pure rules."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from billing.own_records import MeteredDay
from carbon.device_days import DeviceEnergyDay
from formulae.units import EXACT
from planning.accrual_rules import hours_of
from runs.records import AssignmentRecord, DeviceRecord

Owner = tuple[UUID | None, UUID | None]  # project, run
NOBODY: Final[Owner] = (None, None)
_DAY: Final = timedelta(days=1)
_MICROSECOND: Final = timedelta(microseconds=1)
# Sums of floats may differ in their last bits; what is charged may not, or months are restated.
_KWH_QUANTUM: Final = Decimal("0.000001")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerNames:
    """The slugs of a project and of its run, as tags of a charge carry them."""

    project: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """How a site and the owners of its hours are called on charges."""

    site: str
    owners: Mapping[Owner, OwnerNames]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stood:
    """A device and the instant since which it is known to stand at the site."""

    device: DeviceRecord
    since: datetime


def devices_that_stood(
    devices: Iterable[DeviceRecord],
    assignments: Iterable[AssignmentRecord],
    first_energy: Mapping[int, datetime],
) -> list[Stood]:
    """Devices since they were first assigned or seen; one that never was stood nowhere yet."""
    first = dict(first_energy)
    for one in assignments:
        first[one.device_id] = min(one.start, first.get(one.device_id, one.start))
    return [
        Stood(device=one, since=first[one.device_id]) for one in devices if one.device_id in first
    ]


def metered_days(
    stood: Iterable[Stood],
    assignments: Iterable[AssignmentRecord],
    energy: Iterable[DeviceEnergyDay],
    *,
    labels: Labels,
    days: Sequence[date],
) -> list[MeteredDay]:
    """What each device did on each day: hours by owner, the rest idle, energy beside its hours.

    Args:
        stood: devices, since when they stand there.
        assignments: of these devices, none over another of the same device.
        energy: of the same days, by device and owner.
        labels: the slugs of the site and of every owner.
        days: whole UTC days that are over.
    """
    by_device: defaultdict[int, list[AssignmentRecord]] = defaultdict(list)
    for one in assignments:
        by_device[one.device_id].append(one)
    kwh: defaultdict[tuple[int, date], dict[Owner, float | None]] = defaultdict(dict)
    for part in energy:
        owner = (part.project_id, part.run_id)
        kwh[part.device_id, part.day][owner] = part.facility_energy_kwh
    found = []
    for place in stood:
        device = place.device
        owned = sorted(by_device[device.device_id], key=lambda row: row.start)
        for day in days:
            hours, used = _hours(place.since, owned, day), kwh.get((device.device_id, day), {})
            for owner in sorted({*hours, *used}, key=str):
                amount = hours.get(owner, Decimal(0))
                record = _record(labels, device, owner, day)
                found.append(_filled(record, owner, amount, used.get(owner)))
    return found


def _hours(since: datetime, owned: Sequence[AssignmentRecord], day: date) -> dict[Owner, Decimal]:
    """The hours of a device's day by owner; they sum exactly to those that it stood there.

    Each part is the difference of two rounded sums, so that rounding never adds up.
    """
    begins = datetime.combine(day, time(), UTC)
    ends = begins + _DAY
    low = max(begins, since)
    if low >= ends:
        return {}
    spans: list[tuple[Owner, timedelta]] = []
    for one in owned:
        start, end = max(one.start, low), min(one.end or ends, ends)
        if start < end:
            spans.append(((one.project_id, one.run_id), end - start))
    free = (ends - low) - sum((span for _owner, span in spans), timedelta())
    spans.append((NOBODY, max(free, timedelta())))
    hours: defaultdict[Owner, Decimal] = defaultdict(Decimal)
    passed, told = 0, Decimal(0)
    for owner, span in spans:
        passed += span // _MICROSECOND
        total = hours_of(passed)
        hours[owner] = EXACT.add(hours[owner], EXACT.subtract(total, told))
        told = total
    return {owner: amount for owner, amount in hours.items() if amount}


def _record(labels: Labels, device: DeviceRecord, owner: Owner, day: date) -> MeteredDay:
    names = labels.owners.get(owner, OwnerNames())
    return MeteredDay(
        day=day,
        site=labels.site,
        device_id=device.device_uuid,
        accelerator=device.accelerator_key or device.model or "accelerator",
        used_h=Decimal(0),
        run_key=names.run,
        project=names.project,
    )


def _filled(
    record: MeteredDay, owner: Owner, hours: Decimal, energy_kwh: float | None
) -> MeteredDay:
    is_idle = owner == NOBODY
    return replace(
        record,
        used_h=Decimal(0) if is_idle else hours,
        idle_h=hours if is_idle else Decimal(0),
        facility_energy_kwh=None
        if energy_kwh is None
        else Decimal(repr(energy_kwh)).quantize(_KWH_QUANTUM),
    )
