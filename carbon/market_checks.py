"""Checks of market-based figures and of locked periods, computed another way; changes nothing."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import groupby
from uuid import UUID

from audit.records import Finding
from audit.selectors import trail
from carbon.entry_queries import current_entries
from carbon.instrument_reads import Contract, contracts_of
from carbon.locks import active_locks, fingerprint
from carbon.market_selectors import added_up, market_by_day
from carbon.models import InstrumentHour, PeriodLock

HOUR = timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)
A_HOUR = HOUR // MICROSECOND
RELATIVE_TOLERANCE = Fraction(1, 10**9)
PERIODS_LOOKED_AT = 10_000
Hours = dict[datetime, Fraction]


def verify_market(organisation_id: UUID) -> Iterator[Finding]:
    """Each market and year with contracts, matched again in exact fractions."""
    contracts = [one for one in contracts_of(organisation_id) if one.is_eligible]
    for zone, year in sorted({(one.market_zone, year) for one in contracts for year in one.years}):
        start = datetime(year, 1, 1, tzinfo=UTC)
        end = datetime(year + 1, 1, 1, tzinfo=UTC)
        rows = current_entries().filter(
            organisation_id=organisation_id, market_zone=zone, hour__gte=start, hour__lt=end
        )
        whole = added_up(market_by_day(organisation_id, rows).values())
        amounts = rows.values_list("hour", "facility_energy_kwh", "scope_2_market_kgco2e")
        entries = [
            (hour, energy, kg)
            for hour, energy, kg in amounts.order_by("hour")
            if energy is not None and kg is not None
        ]
        if whole is None or len(entries) < len(rows):
            continue  # what is unknown stays unknown: nothing to compute again
        named = [one for one in contracts if one.market_zone == zone and year in one.years]
        found = (whole.annual_kgco2e, whole.hourly_kgco2e)
        for method, booked in zip(("annual", "hourly"), found, strict=True):
            expected = _matched_kgco2e(entries, named, by_the_hour=method == "hourly")
            if booked is None or not _near(expected, Fraction(booked)):
                yield Finding(
                    code="market_based",
                    where=f"{zone}, {year}, {method} matching",
                    expected=f"{float(expected)} kgCO2e",
                    found=f"{booked} kgCO2e",
                )


def _near(expected: Fraction, found: Fraction) -> bool:
    return abs(expected - found) <= RELATIVE_TOLERANCE * max(abs(expected), Fraction(1))


def _matched_kgco2e(
    entries: Sequence[tuple[datetime, float, float]],
    contracts: Sequence[Contract],
    *,
    by_the_hour: bool,
) -> Fraction:
    """Emissions of a market's year: each contract takes from what is open, in its own hours."""
    energy: Hours = {}
    uncontracted: Hours = {}
    for hour, rows in groupby(entries, key=lambda row: row[0]):
        held = list(rows)
        energy[hour] = sum((Fraction(row[1]) for row in held), Fraction(0))
        uncontracted[hour] = sum((Fraction(row[2]) for row in held), Fraction(0))
    left = dict(energy)
    conveyed = Fraction(0)
    for one in contracts:
        taken = _taken(one, left, by_the_hour=by_the_hour)
        conveyed += sum(taken.values(), Fraction(0)) * Fraction(one.g_per_kwh) / 1_000
        for hour, part in taken.items():
            left[hour] -= part
    rest = sum(
        (uncontracted[hour] * left[hour] / energy[hour] for hour in energy if energy[hour]),
        Fraction(0),
    )
    return conveyed + rest


def _is_inside(one: Contract, hour: datetime) -> bool:
    """Whether a contract is valid all through an hour: the books know no part of one."""
    return one.start <= hour and hour + HOUR <= one.end


def _taken(one: Contract, left: Hours, *, by_the_hour: bool) -> Hours:
    """What a contract covers of each open hour."""
    own = {hour: open_ for hour, open_ in left.items() if _is_inside(one, hour)}
    profile = _profile(one)
    if one.energy_kwh is None and profile is None:
        return own
    year = next(iter(left)).year if left else 0
    if by_the_hour:
        return {hour: min(open_, _delivered(one, hour, profile)) for hour, open_ in own.items()}
    supply = _supply(one, year, profile)
    whole = sum(own.values(), Fraction(0))
    share = min(Fraction(1), supply / whole) if whole else Fraction(0)
    return {hour: open_ * share for hour, open_ in own.items()}


def _profile(one: Contract) -> Hours | None:
    rows = InstrumentHour.objects.filter(instrument_id=one.instrument_id)
    found = {hour: Fraction(energy) for hour, energy in rows.values_list("hour", "energy_kwh")}
    return found or None


def _an_hour(one: Contract) -> Fraction:
    """A contract's energy spread evenly over its validity."""
    return Fraction(one.energy_kwh or 0) / (Fraction((one.end - one.start) // MICROSECOND) / A_HOUR)


def _delivered(one: Contract, hour: datetime, profile: Hours | None) -> Fraction:
    return _an_hour(one) if profile is None else profile.get(hour, Fraction(0))


def _supply(one: Contract, year: int, profile: Hours | None) -> Fraction:
    """What a contract brings in a calendar year."""
    hour = one.start.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    supply = Fraction(0)
    while hour < one.end:
        if hour.year == year and _is_inside(one, hour):
            supply += _delivered(one, hour, profile)
        hour += HOUR
    return supply


def verify_locks(organisation_id: UUID) -> Iterator[Finding]:
    """Locked periods hold what was signed off, or what the last release made of it."""
    yield from _signatures(organisation_id)
    for lock in active_locks(organisation_id):
        now = fingerprint(organisation_id, lock.start, lock.end)
        held = lock.totals.get("released") or {
            "digest": lock.digest,
            "entries": lock.totals.get("entries"),
        }
        if now.digest != held["digest"]:
            yield Finding(
                code="period_lock",
                where=f"{lock}",
                expected=f"{held['entries']} entries, {held['digest'][:16]}",
                found=f"{now.entries} entries, {now.digest[:16]}",
            )


def _signatures(organisation_id: UUID) -> Iterator[Finding]:
    """Each sign-off of the trail against the period that was signed: still there, unchanged."""
    noted = trail(organisation_id, object_type="period", limit=PERIODS_LOOKED_AT)
    reopened = {one.object_id for one in noted if one.action == "period.reopened"}
    held = {
        str(lock.pk): lock for lock in PeriodLock.objects.filter(organisation_id=organisation_id)
    }
    for one in noted:
        if one.action != "period.locked":
            continue
        signed = dict(one.after) if isinstance(one.after, dict) else {}
        start, end = signed.pop("start", ""), signed.pop("end", "")
        lock = held.get(one.object_id)
        if lock is None or lock.approved_at is None:
            found = "no signed period"
        elif bool(lock.reopened_at) != (one.object_id in reopened):
            found = "reopened" if lock.reopened_at else "not reopened"
        elif {**lock.totals, "released": None} != {**signed, "released": None}:
            found = "other totals"
        else:
            continue
        yield Finding(
            code="period_signature",
            where=f"{start} to {end}, trail entry {one.position}",
            expected=f"as signed by {one.actor_label}",
            found=found,
        )
