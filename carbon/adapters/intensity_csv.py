"""Grid intensity from a CSV of hours: zone, hour, g_per_kwh and maybe basis. All rows or none."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from django.utils.translation import gettext as _

from carbon.adapters.intensity_points import MOST_G_PER_KWH, IntensityPoint
from formulae.units import strict_float

REQUIRED: Final = ("zone", "hour", "g_per_kwh")
UNITS: Final = {"hour": "ISO 8601 with its zone, a full hour", "g_per_kwh": "gCO2e/kWh"}
BASES: Final = ("direct", "lifecycle")
MAX_BYTES: Final = 64 * 2**20
MAX_ZONE: Final = 80
LOW_G_PER_KWH: Final = 2.0  # a whole file below it was most likely written in kilograms
HEADER_ROWS: Final = 2  # the header is row 1


class IntensityFileError(ValueError):
    """A file that cannot be taken; names file, row, field and unit."""

    def __init__(self, file: str, problem: str, *, row: int | None = None, field: str = "") -> None:
        places = [file, _("row {row}").format(row=row) if row else ""]
        if field:
            unit = f" ({UNITS[field]})" if field in UNITS else ""
            places.append(_("field {field}").format(field=field) + unit)
        super().__init__(f"{', '.join(place for place in places if place)}: {problem}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvReading:
    """A file's name and how it is to be read; `accept_low` confirms that all values are tiny."""

    file: str
    basis: str = "direct"
    accept_low: bool = False
    now: datetime


def read_csv(data: bytes, how: CsvReading) -> tuple[IntensityPoint, ...]:
    """The hours of a file.

    Raises:
        IntensityFileError: anything in it cannot be read; nothing of the file may be stored.
    """
    if len(data) > MAX_BYTES:
        raise IntensityFileError(
            how.file, _("it is larger than {most} MB.").format(most=MAX_BYTES // 2**20)
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise IntensityFileError(how.file, _("it is not UTF-8 text.")) from error
    points: dict[tuple[str, datetime, str], tuple[IntensityPoint, int]] = {}
    for row, point in _points(text, how):
        key = (point.zone, point.hour, point.basis)
        other = points.get(key)
        if other is not None and other[0].value_g_per_kwh != point.value_g_per_kwh:
            raise IntensityFileError(
                how.file,
                _("row {other} has another value for this hour.").format(other=other[1]),
                row=row,
                field="g_per_kwh",
            )
        points[key] = (point, row)
    found = tuple(point for point, _row in points.values())
    if not found:
        raise IntensityFileError(how.file, _("it holds no hour."))
    if not how.accept_low and max(one.value_g_per_kwh for one in found) < LOW_G_PER_KWH:
        raise IntensityFileError(
            how.file,
            _(
                "no value reaches {low} g/kWh: are they kilograms? Write grams, or say that they "
                "really are that low."
            ).format(low=f"{LOW_G_PER_KWH:g}"),
            field="g_per_kwh",
        )
    return found


def _points(text: str, how: CsvReading) -> Iterator[tuple[int, IntensityPoint]]:
    reader = csv.reader(io.StringIO(text), strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        _check_header(header, how.file)
        for cells in reader:
            row = reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                raise IntensityFileError(
                    how.file,
                    _("it has {count} cells, the header {wanted}.").format(
                        count=len(cells), wanted=len(header)
                    ),
                    row=row,
                )
            named = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
            yield row, _point(named, row, how)
    except csv.Error as error:
        raise IntensityFileError(how.file, str(error), row=reader.line_num) from error


def _check_header(header: Sequence[str], file: str) -> None:
    missing = [name for name in REQUIRED if name not in header]
    if missing:
        raise IntensityFileError(
            file,
            _("the column {missing} is missing; the columns are zone, hour, g_per_kwh and, if you "
              "like, basis.").format(missing=", ".join(missing)),
            row=1,
        )  # fmt: skip
    if len(set(header)) != len(header):
        raise IntensityFileError(file, _("a column stands there twice."), row=1)


def _point(cells: dict[str, str], row: int, how: CsvReading) -> IntensityPoint:
    zone = cells["zone"]
    if not zone or len(zone) > MAX_ZONE:
        raise IntensityFileError(how.file, _("name a zone."), row=row, field="zone")
    basis = cells.get("basis", "").lower() or how.basis
    if basis not in BASES:
        raise IntensityFileError(how.file, _("write direct or lifecycle."), row=row, field="basis")
    return IntensityPoint(
        zone=zone,
        hour=_hour(cells["hour"], row, how),
        basis=basis,
        value_g_per_kwh=_value(cells["g_per_kwh"], row, how),
        method=how.file[:80],
    )


def _hour(text: str, row: int, how: CsvReading) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise IntensityFileError(
            how.file, _("{text} is no time.").format(text=repr(text)), row=row, field="hour"
        ) from error
    if at.tzinfo is None:
        raise IntensityFileError(
            how.file,
            _("{text} does not say its time zone; write 2025-10-01T00:00Z.").format(
                text=repr(text)
            ),
            row=row,
            field="hour",
        )
    found = at.astimezone(UTC)
    if (found.minute, found.second, found.microsecond) != (0, 0, 0):
        raise IntensityFileError(
            how.file,
            _("{text} is no full hour; give means of hours.").format(text=repr(text)),
            row=row,
            field="hour",
        )
    if found > how.now:
        raise IntensityFileError(
            how.file, _("{text} lies ahead.").format(text=repr(text)), row=row, field="hour"
        )
    return found


def _value(text: str, row: int, how: CsvReading) -> float:
    try:
        value = strict_float(text)
    except ValueError as error:
        raise IntensityFileError(
            how.file, _("{text} is no number.").format(text=repr(text)), row=row, field="g_per_kwh"
        ) from error
    if not 0 <= value <= MOST_G_PER_KWH:
        raise IntensityFileError(
            how.file,
            _(
                "{text} is not between 0 and {most}: is it in grams per MWh, or in milligrams?"
            ).format(text=text, most=f"{MOST_G_PER_KWH:g}"),
            row=row,
            field="g_per_kwh",
        )
    return value
