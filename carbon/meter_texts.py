"""Periods and rows of meters as people write them: 2026, 2026-10, 2026-10-05, 2026-10-05T13."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from django.utils.translation import gettext as _

from carbon.site_factors import FactorError
from formulae.units import NumberTextError, strict_float

METERS: Final = ("facility_kwh", "it_kwh", "water_l")
FACTORS: Final = ("pue", "wue_l_per_kwh")
COLUMNS: Final = ("what", "period", "value")
OPTIONAL: Final = ("tier", "source")
TIERS: Final = ("measured", "published", "estimated")
MAX_ROWS: Final = 100_000
_PERIOD: Final = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:[T ]([0-9]{2})(?::00){0,2}Z?)?)?)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterPeriod:
    """One UTC hour, day, calendar month or year."""

    level: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterRow:
    """What a meter counted over a period, or a factor that holds over it."""

    what: str
    period: MeterPeriod
    value: float
    tier: str = "estimated"
    source: str = ""


def parse_period(text: str) -> MeterPeriod:
    """The period of a text.

    Raises:
        FactorError: it is none.
    """
    found = _PERIOD.fullmatch(text.strip())
    try:
        if found is None:
            raise ValueError
        year, month, day, hour = (int(one) if one else None for one in found.groups())
        start = datetime(year or 0, month or 1, day or 1, hour or 0, tzinfo=UTC)
        if not 2010 <= start.year < 3000:
            raise ValueError
    except ValueError:
        raise FactorError(
            _(
                "{text} is no period: write a year 2026, a month 2026-10, a day 2026-10-05 or an "
                "hour 2026-10-05T13, in UTC."
            ).format(text=repr(text[:40]))
        ) from None
    if hour is not None:
        return MeterPeriod(level="hour", start=start, end=start + timedelta(hours=1))
    if day is not None:
        return MeterPeriod(level="day", start=start, end=start + timedelta(days=1))
    if month is not None:
        return MeterPeriod(level="month", start=start, end=next_month(start))
    return MeterPeriod(level="year", start=start, end=start.replace(year=start.year + 1))


def next_month(start: datetime) -> datetime:
    """The start of the month after the one that starts here."""
    return (start + timedelta(days=31)).replace(day=1)


def level_of(start: datetime, end: datetime) -> str | None:
    """Whether [start, end) is an hour, a day, a month or a year; None for anything else."""
    for level in ("year", "month", "day", "hour"):
        text = period_text(level, start)
        if (found := parse_period(text)).start == start and found.end == end:
            return level
    return None


def period_text(level: str, start: datetime) -> str:
    """The period as people write it."""
    at = start.astimezone(UTC)
    forms = {"year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H"}
    return at.strftime(forms[level])


def written(value: object) -> str:
    """A period as a text, also where YAML has read it as a number, a day or an instant."""
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H}"
    if isinstance(value, date):
        return value.isoformat()
    return str(value)


def read_meter_rows(data: bytes) -> list[MeterRow]:
    """The rows of a CSV with what, period, value and, if wanted, tier and source.

    Raises:
        FactorError: the first row that cannot be taken, with its number, field and unit.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FactorError(
            _("Byte {at} is not UTF-8: save the file as UTF-8.").format(at=error.start)
        ) from None
    if "\0" in text:
        raise FactorError(_("The file holds NUL bytes: it is no CSV."))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        rows = list(_rows(reader))
    except csv.Error as error:
        raise FactorError(
            _("Row {row}: the CSV cannot be read: {why}.").format(row=reader.line_num, why=error)
        ) from None
    if not rows:
        raise FactorError(_("The file has no rows under its header."))
    return rows


def _rows(reader: Iterator[list[str]]) -> Iterator[MeterRow]:
    header = [name.strip().lower() for name in next(reader, [])]
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise FactorError(
            _(
                "The header lacks {missing}: it is what,period,value and, if wanted, tier,source."
            ).format(missing=", ".join(missing))
        )
    unknown = [name for name in header if name not in (*COLUMNS, *OPTIONAL)]
    if unknown or len(set(header)) < len(header):
        raise FactorError(
            _(
                "The header names {names}: each of what,period,value,tier,source once, no other."
            ).format(names=", ".join(header)[:200])
        )
    for number, cells in enumerate(reader, start=2):
        if not any(cell.strip() for cell in cells):
            continue
        if number > MAX_ROWS:
            raise FactorError(
                _("The file has more than {rows} rows: split it.").format(rows=MAX_ROWS)
            )
        if len(cells) != len(header):
            raise FactorError(
                _("Row {row} has {found} fields, the header has {expected}.").format(
                    row=number, found=len(cells), expected=len(header)
                )
            )
        yield meter_row(
            dict(zip(header, cells, strict=True)), where=_("Row {row}").format(row=number)
        )


def meter_row(fields: dict[str, str], *, where: str) -> MeterRow:
    """One row from texts; `where` leads the message about what is wrong with it."""
    what, tier = fields["what"].strip(), fields.get("tier", "").strip() or "estimated"
    if what not in (*METERS, *FACTORS):
        raise FactorError(
            _("{where}, what: {found} is none of {known}.").format(
                where=where, found=repr(what[:40]), known=", ".join((*METERS, *FACTORS))
            )
        )
    if tier not in TIERS:
        raise FactorError(
            _("{where}, tier: {found} is none of {known}.").format(
                where=where, found=repr(tier[:40]), known=", ".join(TIERS)
            )
        )
    try:
        period = parse_period(fields["period"])
    except FactorError as error:
        raise FactorError(_("{where}, period: {why}").format(where=where, why=error)) from None
    return MeterRow(
        what=what,
        period=period,
        value=_value(fields["value"], what, where=where),
        tier=tier,
        source=fields.get("source", "").strip()[:200],
    )


def _value(text: str, what: str, *, where: str) -> float:
    try:
        value = strict_float(text.strip())
    except NumberTextError:
        value = -1.0
    if value < 0:
        raise FactorError(
            _("{where}, value: {found} is no number of {unit}, 0 or more, such as 1234.5.").format(
                where=where, found=repr(text[:40]), unit=unit_of(what)
            )
        )
    return value


def unit_of(what: str) -> str:
    """The unit of a meter or factor."""
    units = {"facility_kwh": "kWh", "it_kwh": "kWh", "water_l": "L", "wue_l_per_kwh": "L/kWh"}
    return units.get(what, "kWh/kWh")
