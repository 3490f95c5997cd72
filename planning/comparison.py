"""Two to four frozen estimates side by side: questions, results, differences, bars. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from formulae.money import exact_sum
from formulae.units import EXACT, FLOP_PER_TFLOP
from planning.estimating import Answer

MOST: Final = 4
LETTERS: Final = "ABCD"
Value = Decimal | float | int | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One saved estimate: its question as it was kept, and its answer."""

    name: str
    question: dict[str, Any]
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCell:
    """An input: its median where it is a belief; `is_stated` False where a prior stood in."""

    value: Value
    low: float | None = None
    high: float | None = None
    currency: str = ""
    is_stated: bool = True
    differs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCell:
    """A result: P50 with P10 and P90, and how far P50 is from the first estimate's."""

    p50: Decimal | float | None
    p10: Decimal | float | None = None
    p90: Decimal | float | None = None
    currency: str = ""
    change: Decimal | float | None = None
    change_fraction: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One quantity of all estimates."""

    key: str
    unit: str
    cells: tuple[AskedCell, ...] | tuple[FoundCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One estimate in a picture: P50 as a bar, P10 to P90 as a line, in percent of the width."""

    letter: str
    cell: FoundCell
    p50_at: str
    p10_at: str
    p90_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The bars of a quantity; none where currencies differ, or nothing is known."""

    key: str
    unit: str
    bars: tuple[Bar, ...]
    has_mixed_currencies: bool = False


# Inputs in the order of the question: key, unit, and where the answer keeps it.
_ASKED: Final = (
    ("total_params", "compact", "model"),
    ("active_params", "compact", "model"),
    ("tokens", "tokens", "tokens"),
    ("seq_len", "count", "seq_len"),
    ("training_flop", "flop", "training_flop"),
    ("accelerator", "text", "accelerator"),
    ("accelerator_count", "count", "accelerator_count"),
    ("precision", "text", "precision"),
    ("peak", "text", "peak"),
    ("peak_flop_per_s", "tflop", "peak_flop_per_s"),
    ("step_mfu", "fraction", "step_mfu"),
    ("goodput", "fraction", "goodput"),
    ("price_per_accelerator_hour", "price", "price_per_accelerator_hour"),
    ("place", "text", "region"),
    ("pue", "", "pue"),
    ("g_per_kwh", "g/kWh", "grid_g_per_kwh"),
    ("power_w", "w", "power_w"),
    ("host_factor", "", "host_factor"),
    ("priced_on", "text", "started_on"),
)
_FOUND: Final = (
    ("days", "days"),
    ("accelerator_h", "h"),
    ("cost", "money"),
    ("programme", "money"),
    ("contingency", "money"),
    ("listed", "money"),
    ("bill", "money"),
    ("all_in", "money"),
    ("facility_energy_kwh", "kwh"),
    ("scope_2_location_kgco2e", "kgco2e"),
    ("scope_2_market_kgco2e", "kgco2e"),
    ("embodied_kgco2e", "kgco2e"),
    ("water_l", "l"),
)
_PICTURES: Final = ("cost", "facility_energy_kwh", "scope_2_location_kgco2e")


def asked_rows(estimates: Sequence[Compared]) -> tuple[Row, ...]:
    """The inputs that any of the estimates has, each marked where it is not the first one's."""
    rows = []
    for key, unit, stated_as in _ASKED:
        cells = [_asked(one, key, stated_as) for one in estimates]
        if any(cell.value is not None for cell in cells):
            rows.append(Row(key=key, unit=unit, cells=tuple(_marked(cells))))
    return tuple(rows)


def _asked(one: Compared, key: str, stated_as: str) -> AskedCell:
    document = one.answer.document
    assumptions = document["assumptions"]
    value = {
        "seq_len": one.question.get("seq_len"),
        "training_flop": document["training_flop"],
    }.get(key, assumptions.get(key))
    is_stated = stated_as in one.question
    if isinstance(value, dict):
        certain = value["is_certain"]
        return AskedCell(
            value=value["p50"],
            low=None if certain else value["p10"],
            high=None if certain else value["p90"],
            is_stated=is_stated,
        )
    if key == "price_per_accelerator_hour" and value is not None:
        currency = one.answer.currency or ""
        return AskedCell(value=Decimal(value), currency=currency, is_stated=is_stated)
    if key == "peak_flop_per_s" and value is not None:
        value = value / FLOP_PER_TFLOP
    return AskedCell(value=value)


def _marked(cells: Sequence[AskedCell]) -> list[AskedCell]:
    """Each cell with whether it says something else than the first."""
    first = cells[0]
    return [replace(cell, differs=_said(cell) != _said(first)) for cell in cells]


def _said(cell: AskedCell) -> tuple[object, ...]:
    return (cell.value, cell.low, cell.high, cell.currency)


