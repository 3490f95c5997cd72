"""The auditor's walk from an hour of the books down to device, readings, batches and factors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Q

from carbon.device_energy import DeviceHour
from carbon.device_sql import MEASURES
from carbon.energy_questions import HOUR, EnergyQuestion
from carbon.energy_records import KNOWABLE, EnergyRow, EnergyTable, FactorLine, ReadingLine, added
from carbon.energy_selectors import asked_entries, booked_total
from carbon.models import (
    CounterReading,
    EnergyHour,
    FactorApproval,
    FactorSet,
    MeteredInterval,
    PowerDelivery,
    PowerSample,
    Sender,
    SenderBatch,
)
from carbon.words import kind_name, level_name
from runs.records import DeviceRecord

MAX_DEVICES: Final = 128  # more of them are shown by node
REACH: Final = timedelta(minutes=10)  # readings just outside the hour bound its first and last
LONGEST_GAP: Final = timedelta(days=31)
MAX_READINGS: Final = 800
MAX_BATCHES: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedEntry:
    """An entry of the hour: whose it is, when it was posted, with which factors."""

    site_name: str
    project_name: str
    run_name: str
    posted_at: datetime
    factor_set_id: int
    entry_id: int


def entries_of_hour(question: EnergyQuestion) -> list[BookedEntry]:
    """The entries of the question's hour that hold."""
    rows = asked_entries(question).select_related("site", "project", "run")
    return [
        BookedEntry(
            site_name=row.site.name,
            project_name=row.project.name if row.project else "",
            run_name=row.run.name if row.run else "",
            posted_at=row.posted_at,
            factor_set_id=row.factor_set_id,
            entry_id=row.pk,
        )
        for row in rows.order_by("site__name", "project__name", "run__name")
    ]


def factor_lines(organisation_id: UUID, factor_set_ids: Iterable[int]) -> list[FactorLine]:
    """The factors of these sets, each once, with who approved it."""
    sets = FactorSet.objects.filter(organisation_id=organisation_id, pk__in=set(factor_set_ids))
    documents = {
        (one["kind"], one["id"], one.get("version", ""), one["value"]): one
        for found in sets.order_by("pk")
        for one in found.factors
    }
    ids = [one["id"] for one in documents.values()]
    approvals = {
        (row.factor_id, row.version, row.value): row
        for row in FactorApproval.objects.filter(organisation_id=organisation_id, factor_id__in=ids)
    }
    lines = []
    for (kind, factor_id, version, value), one in sorted(
        documents.items(), key=lambda pair: str(pair[0])
    ):
        approval = approvals.get((factor_id, version, value))
        lines.append(
            FactorLine(
                document=one,
                kind_name=kind_name(kind),
                level_name=level_name(one.get("level", "")),
                approved_by=approval.approved_by if approval else "",
                approved_at=approval.approved_at if approval else None,
            )
        )
    return lines


def hour_table(
    question: EnergyQuestion,
    parts: Sequence[DeviceHour],
    devices: dict[int, DeviceRecord],
    *,
    by_node: bool,
) -> EnergyTable:
    """The devices of an hour, or their nodes, against the entries of the books."""
    groups: dict[str, list[DeviceHour]] = {}
    for part in parts:
        device = devices[part.device_id]
        groups.setdefault(device.node if by_node else str(part.device_id), []).append(part)
    rows = [
        summed(found, key=key, name=key if by_node else devices[int(key)].device_uuid)
        for key, found in groups.items()
    ]
    rows.sort(key=lambda row: (-row.accelerator_millijoule, row.name))
    is_narrowed = bool(question.node or question.device)
    total = summed(parts, key="", name="") if is_narrowed else booked_total(question)
    return EnergyTable(rows=tuple(rows), total=total)


