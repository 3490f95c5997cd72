"""Reconciliation: what an invoice states beside what the charges come to."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from uuid import UUID


class Tie(StrEnum):
    """Whether a stated total and the charges agree."""

    TIES = "ties"
    DIFFERS = "differs"
    NO_CHARGES = "no_charges"  # stated, but nothing of it is published
    UNKNOWN = "unknown"  # published, but a charge lacks its billed cost
    NOT_STATED = "not_stated"  # published, but nobody has stated a total


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """One month or invoice of one source in one currency. Missing is None, never zero."""

    source_id: UUID
    source: str
    month_on: date
    invoice_id: str
    currency: str
    expected: Decimal | None
    found: Decimal | None
    tolerance: Decimal
    tie: Tie
    origin: str = ""
    note: str = ""
    total_id: UUID | None = None
    period_id: int | None = None  # the published month, where there is one

    @property
    def difference(self) -> Decimal | None:
        """Found less expected; None where one is missing."""
        if self.expected is None or self.found is None:
            return None
        return self.found - self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewTotal:
    """The same month summed by one view: all views must come to one total."""

    view: str
    currency: str
    cost: Decimal | None
    rows: int
    agrees: bool
