"""Reads prices and exchange rates out of CSV text, strictly; nothing is stored here."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Final

from babel.numbers import list_currencies
from django.utils.translation import gettext as _

from billing.price_records import (
    ON_DEMAND,
    PRICE_CLASSES,
    PURCHASES,
    UNITS_OF,
    PricesRefusedError,
    PriceWish,
    RateWish,
)
from billing.rate_files import ecb_cells, is_xml, unzipped
from formulae.money import Money
from formulae.units import NumberTextError, strict_decimal

PRICE_COLUMNS: Final = (
    "cost_class",
    "provider",
    "region",
    "accelerator_key",
    "instance_type",
    "purchase",
    "unit",
    "price",
    "currency",
    "valid_from",
    "valid_to",
    "source",
    "source_date",
    "note",
)
REQUIRED_COLUMNS: Final = ("cost_class", "unit", "price", "valid_from", "source")
RATE_COLUMNS: Final = ("date", "base", "quote", "rate", "source")
ECB_SOURCE: Final = "European Central Bank, euro foreign exchange reference rates"
ECB_BASE: Final = "EUR"
MAX_FILE_BYTES: Final = 20 * 2**20
LONGEST: Final = {
    "provider": 40,
    "region": 60,
    "accelerator_key": 60,
    "instance_type": 120,
    "source": 300,
}
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SOURCE_DATE: Final = re.compile(r"[0-9]{4}(-(0[1-9]|1[0-2])(-[0-9]{2})?)?")
_FEWEST_ECB_COLUMNS: Final = 2

Row = Mapping[str, str]


def read_prices(content: bytes, *, file: str, currency: str) -> list[tuple[int, PriceWish]]:
    """The prices of a CSV with their row numbers; `currency` is that of rows that name none.

    Raises:
        PricesRefusedError: the file or one of its rows cannot be read.
    """
    header, rows = _table(content, file)
    unknown = [name for name in header if name not in PRICE_COLUMNS]
    if unknown:
        raise PricesRefusedError(
            _("there is no such column; write {columns}.").format(columns=", ".join(PRICE_COLUMNS)),
            file=file,
            column=unknown[0],
        )
    _require_columns(header, REQUIRED_COLUMNS, file)
    found = []
    for number, row in rows:
        try:
            found.append((number, price_from_texts(row, currency=currency)))
        except PricesRefusedError as error:
            raise PricesRefusedError(
                error.reason, file=file, row=number, column=error.column
            ) from error
    return found


def price_from_texts(row: Row, *, currency: str) -> PriceWish:
    """A price as its texts say.

    Raises:
        PricesRefusedError: a text is not what its column holds; the message says what to write.
    """
    texts = {name: (row.get(name) or "").strip() for name in PRICE_COLUMNS}
    cost_class = _one_of(texts, "cost_class", PRICE_CLASSES)
    unit = _one_of(texts, "unit", UNITS_OF[cost_class])
    code = _currency(texts["currency"].upper() or currency, column="currency")
    amount = _amount(texts["price"], column="price", unit=f"{code} / {unit}")
    if amount < 0:
        raise _refused("price", texts["price"], _("a price is 0 or more, in {unit}"), unit=unit)
    valid_from = _day(texts["valid_from"], column="valid_from")
    valid_to = _day(texts["valid_to"], column="valid_to") if texts["valid_to"] else None
    if valid_to is not None and valid_to <= valid_from:
        raise _refused("valid_to", texts["valid_to"], _("it must come after valid_from"))
    if not texts["source"]:
        raise _refused("source", "", _("say where the price comes from"))
    if texts["source_date"] and not _SOURCE_DATE.fullmatch(texts["source_date"]):
        raise _refused("source_date", texts["source_date"], _("write 2026, 2026-03 or 2026-03-31"))
    for name, longest in LONGEST.items():
        if len(texts[name]) > longest:
            raise _refused(name, texts[name], _("at most {longest} characters"), longest=longest)
    return PriceWish(
        cost_class=cost_class,
        unit=unit,
        price=Money(amount=amount, currency=code),
        valid_from=valid_from,
        valid_to=valid_to,
        source=texts["source"],
        source_date=texts["source_date"],
        provider=texts["provider"].lower(),
        region=texts["region"].lower(),
        accelerator_key=texts["accelerator_key"].lower(),
        instance_type=texts["instance_type"],
        purchase=_one_of({"purchase": texts["purchase"] or ON_DEMAND}, "purchase", PURCHASES),
        note=texts["note"],
    )


def read_rates(
    content: bytes, *, file: str, source: str, since: date | None = None
) -> Iterator[tuple[int, RateWish]]:
    """The rates of a file with their row numbers: a CSV with date,base,quote,rate, or the ECB's
    files as downloaded: a CSV with a column for each currency, plain or zipped, or the daily XML.

    Raises:
        PricesRefusedError: the file or one of its rows cannot be read.
    """
    content = unzipped(content, file=file, limit_bytes=MAX_FILE_BYTES)
    if is_xml(content):
        yield from _ecb_xml(content, file=file, since=since)
        return
    header, rows = _table(content, file)
    is_ecb = header[:1] == ["Date"] and len(header) >= _FEWEST_ECB_COLUMNS
    if not is_ecb:
        _require_columns(header, RATE_COLUMNS[:4], file)
    for number, row in rows:
        try:
            wishes = _ecb_rates(row) if is_ecb else [rate_from_texts(row, source=source)]
        except PricesRefusedError as error:
            raise PricesRefusedError(
                error.reason, file=file, row=number, column=error.column
            ) from error
        yield from ((number, wish) for wish in wishes if since is None or wish.on_date >= since)


def _ecb_xml(content: bytes, *, file: str, since: date | None) -> Iterator[tuple[int, RateWish]]:
    for line, day, currency, rate in ecb_cells(content, file=file):
        try:
            (wish,) = _ecb_rates({"Date": day, currency: rate})
        except PricesRefusedError as error:
            raise PricesRefusedError(error.reason, file=file, row=line, column="Cube") from error
        except ValueError as error:
            reason = _("a rate without a value")
            raise PricesRefusedError(reason, file=file, row=line, column="Cube") from error
        if since is None or wish.on_date >= since:
            yield line, wish


def rate_from_texts(row: Row, *, source: str) -> RateWish:
    """A rate as its texts say.

    Raises:
        PricesRefusedError: a text is not what its column holds; the message says what to write.
    """
    texts = {name: (row.get(name) or "").strip() for name in RATE_COLUMNS}
    base = _currency(texts["base"].upper(), column="base")
    quote = _currency(texts["quote"].upper(), column="quote")
    if base == quote:
        raise _refused("quote", texts["quote"], _("it must differ from base"))
    named = texts["source"] or source
    if not named or len(named) > LONGEST["source"]:
        raise _refused("source", named[:60], _("say where the rate comes from, in 1 to 300 signs"))
    return RateWish(
        base=base,
        quote=quote,
        rate=_rate(texts["rate"], column="rate", unit=f"{quote} / {base}"),
        on_date=_day(texts["date"], column="date"),
        source=named,
    )


def _ecb_rates(row: Row) -> list[RateWish]:
    """One day of the ECB's history; a currency without a rate on that day says N/A."""
    on_date = _ecb_day(row["Date"].strip())
    return [
        RateWish(
            base=ECB_BASE,
            quote=_currency(name, column=name),
            rate=_rate(text.strip(), column=name, unit=f"{name} / {ECB_BASE}"),
            on_date=on_date,
            source=ECB_SOURCE,
        )
        for name, text in row.items()
        if name and name != "Date" and text and text.strip() not in ("", "N/A")
    ]


