"""The log of restatements: which posted hours changed, from which sums to which, and why."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from carbon.locks import allow_recount
from carbon.models import EmissionEntry, FactorSet, Restatement
from formulae.units import kwh_from_millijoule
from runs.records import SiteRecord

HOUR: Final = timedelta(hours=1)
DETAIL_LENGTH: Final = 400
SUMMED: Final = (
    "it_energy_kwh",
    "facility_energy_kwh",
    "scope_2_location_kgco2e",
    "scope_2_market_kgco2e",
    "embodied_kgco2e",
    "water_on_site_l",
    "water_source_l",
)
Rows = Sequence[EmissionEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Who lets a change into a locked period, and why."""

    decided_by: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The entries of hours that changed, as they were and as they should be; `moves` are rows."""

    before: Rows
    after: Rows
    moves: int


def sums_of(rows: Iterable[EmissionEntry]) -> dict[str, Any]:
    """Energy at three boundaries and emissions; None where a part is unknown.

    The market-based figure is that without contracts, as entries hold it.
    """
    held = list(rows)
    sums: dict[str, Any] = {
        "hours": len({row.hour for row in held}),
        "accelerator_energy_kwh": kwh_from_millijoule(
            sum(row.accelerator_energy_millijoule for row in held)
        ),
    }
    for name in SUMMED:
        values = [getattr(row, name) for row in held]
        sums[name] = None if None in values else math.fsum(values)
    return sums


def cause_of(change: Change) -> tuple[str, str]:
    """Why hours changed: other readings, other owners, or other factors; and which, in words."""
    before, after = _energy_by_hour(change.before), _energy_by_hour(change.after)
    owners_before, owners_after = _by_owner(change.before), _by_owner(change.after)
    read = {hour for hour in {*before, *after} if before.get(hour) != after.get(hour)}
    moved = {
        key[-1]
        for key in {*owners_before, *owners_after}
        if owners_before.get(key) != owners_after.get(key)
    } - read
    kinds = _changed_factors(change)
    parts = []
    if read:
        parts.append(f"readings of {len(read)} h")
    if moved:
        parts.append(f"owners of {len(moved)} h")
    if kinds:
        parts.append(f"factors: {', '.join(kinds)}")
    if read:
        cause = Restatement.Cause.READINGS
    elif moved:
        cause = Restatement.Cause.ASSIGNMENT
    else:
        cause = Restatement.Cause.FACTORS
    return cause.value, "; ".join(parts)


def _energy_by_hour(rows: Rows) -> dict[datetime, tuple[int, ...]]:
    """What was metered in each hour, whoever used it."""
    found: dict[datetime, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    names = ("measured_millijoule", "spread_millijoule", "estimated_millijoule")
    for row in rows:
        for place, name in enumerate((*names, "covered_microsecond")):
            found[row.hour][place] += getattr(row, name)
    return {hour: tuple(sums) for hour, sums in found.items()}


def _by_owner(rows: Rows) -> dict[tuple[object, object, datetime], tuple[int, int]]:
    return {
        (row.project_id, row.run_id, row.hour): (
            row.accelerator_energy_millijoule,
            row.expected_microsecond,
        )
        for row in rows
    }


def _changed_factors(change: Change) -> list[str]:
    """Kinds of factor, or labels, that differ between entries of the same owner and hour."""
    old = {(row.project_id, row.run_id, row.hour): row for row in change.before}
    pairs = {
        (old[key].factor_set_id, row.factor_set_id)
        for row in change.after
        if (key := (row.project_id, row.run_id, row.hour)) in old
    }
    wanted = {pk for pair in pairs for pk in pair if pair[0] != pair[1]}
    documents = dict(FactorSet.objects.filter(pk__in=wanted).values_list("pk", "factors"))
    kinds: set[str] = set()
    for before, after in pairs:
        if before != after:
            kinds |= _differing(documents[before], documents[after])
    for row in change.after:
        was = old.get((row.project_id, row.run_id, row.hour))
        if was and (was.scope_category, was.market_zone) != (row.scope_category, row.market_zone):
            kinds.add("boundary")
    return sorted(kinds)


def _differing(
    before: Sequence[Mapping[str, object]], after: Sequence[Mapping[str, object]]
) -> set[str]:
    old, new = ({str(one["kind"]): one for one in each} for each in (before, after))
    return {kind for kind in {*old, *new} if old.get(kind) != new.get(kind)}


def note_posted(
    site: SiteRecord, change: Change, *, noted_at: datetime, release: Release | None
) -> None:
    """Log that posted hours changed; nothing where nothing had been posted before."""
    if not change.before:
        return
    row = _restatement(site, change, noted_at=noted_at)
    row.state = Restatement.State.POSTED
    if release is not None:
        row.decided_by, row.decided_at = release.decided_by, noted_at
        row.detail = f"{row.detail}; released: {release.reason}"[:DETAIL_LENGTH]
    row.save(force_insert=True)


def hold(
    site: SiteRecord,
    changes: Mapping[datetime, Change],
    *,
    window: tuple[datetime, datetime],
    noted_at: datetime,
) -> None:
    """Keep the changes that wait for a release, one a UTC day, instead of those of this window."""
    waiting = Restatement.objects.filter(
        site_id=site.site_id,
        state=Restatement.State.HELD,
        start__gte=window[0],
        end__lte=window[1],
    )
    first_noted = {row.start.astimezone(UTC).date(): row.noted_at for row in waiting}
    if first_noted:
        allow_recount(True)
        waiting.delete()
        allow_recount(False)
    rows = []
    for day, change in changes.items():
        row = _restatement(site, change, noted_at=first_noted.get(day.date(), noted_at))
        row.state = Restatement.State.HELD
        rows.append(row)
    Restatement.objects.bulk_create(rows)


def _restatement(site: SiteRecord, change: Change, *, noted_at: datetime) -> Restatement:
    hours = [row.hour for row in (*change.before, *change.after)]
    cause, detail = cause_of(change)
    return Restatement(
        organisation_id=site.organisation_id,
        site_id=site.site_id,
        start=min(hours),
        end=max(hours) + HOUR,
        cause=cause,
        detail=detail[:DETAIL_LENGTH],
        before=sums_of(change.before),
        after=sums_of(change.after),
        entries=change.moves,
        noted_at=noted_at,
    )


def of_hours(rows: Iterable[EmissionEntry], hours: Collection[datetime]) -> Rows:
    """The entries of these hours."""
    return [row for row in rows if row.hour in hours]
