"""A table as pages, CSV and spreadsheets show it alike: columns, lines, what it answers. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

Value = str | int | Decimal | None


class Kind(StrEnum):
    """How a column's values are written."""

    TEXT = "text"
    MONEY = "money"
    PRICE = "price"  # money of one unit: small amounts matter
    NUMBER = "number"
    COUNT = "count"
    BYTES = "bytes"
    FRACTION = "fraction"  # 0..1, a percentage where people read it


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column; `in_files_only` is what a page says otherwise, such as the currency."""

    title: str
    kind: Kind = Kind.TEXT
    in_files_only: bool = False

    @property
    def is_number(self) -> bool:
        """Whether its values are aligned by their digits."""
        return self.kind is not Kind.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A value; None where it is not known. The address leads to what is behind it."""

    value: Value = None
    href: str = ""
    badge: str = ""

    @property
    def price_digits(self) -> int | None:
        """Decimals that show a small price; None = those of its currency."""
        small = isinstance(self.value, Decimal) and 0 < abs(self.value) < 1
        return 5 if small else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of a table; all its money is of one currency."""

    cells: tuple[Cell, ...]
    currency: str = ""
    is_quiet: bool = False  # a line that stands for others


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table with its totals, and in `facts` what was asked."""

    key: str
    title: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    totals: tuple[Line, ...] = ()
    facts: Sequence[tuple[str, str]] = field(default=())

    @property
    def all_lines(self) -> tuple[Line, ...]:
        """Lines and totals, as files have them."""
        return (*self.lines, *self.totals)

    @property
    def shown_columns(self) -> list[Column]:
        """The columns of a page."""
        return [column for column in self.columns if not column.in_files_only]

    def _shown(self, lines: Sequence[Line]) -> list[tuple[Line, list[tuple[Column, Cell]]]]:
        return [
            (
                line,
                [
                    pair
                    for pair in zip(self.columns, line.cells, strict=True)
                    if not pair[0].in_files_only
                ],
            )
            for line in lines
        ]

    @property
    def shown_lines(self) -> list[tuple[Line, list[tuple[Column, Cell]]]]:
        """Lines for a page, each cell beside its column."""
        return self._shown(self.lines)

    @property
    def shown_totals(self) -> list[tuple[Line, list[tuple[Column, Cell]]]]:
        """Totals for a page."""
        return self._shown(self.totals)