def _ecb_day(text: str) -> date:
    """A day of the history (2026-06-05) or of the daily CSV (5 June 2026)."""
    try:
        return datetime.strptime(text, "%d %B %Y").replace(tzinfo=UTC).date()
    except ValueError:
        return _day(text, column="Date")


def _table(content: bytes, file: str) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """The header and the numbered rows of a CSV; empty columns at the end are left out."""
    if len(content) > MAX_FILE_BYTES:
        raise PricesRefusedError(
            _("the file has {size} bytes; {limit} is the limit, so split it.").format(
                size=len(content), limit=MAX_FILE_BYTES
            ),
            file=file,
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PricesRefusedError(
            _("this is not UTF-8 text; save the table as CSV (UTF-8)."), file=file
        ) from error
    if "\0" in text:
        raise PricesRefusedError(
            _("this holds a NUL, which no text has; save the table as CSV (UTF-8)."), file=file
        )
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise _no_csv(file, error, 1) from error
    names = [name for name in header if name]
    if not names:
        raise PricesRefusedError(_("the file is empty; its first row names columns."), file=file)
    if len(set(names)) != len(names):
        raise PricesRefusedError(_("a column is named twice; keep one of them."), file=file)
    return names, _rows(reader, header, file)


def _rows(
    reader: Iterator[list[str]], header: Sequence[str], file: str
) -> Iterator[tuple[int, dict[str, str]]]:
    number = 1
    try:
        for number, cells in enumerate(reader, start=2):
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) > len(header):
                raise PricesRefusedError(
                    _(
                        "{found} cells under {columns} columns; quote texts that hold commas."
                    ).format(found=len(cells), columns=len(header)),
                    file=file,
                    row=number,
                )
            padded = [*cells, *[""] * (len(header) - len(cells))]
            yield number, dict(zip(header, padded, strict=True))
    except csv.Error as error:
        raise _no_csv(file, error, number + 1) from error