def found_rows(estimates: Sequence[Compared]) -> tuple[Row, ...]:
    """The results that any of the estimates has, with the difference of each from the first.

    Amounts of another currency than the first one's have no difference: they are not subtracted.
    """
    rows = []
    for key, unit in _FOUND:
        cells = [_found(one, key) for one in estimates]
        if any(cell.p50 is not None for cell in cells):
            rows.append(Row(key=key, unit=unit, cells=tuple(_measured(cells))))
    return tuple(rows)


def _found(one: Compared, key: str) -> FoundCell:
    reader = _MONEY.get(key)
    if reader is not None:
        return reader(one)
    levels = one.answer.document.get(key)
    if levels is None:
        return FoundCell(p50=None)
    return FoundCell(p50=levels["p50"], p10=levels["p10"], p90=levels["p90"])


def _amounts(name: str) -> Callable[[Compared], FoundCell]:
    """A reader of the percentiles of an amount."""

    def read(one: Compared) -> FoundCell:
        found = one.answer.document.get(name)
        if found is None:
            return FoundCell(p50=None)
        return FoundCell(
            p50=Decimal(found["p50"]),
            p10=Decimal(found["p10"]),
            p90=Decimal(found["p90"]),
            currency=found["currency"],
        )

    return read


def _amount(name: str, key: str) -> Callable[[Compared], FoundCell]:
    """A reader of one amount without a spread."""

    def read(one: Compared) -> FoundCell:
        found = one.answer.document.get(name)
        if found is None or found[key] is None:
            return FoundCell(p50=None)
        return FoundCell(p50=Decimal(found[key]), currency=found["currency"])

    return read


def _listed(one: Compared) -> FoundCell:
    """The programme as its lines say, contingency among them, at the median main run."""
    cost = one.answer.document.get("cost")
    if cost is None:
        return FoundCell(p50=None)
    amounts = [Decimal(line["amount"]) for line in cost["lines"] if line["in_programme"]]
    return FoundCell(p50=exact_sum(amounts), currency=cost["currency"])


def _all_in(one: Compared) -> FoundCell:
    """Every line with the bill around; not known while a line of the bill has no price."""
    cost, bill = one.answer.document.get("cost"), one.answer.document.get("bill")
    if cost is None or (bill is not None and bill["total"] is None):
        return FoundCell(p50=None)
    amounts = [Decimal(line["amount"]) for line in cost["lines"]]
    around = [] if bill is None else [Decimal(bill["total"])]
    return FoundCell(p50=exact_sum(amounts + around), currency=cost["currency"])


_MONEY: Final[dict[str, Callable[[Compared], FoundCell]]] = {
    "cost": _amounts("cost"),
    "programme": _amounts("programme"),
    "contingency": _amount("programme", "contingency_p80_less_p50"),
    "listed": _listed,
    "bill": _amount("bill", "total"),
    "all_in": _all_in,
}


def _measured(cells: Sequence[FoundCell]) -> list[FoundCell]:
    """Each cell with its distance from the first."""
    first = cells[0]
    measured = [first]
    for cell in cells[1:]:
        change = _change(first, cell)
        share = None if change is None else _share(change, first.p50)
        measured.append(replace(cell, change=change, change_fraction=share))
    return measured


def _change(first: FoundCell, cell: FoundCell) -> Decimal | float | None:
    if first.currency != cell.currency:
        return None
    if isinstance(first.p50, Decimal) and isinstance(cell.p50, Decimal):
        return EXACT.subtract(cell.p50, first.p50)
    if isinstance(first.p50, float) and isinstance(cell.p50, float):
        return cell.p50 - first.p50
    return None


def _share(change: Decimal | float, of: Decimal | float | None) -> float | None:
    return float(change) / float(of) if of else None


def pictures(rows: Sequence[Row]) -> tuple[Picture, ...]:
    """Bars of cost, energy and emissions; amounts of two currencies never share a picture."""
    found = {row.key: row for row in rows}
    return tuple(_picture(found[key]) for key in _PICTURES if key in found)


def _picture(row: Row) -> Picture:
    cells = [cell for cell in row.cells if isinstance(cell, FoundCell)]
    if len({cell.currency for cell in cells if cell.p50 is not None}) > 1:
        return Picture(key=row.key, unit=row.unit, bars=(), has_mixed_currencies=True)
    highest = max(float(cell.p90 or cell.p50 or 0) for cell in cells)

    def at(value: Decimal | float | None) -> str:
        return f"{float(value or 0) / highest:.3%}" if highest else "0%"

    return Picture(
        key=row.key,
        unit=row.unit,
        bars=tuple(
            Bar(
                letter=letter,
                cell=cell,
                p50_at=at(cell.p50),
                p10_at=at(cell.p10),
                p90_at=at(cell.p90),
            )
            for letter, cell in zip(LETTERS, cells, strict=False)
        ),
    )
