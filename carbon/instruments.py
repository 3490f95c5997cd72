"""Writes of contracts and certificates: what is entered, checked, proven and withdrawn."""

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from carbon.instrument_reads import HIERARCHY
from carbon.locks import lock_books, lock_touching
from carbon.models import Instrument, InstrumentHour
from formulae.units import QuantityError, strict_float
from lake import blobs
from projects import trail
from projects.records import Actor

HOUR: Final = timedelta(hours=1)
SHELF: Final = "evidence"
EVIDENCE_BYTES: Final = 32 * 1024 * 1024
HOURS_BYTES: Final = 8 * 1024 * 1024
LONGEST_CERTIFICATE: Final = timedelta(days=366)
HIGHEST_G_PER_KWH: Final = 5_000.0
HIGHEST_KWH: Final = 1e13
COLUMNS: Final = ["hour", "energy_kwh"]
_RANGE: Final = re.compile(r"\s+(?:to|-|–)\s+|\.\.")
_TAIL: Final = re.compile(r"^(.*?)(\d+)$")


class InstrumentError(ValueError):
    """An instrument that cannot count; the message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A file that proves an instrument, kept by its hash."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInstrument:
    """What a person states of a contract or certificate; its period is [start, end) in UTC."""

    kind: str
    name: str
    market_zone: str
    start: datetime
    end: datetime
    energy_kwh: float | None
    g_per_kwh: float
    registry: str = ""
    serials: str = ""
    retired_on: date | None = None
    evidence: Evidence | None = None
    hours: Sequence[tuple[datetime, float]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Serials:
    """Certificates of one registry with a common beginning, [first, last] of their numbers."""

    stem: str
    first: int
    last: int

    def meets(self, other: "Serials") -> bool:
        """Whether a certificate stands in both."""
        same = self.stem == other.stem
        return same and self.first <= other.last and other.first <= self.last


def keep_evidence(name: str, chunks: Iterator[bytes]) -> Evidence:
    """Keep the bytes of a proof under their SHA-256.

    Raises:
        InstrumentError: there are too many bytes.
    """
    try:
        blob = blobs.receive(chunks, max_bytes=EVIDENCE_BYTES, shelf=SHELF)
    except blobs.BlobTooLargeError as error:
        raise InstrumentError(_("The evidence is larger than 32 MB: send a smaller file.")) from (
            error
        )
    return Evidence(name=name[:255], sha256=blob.sha256)


def with_evidence(new: NewInstrument, evidence: Evidence | None) -> NewInstrument:
    """The same wish with its proof."""
    return replace(new, evidence=evidence)


def read_serials(text: str) -> list[Serials]:
    """Serial numbers, one a line or parted by commas; FIRST to LAST is a range.

    Raises:
        InstrumentError: a range runs backwards, or from one series into another.
    """
    return [_serials(one.strip()) for one in re.split(r"[\n,;]+", text) if one.strip()]


def _serials(text: str) -> Serials:
    ends = [end.strip().upper() for end in _RANGE.split(text)]
    first, last = _numbered(ends[0]), _numbered(ends[-1])
    if len(ends) == 2 and ends[-1].isdigit():
        last = (first[0], last[1])  # "PREFIX-1 to 1000": the end is told by its number alone
    if len(ends) > 2 or first[0] != last[0] or first[1] > last[1]:
        raise InstrumentError(
            _("Serial numbers {text}: write FIRST to LAST of one series, or one a line.").format(
                text=text
            )
        )
    return Serials(stem=first[0], first=first[1], last=last[1])


def _numbered(text: str) -> tuple[str, int]:
    """A serial as what it begins with and its number; one without a number stands for itself."""
    found = _TAIL.match(text)
    return (found[1], int(found[2])) if found else (text, 0)


def read_hours(text: str) -> list[tuple[datetime, float]]:
    """A profile `hour,energy_kwh`: what an instrument delivers in each hour (UTC).

    Raises:
        InstrumentError: a row cannot be read, or an hour comes twice; it names the row.
    """
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")))
    header = [name.strip() for name in next(reader, [])]
    if header != COLUMNS:
        raise InstrumentError(_("The first row must be: hour,energy_kwh"))
    hours: dict[datetime, float] = {}
    for number, row in enumerate(reader, start=2):
        if not any(row):
            continue
        hour, energy_kwh = _row(row, number)
        if hour in hours:
            raise InstrumentError(
                _("Row {row}: the hour {hour} comes twice.").format(row=number, hour=row[0])
            )
        hours[hour] = energy_kwh
    return sorted(hours.items())


def _row(row: Sequence[str], number: int) -> tuple[datetime, float]:
    try:
        at = parse_datetime(row[0].strip())
        energy_kwh = strict_float(row[1].strip())
    except (IndexError, ValueError, QuantityError) as error:
        raise InstrumentError(
            _("Row {row}: write an hour and kWh, such as 2026-01-01T00:00:00Z,1250.5").format(
                row=number
            )
        ) from error
    if at is None or at.tzinfo is None or at.minute or at.second or at.microsecond:
        raise InstrumentError(
            _("Row {row}: {hour} is no whole hour with its zone, such as 2026-01-01T00:00Z").format(
                row=number, hour=row[0]
            )
        )
    if not 0 <= energy_kwh <= HIGHEST_KWH:
        raise InstrumentError(
            _("Row {row}: {energy} kWh lies outside of 0 to 1e13.").format(
                row=number, energy=row[1]
            )
        )
    return at.astimezone(UTC), energy_kwh


@transaction.atomic
def add_instrument(actor: Actor, new: NewInstrument, *, known_at: datetime) -> UUID:
    """Enter a contract or certificate; the market-based figures of its market and years follow.

    Raises:
        InstrumentError: it may not count, or a locked period would change.
    """
    energy_kwh = _check(new)
    _refuse_a_retirement_to_come(new.retired_on, known_at)
    lock_books(actor.organisation_id)  # whoever signs or enters beside us comes before or after
    _refuse_locked(actor, new.start, new.end)
    _refuse_serials_again(actor, new)
    row = Instrument.objects.create(
        organisation_id=actor.organisation_id,
        kind=new.kind,
        name=new.name.strip(),
        market_zone=new.market_zone.strip(),
        start=new.start,
        end=new.end,
        energy_kwh=energy_kwh,
        g_per_kwh=new.g_per_kwh,
        registry=new.registry.strip(),
        serials=new.serials.strip(),
        retired_on=new.retired_on,
        evidence_name=new.evidence.name if new.evidence else "",
        evidence_sha256=new.evidence.sha256 if new.evidence else "",
        known_at=known_at,
        entered_by=actor.label,
    )
    InstrumentHour.objects.bulk_create(
        (InstrumentHour(instrument=row, hour=hour, energy_kwh=kwh) for hour, kwh in new.hours),
        batch_size=1_000,
    )
    trail.note(actor, "instrument.added", subject=("instrument", row.pk), after=_document(row))
    return row.pk


@transaction.atomic
def withdraw_instrument(
    actor: Actor, instrument_id: UUID, *, known_at: datetime, reason: str = ""
) -> None:
    """Let an instrument cover nothing any more; what was said with it can still be told.

    Raises:
        InstrumentError: there is none of this id, or a locked period would change.
    """
    lock_books(actor.organisation_id)
    held = Instrument.objects.select_for_update().filter(
        pk=instrument_id, organisation_id=actor.organisation_id, superseded_at__isnull=True
    )
    row = held.first()
    if row is None:
        raise InstrumentError(_("No such instrument; reload the page."))
    _refuse_locked(actor, row.start, row.end)
    held.update(superseded_at=known_at)
    trail.note(
        actor,
        "instrument.withdrawn",
        subject=("instrument", row.pk),
        before=_document(row),
        reason=reason,
    )


def _check(new: NewInstrument) -> float | None:
    """Whether an instrument may count; gives its energy, summed from its hours where they tell."""
    if new.kind not in HIERARCHY:
        raise InstrumentError(_("An instrument is a certificate, a PPA or a supplier's rate."))
    if not new.name.strip() or not new.market_zone.strip():
        raise InstrumentError(_("An instrument has a name and a market zone."))
    _check_period(new)
    if not 0 <= new.g_per_kwh <= HIGHEST_G_PER_KWH:
        raise InstrumentError(_("The rate lies between 0 and 5,000 g/kWh."))
    energy_kwh = _energy_kwh(new)
    if new.kind == Instrument.Kind.CERTIFICATE:
        _check_certificate(new)
    elif energy_kwh is None and new.kind == Instrument.Kind.PPA:
        raise InstrumentError(_("A PPA delivers a quantity: give its kWh or its hours."))
    return energy_kwh


def _check_period(new: NewInstrument) -> None:
    """A period of whole hours: the books know the energy of no part of one."""
    if not new.start < new.end:
        raise InstrumentError(_("The last day comes before the first."))
    for at in (new.start.astimezone(UTC), new.end.astimezone(UTC)):
        if at.minute or at.second or at.microsecond:
            raise InstrumentError(
                _("The period is of whole hours (UTC); {at} lies within one.").format(
                    at=at.isoformat()
                )
            )


def _energy_kwh(new: NewInstrument) -> float | None:
    outside = [hour for hour, _kwh in new.hours if not new.start <= hour < new.end]
    if outside:
        raise InstrumentError(
            _("The hour {hour} lies outside of the instrument's period.").format(
                hour=outside[0].isoformat()
            )
        )
    if new.energy_kwh is not None and not 0 < new.energy_kwh <= HIGHEST_KWH:
        raise InstrumentError(_("The energy lies above 0 kWh, up to 1e13."))
    if not new.hours:
        return new.energy_kwh
    told = math.fsum(kwh for _hour, kwh in new.hours)
    if new.energy_kwh is not None and not math.isclose(told, new.energy_kwh, rel_tol=1e-6):
        raise InstrumentError(
            _("The hours add up to {told} kWh, the instrument says {stated} kWh.").format(
                told=f"{told:,.0f}", stated=f"{new.energy_kwh:,.0f}"
            )
        )
    return told


def _check_certificate(new: NewInstrument) -> None:
    """A certificate: its quantity, its vintage, its retirement."""
    if new.energy_kwh is None and not new.hours:
        raise InstrumentError(_("A certificate is for a quantity: give its kWh."))
    if new.end - new.start > LONGEST_CERTIFICATE:
        raise InstrumentError(
            _("A certificate's vintage is a year or less: enter each year by itself.")
        )
    if new.retired_on is not None and new.retired_on < new.start.astimezone(UTC).date():
        raise InstrumentError(_("It was retired before the energy was made: check both days."))


def _refuse_a_retirement_to_come(retired_on: date | None, known_at: datetime) -> None:
    today = known_at.astimezone(UTC).date()
    if retired_on is not None and retired_on > today:
        raise InstrumentError(
            _(
                "Retired on {day} comes after {today}: leave it out until the certificate is "
                "retired; it counts from then on."
            ).format(day=retired_on.isoformat(), today=today.isoformat())
        )


def _refuse_locked(actor: Actor, start: datetime, end: datetime) -> None:
    lock = lock_touching(actor.organisation_id, start, end)
    if lock is not None:
        raise InstrumentError(
            _("The period {period} is locked: reopen it under Books first.").format(period=lock)
        )


def _refuse_serials_again(actor: Actor, new: NewInstrument) -> None:
    """A certificate is retired once: no serial may stand in two instruments of a registry."""
    own = read_serials(new.serials)
    for place, one in enumerate(own):
        if any(one.meets(other) for other in own[:place]):
            raise InstrumentError(_("The same serial number stands here twice."))
    if not own:
        return
    others = Instrument.objects.filter(
        organisation_id=actor.organisation_id,
        registry__iexact=new.registry.strip(),
        superseded_at__isnull=True,
    ).exclude(serials="")
    for row in others:
        if any(one.meets(other) for one in own for other in read_serials(row.serials)):
            raise InstrumentError(
                _("Serial numbers of this certificate count already, in {name}.").format(
                    name=row.name
                )
            )


def _document(row: Instrument) -> dict[str, object]:
    names = (
        "kind",
        "name",
        "market_zone",
        "start",
        "end",
        "energy_kwh",
        "g_per_kwh",
        "registry",
        "serials",
        "retired_on",
        "evidence_sha256",
    )
    return {name: getattr(row, name) for name in names}
