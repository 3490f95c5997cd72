"""What the pages of the books show: periods, what they were signed with, restatements. Reads."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext as _

from carbon.instrument_pages import last_day
from carbon.models import PeriodLock, Restatement
from carbon.sign_off import figures

LOG_ROWS: Final = 100
ROWS_READ: Final = 5_000
DETAILS_SHOWN: Final = 3
MATERIAL_FRACTION: Final = 0.05  # the usual threshold of base-year policies
CAUSES: Final = ("readings", "factors", "assignment")


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodRow:
    """A period of the books and where it stands."""

    lock_id: UUID
    start_on: date
    end_on: date
    state: str
    badge: str
    totals: Mapping[str, Any]
    digest: str
    prepared_by: str
    prepared_at: datetime
    approved_by: str
    approved_at: datetime | None
    reopened_by: str
    reopened_at: datetime | None
    reason: str
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestatementRow:
    """A change of posted hours: from which sums to which, and why."""

    site_slug: str
    start: datetime
    end: datetime
    cause: str
    detail: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    entries: int
    is_held: bool
    noted_at: datetime
    decided_by: str
    decided_at: datetime | None

    @property
    def difference_kgco2e(self) -> float | None:
        """Location-based emissions after, less before; None where either is unknown."""
        before, after = (one.get("scope_2_location_kgco2e") for one in (self.before, self.after))
        return None if before is None or after is None else float(after) - float(before)

    @property
    def market_difference_kgco2e(self) -> float | None:
        """Market-based emissions before contracts: after, less before."""
        before, after = (one.get("scope_2_market_kgco2e") for one in (self.before, self.after))
        return None if before is None or after is None else float(after) - float(before)

    @property
    def is_material(self) -> bool:
        """Whether the change exceeds the usual threshold of restatement."""
        before, changed = self.before.get("scope_2_location_kgco2e"), self.difference_kgco2e
        return (
            bool(before)
            and changed is not None
            and (abs(changed) > MATERIAL_FRACTION * abs(float(before or 0)))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRow:
    """A figure of a period: as it was signed, and as the books say now."""

    name: str
    kind: str
    signed: float | None
    now: float | None

    @property
    def is_changed(self) -> bool:
        """Whether the two differ by more than their last digits."""
        if self.signed is None or self.now is None:
            return self.signed is not self.now
        return abs(self.signed - self.now) > 1e-9 * max(abs(self.signed), abs(self.now))


def cause_words(cause: str) -> str:
    """Why hours changed, for people."""
    return {
        "readings": _("other readings"),
        "factors": _("other factors"),
        "assignment": _("another project"),
    }.get(cause, cause)


def period_rows(organisation_id: UUID) -> list[PeriodRow]:
    """All periods that were ever prepared, the newest first."""
    locks = PeriodLock.objects.filter(organisation_id=organisation_id)
    held = list(_held(organisation_id).values_list("start", "end"))
    return [period_row(one, held) for one in locks.order_by("-start", "-prepared_at")]


def period_row(lock: PeriodLock, held: Sequence[tuple[datetime, datetime]] = ()) -> PeriodRow:
    """A period with its state in words."""
    state, badge = _state(lock)
    waiting = [one for one in held if one[0] < lock.end and lock.start < one[1]]
    return PeriodRow(
        lock_id=lock.pk,
        start_on=lock.start.astimezone(UTC).date(),
        end_on=last_day(lock.end),
        state=state,
        badge=badge,
        totals=lock.totals,
        digest=lock.digest,
        prepared_by=lock.prepared_by,
        prepared_at=lock.prepared_at,
        approved_by=lock.approved_by,
        approved_at=lock.approved_at,
        reopened_by=lock.reopened_by,
        reopened_at=lock.reopened_at,
        reason=lock.reason,
        held=len(waiting) if badge == "good" else 0,
    )


def _state(lock: PeriodLock) -> tuple[str, str]:
    """The state of a period in words, and the tone of its badge."""
    if lock.reopened_at is not None:
        return _("reopened"), "warn"
    if lock.approved_at is not None:
        return _("locked"), "good"
    return _("prepared, to be approved"), "info"


def _held(organisation_id: UUID) -> Any:
    rows = Restatement.objects.filter(organisation_id=organisation_id)
    return rows.filter(state=Restatement.State.HELD)


def held_rows(organisation_id: UUID, lock: PeriodLock) -> list[RestatementRow]:
    """What waits in a period, earliest first."""
    rows = _held(organisation_id).filter(start__lt=lock.end, end__gt=lock.start)
    return _merged(rows.select_related("site").order_by("start"))


def restatement_rows(
    organisation_id: UUID, *, cause: str = "", site_slug: str = ""
) -> list[RestatementRow]:
    """The log of restatements, the newest first."""
    rows = Restatement.objects.filter(organisation_id=organisation_id)
    if cause:
        rows = rows.filter(cause=cause)
    if site_slug:
        rows = rows.filter(site__slug=site_slug)
    found = rows.select_related("site").order_by("-noted_at", "site_id", "start")
    return _merged(found[:ROWS_READ])[:LOG_ROWS]


def _merged(rows: Iterable[Restatement]) -> list[RestatementRow]:
    """One line for what was noted of a site at one instant for one cause, however many windows."""
    groups: dict[tuple[object, ...], list[Restatement]] = {}
    for row in rows:
        key = (row.noted_at, row.site_id, row.cause, row.state, row.decided_at)
        groups.setdefault(key, []).append(row)
    return [_restatement(group) for group in groups.values()]


def _restatement(group: Sequence[Restatement]) -> RestatementRow:
    first = group[0]
    details = list(dict.fromkeys(row.detail for row in group if row.detail))
    return RestatementRow(
        site_slug=first.site.slug,
        start=min(row.start for row in group),
        end=max(row.end for row in group),
        cause=cause_words(first.cause),
        detail="; ".join(details[:DETAILS_SHOWN]) + (" …" if details[DETAILS_SHOWN:] else ""),
        before=_added([row.before for row in group]),
        after=_added([row.after for row in group]),
        entries=sum(row.entries for row in group),
        is_held=first.state == Restatement.State.HELD,
        noted_at=first.noted_at,
        decided_by=first.decided_by,
        decided_at=first.decided_at,
    )


def _added(sums: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sums of windows added up; None where a part is unknown."""
    names = {name for one in sums for name in one}
    return {
        name: None
        if any(one.get(name) is None for one in sums)
        else math.fsum(one[name] for one in sums)
        for name in names
    }