def _no_csv(file: str, error: csv.Error, row: int) -> PricesRefusedError:
    return PricesRefusedError(
        _("this is not CSV ({error}); save the table as CSV again.").format(error=error),
        file=file,
        row=row,
    )


def _require_columns(header: Sequence[str], wanted: Sequence[str], file: str) -> None:
    missing = [name for name in wanted if name not in header]
    if missing:
        raise PricesRefusedError(
            _("the first row lacks this column; it must name {columns}.").format(
                columns=", ".join(wanted)
            ),
            file=file,
            column=missing[0],
        )


def _refused(column: str, value: str, what: str, **more: object) -> PricesRefusedError:
    reason = _("{value} cannot be: {what}.").format(
        value=repr(value[:60]), what=what.format(**more) if more else what
    )
    return PricesRefusedError(reason, column=column)


def _one_of(texts: Row, column: str, allowed: Sequence[str]) -> str:
    value = texts[column].lower()
    if value not in allowed:
        raise _refused(column, texts[column], _("write one of {names}"), names=", ".join(allowed))
    return value


def _amount(text: str, *, column: str, unit: str) -> Decimal:
    try:
        parsed = strict_decimal(text)
    except NumberTextError as error:
        raise _refused(
            column, text, _("write a plain number in {unit}, such as 12.50"), unit=unit
        ) from error
    if parsed.digits_lost:
        raise _refused(column, text, _("at most 18 decimals, in {unit}"), unit=unit)
    return parsed.value


def _rate(text: str, *, column: str, unit: str) -> Decimal:
    rate = _amount(text, column=column, unit=unit)
    if rate <= 0:
        raise _refused(column, text, _("a rate is above 0, in {unit}"), unit=unit)
    return rate


def _day(text: str, *, column: str) -> date:
    try:
        if _DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError as error:
        raise _refused(column, text, _("there is no such day")) from error
    raise _refused(column, text, _("write a day as 2026-03-31"))


@cache
def _currencies() -> frozenset[str]:
    return frozenset(list_currencies())


def _currency(code: str, *, column: str) -> str:
    if code not in _currencies():
        raise _refused(column, code, _("write an ISO 4217 code such as USD"))
    return code
