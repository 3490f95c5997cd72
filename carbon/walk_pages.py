"""Words and lines for the walk's pages: versions, owners, readings by sender."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.utils.translation import gettext as _

from carbon.device_energy import DeviceHour
from carbon.energy_records import ReadingLine
from carbon.models import EnergyHour, Sender
from formulae.units import kwh_from_millijoule
from projects.models import Project
from runs.selectors import runs_of

HOUR_MICROSECOND: Final = 3_600_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownVersion:
    """A version of a device's hour."""

    version: int
    measured_kwh: float
    spread_kwh: float
    estimated_kwh: float
    coverage_fraction: float
    integrated_fraction: float | None
    estimate_method: str
    divergence_fraction: float | None
    known_at: datetime
    superseded_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerPart:
    """Whose a part of the hour was."""

    project: str
    run: str
    energy_kwh: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingGroup:
    """The readings of one kind by one sender, in the hour and next to it."""

    kind: str
    kind_name: str
    sender: Sender | None
    sender_name: str
    lines: tuple[ReadingLine, ...]
    first_received_at: datetime
    last_received_at: datetime

    @property
    def first(self) -> datetime:
        return self.lines[0].start

    @property
    def last(self) -> datetime:
        return self.lines[-1].end or self.lines[-1].start


def reading_name(kind: str) -> str:
    """What a reading is, in words."""
    return {
        "counter": _("energy counter"),
        "interval": _("metered interval"),
        "power": _("power reading"),
        "estimate": _("estimate"),
    }.get(kind, kind)


def sender_kind_name(kind: str) -> str:
    """What kind of sender it is, in words."""
    return {
        "agent": _("agent"),
        "remote_write": _("Prometheus remote-write"),
        "promql": _("PromQL pull"),
        "api": _("API"),
        "file": _("file"),
    }.get(kind, kind)


def versions_shown(versions: Sequence[EnergyHour]) -> list[ShownVersion]:
    """The versions of a device's hour as a table shows them."""
    return [
        ShownVersion(
            version=row.version,
            measured_kwh=kwh_from_millijoule(row.measured_millijoule),
            spread_kwh=kwh_from_millijoule(row.spread_millijoule),
            estimated_kwh=kwh_from_millijoule(row.estimated_millijoule),
            coverage_fraction=min(1.0, row.covered_microsecond / HOUR_MICROSECOND),
            integrated_fraction=row.integrated_millijoule / row.measured_millijoule
            if row.measured_millijoule
            else None,
            estimate_method=row.estimate_method,
            divergence_fraction=row.divergence_fraction,
            known_at=row.known_at,
            superseded_at=row.superseded_at,
        )
        for row in versions
    ]


def whose(organisation_id: UUID, parts: Sequence[DeviceHour]) -> list[OwnerPart]:
    """Whose the parts of a device's hour are, by name."""
    ids = {part.owner[0] for part in parts if part.owner[0]}
    projects = Project.objects.filter(organisation_id=organisation_id).in_bulk(ids)
    runs = {run.run_id: run.name for project in ids if project for run in runs_of(project)}
    return [
        OwnerPart(
            project=projects[part.owner[0]].name if part.owner[0] in projects else "",
            run=runs.get(part.owner[1], "") if part.owner[1] else "",
            energy_kwh=kwh_from_millijoule(part.accelerator_millijoule),
        )
        for part in parts
    ]


def grouped(readings: Sequence[ReadingLine], senders: Mapping[int, Sender]) -> list[ReadingGroup]:
    """Readings by kind and sender."""
    groups: dict[tuple[str, int], list[ReadingLine]] = {}
    for line in readings:
        groups.setdefault((line.kind, line.sender_id), []).append(line)
    return [
        ReadingGroup(
            kind=kind,
            kind_name=reading_name(kind),
            sender=senders.get(sender_id),
            sender_name=sender_name(senders.get(sender_id)),
            lines=tuple(lines),
            first_received_at=min(line.received_at for line in lines),
            last_received_at=max(line.received_at for line in lines),
        )
        for (kind, sender_id), lines in groups.items()
    ]


def sender_name(sender: Sender | None) -> str:
    """A sender in words."""
    if sender is None:
        return _("a file, or a batch without a sender")
    return f"{sender_kind_name(sender.kind)} {sender.name}"