def figure_rows(lock: PeriodLock) -> list[FigureRow]:
    """The figures of a period as they were signed, beside those of now."""
    now = figures(lock.organisation_id, lock.start, lock.end)
    names = {
        "accelerator_energy_kwh": (_("Accelerator energy"), "energy"),
        "it_energy_kwh": (_("IT energy"), "energy"),
        "facility_energy_kwh": (_("Facility energy"), "energy"),
        "scope_2_location_kgco2e": (_("Emissions, location-based"), "carbon"),
        "scope_2_market_kgco2e": (_("Emissions, market-based, annual matching"), "carbon"),
        "scope_2_market_hourly_kgco2e": (_("Emissions, market-based, hourly matching"), "carbon"),
        "contracted_kwh": (_("Energy under contracts"), "energy"),
        "embodied_kgco2e": (_("Hardware, its share by use"), "carbon"),
        "water_on_site_l": (_("Water on site"), "litres"),
        "water_source_l": (_("Water of power plants"), "litres"),
        "coverage_fraction": (_("Coverage"), "fraction"),
        "estimated_fraction": (_("Estimated share"), "fraction"),
    }
    return [
        FigureRow(name=name, kind=kind, signed=lock.totals.get(key), now=now.get(key))
        for key, (name, kind) in names.items()
    ]


def last_month(today: date) -> tuple[date, date]:
    """First and last day of the month before: what is usually signed next."""
    end = today.replace(day=1) - timedelta(days=1)
    return end.replace(day=1), end