def summed(parts: Sequence[DeviceHour], *, key: str, name: str) -> EnergyRow:
    """Parts of device-hours as one row."""
    measures: dict[str, Any] = {
        one: sum(part.measures[index] for part in parts) for index, one in enumerate(MEASURES)
    }
    figures: dict[str, Any] = {
        one: added(part.figures[index] for part in parts) for index, one in enumerate(KNOWABLE)
    }
    return EnergyRow(
        key=key,
        name=name,
        start=parts[0].hour if parts else None,
        expected_microsecond=None,
        entries=len(parts),
        **measures,
        **figures,
    )


def versions_of(device_id: int, hour: datetime) -> list[EnergyHour]:
    """Every version of a device's hour, the newest first."""
    found = EnergyHour.objects.filter(device_id=device_id, hour=hour)
    return list(found.order_by("-version"))


def readings_of(device_id: int, hour: datetime) -> list[ReadingLine]:
    """The readings of a device's hour and those next to it, by kind, sender and time."""
    low, high = hour - REACH, hour + HOUR + REACH
    counters = CounterReading.objects.filter(device_id=device_id, at__gte=low, at__lt=high)
    intervals = MeteredInterval.objects.filter(
        device_id=device_id, start__lt=hour + HOUR, end__gt=hour, start__gte=hour - 400 * HOUR
    )
    samples = PowerSample.objects.filter(device_id=device_id, at__gte=low, at__lt=high)
    lines = [
        ReadingLine(
            kind="counter",
            start=row.at,
            end=None,
            value=row.counter_millijoule,
            sender_id=row.sender_id,
            received_at=row.received_at,
            epoch=row.epoch,
        )
        for row in [
            *counters.order_by("sender_id", "at")[:MAX_READINGS],
            *_counters_around(device_id, low, high),
        ]
    ]
    lines += [
        ReadingLine(
            kind="interval",
            start=row.start,
            end=row.end,
            value=row.energy_millijoule,
            sender_id=row.sender_id,
            received_at=row.received_at,
        )
        for row in intervals.order_by("sender_id", "start")[:MAX_READINGS]
    ]
    lines += [
        ReadingLine(
            kind="power",
            start=row.at,
            end=None,
            value=row.power_w,
            sender_id=row.sender_id,
            received_at=row.received_at,
        )
        for row in samples.order_by("sender_id", "at")[:MAX_READINGS]
    ]
    return lines


def _counters_around(device_id: int, low: datetime, high: datetime) -> list[CounterReading]:
    """Each sender's last counter before and first after: a gap may reach into the hour."""
    mine = CounterReading.objects.filter(device_id=device_id)
    before = mine.filter(at__lt=low, at__gte=low - LONGEST_GAP).order_by("sender_id", "-at")
    after = mine.filter(at__gte=high, at__lt=high + LONGEST_GAP).order_by("sender_id", "at")
    return [*before.distinct("sender_id"), *after.distinct("sender_id")]


def senders_named(sender_ids: Iterable[int]) -> dict[int, Sender]:
    """The senders with these ids; a file or a batch without one has id 0 and is not among them."""
    return Sender.objects.in_bulk([one for one in set(sender_ids) if one])


def batches_of(
    organisation_id: UUID, sender_ids: Iterable[int], hour: datetime
) -> list[SenderBatch]:
    """The acknowledged batches of these senders that reach into an hour."""
    found = SenderBatch.objects.filter(
        organisation_id=organisation_id,
        sender_id__in=[one for one in set(sender_ids) if one],
        start__lt=hour + HOUR,
        end__gte=hour,
    )
    return list(found.select_related("sender").order_by("sender", "start")[:MAX_BATCHES])


def deliveries_of(site_id: UUID, readings: Sequence[ReadingLine]) -> list[PowerDelivery]:
    """The files, or days of the API, that brought readings without a sender, by time of receipt."""
    instants = {line.received_at for line in readings if not line.sender_id}
    days = {f"{at:%Y-%m-%d}" for at in instants}
    found = PowerDelivery.objects.filter(site_id=site_id).filter(
        Q(kind=PowerDelivery.Kind.FILE, received_at__in=instants)
        | Q(kind=PowerDelivery.Kind.API, name__in=days)
    )
    return list(found.order_by("received_at", "name")[:MAX_BATCHES])
