"""What other rooms may hold of charges, and the columns of a stored charge. No Django."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

MONEY_TYPE = "decimal(38, 18)"
DATASET = "charges"


class Dataset(StrEnum):
    """Which of a provider's books a file is: a month may have one of each, side by side."""

    BILLED = "billed"
    AMORTISED = "amortised"


class Kind(StrEnum):
    """What a column holds, and so how its text is read."""

    TEXT = "text"
    ENUM = "enum"
    MONEY = "money"
    QUANTITY = "quantity"
    INSTANT = "instant"
    CURRENCY = "currency"
    TAGS = "tags"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeColumn:
    """One column of a stored charge, named as FOCUS names it, in snake case."""

    name: str
    kind: Kind = Kind.TEXT
    required: bool = False
    nullable: bool = True
    values: tuple[str, ...] = ()

    @property
    def is_number(self) -> bool:
        """Whether it is read as an exact number."""
        return self.kind in (Kind.MONEY, Kind.QUANTITY)

    @property
    def stored_type(self) -> str:
        """The type it has in the lake, as Ibis writes it."""
        if self.is_number:
            return MONEY_TYPE
        if self.kind is Kind.INSTANT:
            return "timestamp(6)"
        return "map<string, string>" if self.kind is Kind.TAGS else "string"


class Basis(StrEnum):
    """Which cost is meant."""

    BILLED = "billed"
    EFFECTIVE = "effective"
    LIST = "list"
    CONTRACTED = "contracted"

    @property
    def column(self) -> str:
        """The column that holds it."""
        return f"{self.value}_cost"


COST_COLUMNS = ("billed_cost", "effective_cost", "list_cost", "contracted_cost")

COST_CLASSES = (
    "accelerator",
    "other_compute",
    "storage_file",
    "storage_block",
    "storage_object",
    "storage_object_infrequent",
    "storage_archive",
    "request_get",
    "request_put",
    "request_other",
    "retrieval",
    "egress",
    "transfer_inter_region",
    "transfer_intra_region",
    "logging",
    "support",
    "tax",
    "credit",
    "refund",
    "discount",
    "commitment",
    "rounding",
    "other",
)


class ChargesRefusedError(Exception):
    """A delivery that cannot be taken: which file, row and column, and why."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        file: str = "",
        row: int | None = None,
        column: str = "",
    ) -> None:
        self.code, self.reason, self.file = code, message, file
        self.row, self.column = row, column
        super().__init__(self.sentence)

    @property
    def sentence(self) -> str:
        """File, row, column and reason in one line."""
        places = [
            self.file,
            f"row {self.row}" if self.row is not None else "",
            f"column {self.column}" if self.column else "",
        ]
        place = ", ".join(part for part in places if part)
        return f"{place}: {self.reason}" if place else self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyCostRow:
    """A day's cost of one class; `accelerator_h` is None where none was billed by time."""

    day: date
    x_cost_class: str
    currency: str
    cost: Decimal | None  # None where a charge lacks this cost
    accelerator_h: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """One group of a cost table: its group columns in order, then cost and accelerator-hours."""

    group: tuple[str | None, ...]
    currency: str
    cost: Decimal | None  # None where a charge of the group lacks this cost
    accelerator_h: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrencyTotal:
    """A total in one currency; None where a charge lacks this cost."""

    currency: str
    cost: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostTable:
    """Costs by groups; `total` has one line a currency, never two in one sum."""

    group_by: tuple[str, ...]
    basis: Basis
    start_on: date | None
    end_on: date | None  # the first day that is out
    rows: tuple[CostRow, ...]
    total: tuple[CurrencyTotal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCondition:
    """One condition of an allocation rule: a field of the charge (a tag's `key`) and a value."""

    field: str  # sub_account, tag, resource, …
    op: str = "is"  # is, any, …
    value: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTarget:
    """A share of what a rule matches; no project = unallocated on purpose."""

    weight: Decimal = Decimal(1)
    project_id: UUID | None = None
    run_key: str = ""
    team: str = ""
    plan_line_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRecord:
    """One allocation rule: charges that meet all conditions; lower positions win."""

    position: int
    name: str = ""
    conditions: tuple[RuleCondition, ...] = ()
    targets: tuple[RuleTarget, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodStatus:
    """What is published of one month of one source."""

    period_id: int
    dataset: str
    source: str
    period: str
    rows: int
    known_at: datetime
